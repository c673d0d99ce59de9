package anonymize_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/anonymize"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/google/go-cmp/cmp"
)

// copyOf returns the copy of the objects and its text.
func copyOf(t *testing.T, text string) (*anonymize.Cluster, string) {
	t.Helper()
	b, err := manifest.Parse("input", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := anonymize.Of(b, b.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	return c, out.String()
}

// TestArguments checks the arguments of plugins: names in them are replaced, and arguments of
// plugins of other programs are not copied.
func TestArguments(t *testing.T) {
	c, have := copyOf(t, `
apiVersion: berth.dev/v1alpha1
kind: SchedulerConfiguration
plugins:
- {name: TaskOrder, arguments: {first: [acme, leader]}}
- {name: spot-instance-manager, arguments: {spotLabelKey: acme.com/spot}}
- {name: ScarceResourceAvoidance, arguments: {weights: {acme.com/fpga: 3, nvidia.com/gpu: 2}}}
- {name: AcmePlugin, arguments: {word: acme}}
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: acme, labels: {acme.com/spot: spot}}
spec: {resources: {cpu: 1, acme.com/fpga: 2}}
`)
	want := `apiVersion: berth.dev/v1alpha1
kind: SchedulerConfiguration
plugins:
  - arguments:
      first:
        - a-task-0001
        - leader
    name: TaskOrder
  - arguments:
      spotLabelKey: key-0001
      spotLabelValue: value-0001
    name: spot-instance-manager
  - arguments:
      weights:
        a-example.com/resource-0001: 3
        nvidia.com/gpu: 2
    name: ScarceResourceAvoidance
  - name: AcmePlugin
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata:
  labels:
    key-0001: value-0001
  name: node-0001
spec:
  resources:
    a-example.com/resource-0001: "2"
    cpu: "1"
`
	if have != want {
		t.Errorf("want\n%s\nhave\n%s", want, have)
	}
	note := "the arguments of plugin AcmePlugin are not part of the output, because it is not a plugin of Berth and its arguments may contain names"
	if len(c.Notes) != 1 || c.Notes[0] != note {
		t.Errorf("notes %q, want %q", c.Notes, note)
	}
}

// TestMixedNamespaces checks that the name of a job without a namespace keeps its order among
// the namespaces of other jobs.
func TestMixedNamespaces(t *testing.T) {
	c, _ := copyOf(t, `
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: m}
spec: {tasks: [{name: worker}]}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: x, namespace: a}
spec: {tasks: [{name: worker}]}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: a, namespace: z}
spec: {tasks: [{name: worker}]}
`)
	before := ""
	for _, id := range []string{"job/a/x", "job/m", "job/z/a"} {
		alias := c.Names.Workload(id)
		if alias <= before {
			t.Errorf("%s is %s, which is not after %s", id, alias, before)
		}
		before = alias
	}
}

// TestFilesOfModels checks that a model that is read from files is an error.
func TestFilesOfModels(t *testing.T) {
	b, err := manifest.Parse("input", []byte(`
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: chat}
spec: {source: {gguf: chat.gguf}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := "model/chat: the model is read from files, which cannot be part of the output; name a preset, or say how much memory it needs under memory and name no files, or leave it out"
	if _, err := anonymize.Of(b, 0); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestConfigs checks what is copied of a config and of the fields about the server: what decides,
// without names.
func TestConfigs(t *testing.T) {
	_, have := copyOf(t, `
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: acme-chat}
spec:
  source:
    repository: acme/chat
    weights: 15Gi
    config: |
      {
        "_name_or_path": "/home/acme/chat",
        "architectures": ["AcmeForCausalLM"], "model_type": "acme",
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
        "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
        "acme_attention_gate": {"acme": 3}, "acme_scale": 1.5, "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"acme": {"weights": {"num_bits": 4}, "targets": ["acme"]}}}
      }
  server: {image: acme/vllm, command: [acme], args: [acme], cache: {claim: acme}, tokenSecret: {name: acme}, imagePullSecrets: [acme]}
  template: {metadata: {labels: {acme: acme}}}
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: known}
spec:
  source: {weights: 15Gi, config: '{"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "hidden_size": 3584, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768}'}
`)
	want := `apiVersion: berth.dev/v1alpha1
kind: Model
metadata:
  name: workload-0001
spec:
  source:
    config: '{"attention_2":{"field_1":3},"hidden_size":4096,"intermediate_size":14336,"max_position_embeddings":8192,"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"quantization_config":{"quant_method":"compressed-tensors"},"vocab_size":128256}'
    repository: file-0001
    weights: 15Gi
---
apiVersion: berth.dev/v1alpha1
kind: Model
metadata:
  name: workload-0002
spec:
  source:
    config: '{"architectures":["Olmo2ForCausalLM"],"hidden_size":3584,"intermediate_size":18944,"max_position_embeddings":32768,"num_attention_heads":28,"num_hidden_layers":28,"num_key_value_heads":4,"vocab_size":152064}'
    weights: 15Gi
`
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-want +have)\n%s", d)
	}
}

// TestDifference checks that a decision about another node is found.
func TestDifference(t *testing.T) {
	c, _ := copyOf(t, `
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: a}
---
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: b}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: train}
spec: {tasks: [{name: worker}]}
`)
	bind := func(job, task, node string) *engine.Outcome {
		return &engine.Outcome{Decisions: []engine.Decision{{Action: engine.Bind, Task: cluster.TaskRef{Job: job, Name: task}, Node: node}}}
	}
	input := bind("job/train", "worker-0", "b")
	if d := c.Difference(input, bind("job/workload-0001", "task-0001-0", "node-0002")); d != "" {
		t.Errorf("a difference where there is none: %s", d)
	}
	d := c.Difference(input, bind("job/workload-0001", "task-0001-0", "node-0001"))
	if !strings.HasPrefix(d, "decision 1 is ") || !strings.Contains(d, "node-0002") || !strings.Contains(d, "node-0001") {
		t.Errorf("difference %q, want that of the nodes", d)
	}
	d = c.Difference(input, &engine.Outcome{})
	if !strings.HasSuffix(d, `and "none" for the output`) {
		t.Errorf("difference %q, want that of a missing decision", d)
	}
}
