package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/printable"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzParse checks that no file makes Parse or State panic or hang, and that errors can be
// printed.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range seeds {
		data, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "---\n---", "# only\n", "\x00", "\xff\xfe", "[[[[", "a: &a [*a]", "<<: *x", "{? [a] : b}",
		job("{tasks: [{name: w, replicas: 3, devices: {share: 0.5}}]}"),
		job("{cells: [a, b], placement: {unit: Node, nodesPerReplica: 2}, tasks: [{name: w, devices: {totalMemory: 1e3}}]}"),
		node("{resources: {cpu: 1e30, memory: -1}, devices: {product: x, count: 3, memory: 1Gi, sharing: {strategy: mps, replicas: 3}}}"),
		node("{devices: [{product: x, count: 1, memory: 9Gi, partitions: [{profile: 1g.5gb, memory: 5Gi}]}]}"),
		coreNode + pod("", "{nodeName: n, containers: [{resources: {requests: {nvidia.com/gpu: 1}}}]}"),
		job("{minMember: 3, topology: {required: rack}, subgroups: [{name: a, tasks: [w], minMember: 2, topology: {preferred: [x, y]}}], tasks: [{name: w, replicas: 3}, {name: l}]}"),
		object("DisruptionBudget", "b", "spec: {selector: {matchLabels: {a: b}}, minAvailable: 30%}"),
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {}, maxUnavailable: 1}",
		object("Queue", "q", "spec: {minRunTime: {beforePreempt: 10m, beforeReclaim: 1h}}"),
		aModel("{replicas: 3, source: {preset: phi-4}, context: 8192, sequences: 4, kvCacheBits: 8, parallelism: {tensor: 2}, gpuMemoryUtilization: 0.8}") + gpu,
		aModel("{source: {gguf: /dev/zero}, draft: {localPath: /dev/stdin}, adapters: [{name: a, path: /dev}]}") + gpu,
		aModel("{memory: {total: 8Gi, host: 1Gi}, placement: {distributed: true, cpuOffload: true, devices: ['gpu:cuda:0'], cells: [a, b]}}") + gpu,
		object("Model", "m", "spec: {source: {preset: phi-4-mini}, placement: {unit: Node, instanceType: g5.xlarge}}\nstatus: {group: {product: A10, count: 2, memory: 24Gi, nodesPerReplica: 1}, replicas: [{replica: 3, state: Failed, placements: [{task: node-0, node: gpu, devices: [0, 1]}]}]}") + gpu,
		aNodeWith("state: X, files: {a: READY}, freeMemory: [1Gi]"),
		"a: &a {x: 1}\nb: {<<: [*a, *a], x: !!int q}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Parse("f", data)
		if err == nil {
			_, err = b.State()
		}
		if err != nil && (err.Error() == "" || !utf8.ValidString(err.Error())) {
			t.Errorf("an error that cannot be printed: %q", err)
		}
	})
}

// FuzzSet checks that no assignment makes Set panic, and that an assignment that is
// refused does not change the bundle.
func FuzzSet(f *testing.F) {
	for _, s := range []string{
		"job/j.spec.priority=10", "job/j.spec.tasks[0].devices.count=4", `node/n.metadata.labels["a.b/c"]=x`,
		"node/n.spec.devices.count=2", "job/j.spec.tasks[1]={name: x}", "job/j.spec=", "job/j.metadata.name=k",
		"queue/q.spec.limits[\"nvidia.com/gpu\"]=1e9", "job/j.spec.tasks=&a [*a]", "x.spec[", "job/j.spec.a[\"]=1",
		"node/n.spec.devices.memory=!!binary aGk=", "job/j.status.placements[0]={task: w-0, node: n}",
	} {
		f.Add(s)
	}
	text := object("Queue", "q", "spec: {limits: {nvidia.com/gpu: 4}}") + "\n---\n" +
		node("{resources: {cpu: 8}, devices: {product: x, count: 1, memory: 1Gi}}") + "\n---\n" +
		job("{queue: q, tasks: [{name: w, devices: {count: 1}}]}")
	f.Fuzz(func(t *testing.T, assignment string) {
		b, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		before := [3]any{b.Queues[0], b.Nodes[0], b.Jobs[0]}
		if err := b.Set(assignment); err != nil {
			if before != [3]any{b.Queues[0], b.Nodes[0], b.Jobs[0]} {
				t.Errorf("%q was refused (%v) and changed something", assignment, err)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && !printable.Is(r) }) {
				t.Errorf("an error that would break a terminal: %q", err)
			}
			return
		}
		_, _ = b.State() // it may return an error, and must not panic
	})
}

// FuzzArguments checks that arguments are decoded in the same way each time.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", "weights: {cpu: 1}", "list: [1, a]\nshare: 0.5", "<<: {a: 1}", "flag: yes", "amount: 1e400", "any: {? [x] : y}", "wait: 3s", "[1]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseArguments("f", data)
		if err != nil {
			return
		}
		type arguments struct {
			Weights map[string]int64   `json:"weights"`
			List    []string           `json:"list"`
			Share   float64            `json:"share"`
			Flag    *bool              `json:"flag"`
			Amount  *resource.Quantity `json:"amount"`
			Any     any                `json:"any"`
			Wait    metav1.Duration    `json:"wait"`
		}
		var first, second arguments
		err, again := a.Decode(&first), a.Decode(&second)
		if (err == nil) != (again == nil) || (err == nil && !cmp.Equal(first, second)) {
			t.Errorf("read twice: %v and %v, %+v and %+v", err, again, first, second)
		}
	})
}
