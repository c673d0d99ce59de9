package migration

import (
	"strings"
	"testing"
)

// TestSources checks single fields: parts of the manifests and of the notes.
func TestSources(t *testing.T) {
	kai := func(name, spec string) string {
		return "---\napiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	}
	volcano := func(name, spec string) string {
		return "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	}
	kueue := func(kind, name, spec string) string {
		return "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: ns}\nspec: {" + spec + "}\n"
	}
	quota := func(flavor, resources string) string {
		return "resourceGroups: [{coveredResources: [cpu], flavors: [{name: " + flavor + ", resources: [" + resources + "]}]}]"
	}
	workspace := func(fields string) string {
		return "---\napiVersion: kaito.sh/v1alpha1\nkind: Workspace\nmetadata: {name: w, namespace: ml, labels: {team: a}}\n" + fields + "\n"
	}
	gpustack := func(fields string) string {
		return "---\nname: m\nsource: huggingface\nhuggingface_repo_id: meta-llama/Llama-3.1-8B-Instruct\n" + fields + "\n"
	}
	const all = "gpu: {quota: 1, overQuotaWeight: 1, limit: -1}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}"
	flavor := kueue("ResourceFlavor", "any", "") + kueue("ResourceFlavor", "l4", "nodeLabels: {nvidia.com/gpu.product: NVIDIA-L4, zone: a}")
	for name, x := range map[string]struct {
		in   string
		want []string // in the manifests
		not  []string // not in the manifests
		says []string // in the notes
	}{
		"KAI: units": {
			in:   kai("q", "resources: {gpu: {quota: 0.5, overQuotaWeight: 1, limit: 1}, cpu: {quota: 1500, overQuotaWeight: 1, limit: -1}, memory: {quota: 1.5, overQuotaWeight: 1, limit: 1000}}"),
			want: []string{"nvidia.com/gpu: 500m", "cpu: 1500m", "memory: 1500k", "memory: 1G\n"},
			not:  []string{"overQuotaWeight", "priority"},
		},
		"KAI: weights that are fractions": {
			in:   kai("a", "resources: {gpu: {quota: 1, overQuotaWeight: 0.5, limit: -1}}") + kai("b", "resources: {gpu: {quota: 1, overQuotaWeight: 2, limit: -1}}"),
			want: []string{"nvidia.com/gpu: 500\n", "nvidia.com/gpu: 2000\n"},
			says: []string{"the weights of the queues of KAI-Scheduler are multiplied by 1000", "queue/a: spec.resources.cpu: it is missing, which KAI-Scheduler reads as a limit of 0"},
		},
		"KAI: no weight is a weight of 0":          {in: kai("q", "resources: {gpu: {quota: 1, limit: -1}}"), want: []string{"overQuotaWeight:\n    nvidia.com/gpu: 0"}},
		"KAI: a limit of 0":                        {in: kai("q", "resources: {gpu: {quota: 0, overQuotaWeight: 1, limit: 0}}"), want: []string{"limits:\n    nvidia.com/gpu: \"0\""}},
		"KAI: no limit":                            {in: kai("q", "resources: {gpu: {quota: 1, overQuotaWeight: 1}}"), not: []string{"limits"}, says: []string{"spec.resources.gpu.limit: it is missing, which KAI-Scheduler reads as 0"}},
		"KAI: a quota above the limit":             {in: kai("q", "resources: {gpu: {quota: 9, overQuotaWeight: 1, limit: 4}}"), want: []string{"quota:\n    nvidia.com/gpu: \"4\""}, says: []string{"the amount of 9 for nvidia.com/gpu is above the limit of 4, and is lowered to it"}},
		"KAI: queues without a priority have 100":  {in: kai("a", "priority: 50, resources: {"+all+"}") + kai("b", "resources: {"+all+"}"), want: []string{"priority: 50", "priority: 100"}},
		"KAI: a parent that is missing":            {in: kai("a", "parentQueue: p, resources: {"+all+"}"), want: []string{"name: p\n---", "parent: p"}, says: []string{`queue/a: the queue "p" is not in the input`}},
		"KAI: the parent default":                  {in: kai("a", "parentQueue: default, resources: {"+all+"}"), not: []string{"parent"}, says: []string{"the queue default cannot be a parent in Berth"}},
		"KAI: the queue default below another":     {in: kai("default", "parentQueue: p, resources: {"+all+"}") + kai("p", ""), not: []string{"parent"}, says: []string{"the queue default cannot be below another queue in Berth"}},
		"KAI: children are after their parents":    {in: kai("a", "parentQueue: p") + kai("p", "parentQueue: r") + kai("r", ""), want: []string{"name: r\n---\n", "name: p\nspec:\n  parent: r\n---\n"}},
		"KAI: a cycle":                             {in: kai("a", "parentQueue: b") + kai("b", "parentQueue: a"), want: []string{"#   name: a"}, says: []string{"queue/a is written as a comment, because the queue is above itself"}},
		"KAI: a negative amount":                   {in: kai("a", "resources: {gpu: {quota: -2, limit: -1}}") + kai("b", "parentQueue: a"), want: []string{"#   name: a", "#   name: b"}, says: []string{"-2 is negative", `queue/b is written as a comment, because the queue above it, "a", is incomplete`}},
		"KAI: a huge amount":                       {in: kai("a", "resources: {gpu: {quota: 1e30, limit: -1}}"), want: []string{"#   name: a"}, says: []string{"too large"}},
		"KAI: a minimum run time of 0":             {in: kai("a", "reclaimMinRuntime: 0s, preemptMinRuntime: 1h"), want: []string{"beforePreempt: 1h0m0s"}, not: []string{"beforeReclaim"}, says: []string{"spec.reclaimMinRuntime: Berth has no minimum of 0"}},
		"two queues with one name":                 {in: kai("a", "") + volcano("a", ""), want: []string{"\n#   name: a\n"}, says: []string{"queue/a is written as a comment, because queue/a is already made of queue/a (<stdin>:2); rename one of them"}},
		"a name that Kubernetes does not accept":   {in: volcano("A_b", ""), want: []string{"#   name: A_b"}, says: []string{"is not a valid name"}},
		"Volcano: a weight alone":                  {in: volcano("q", "weight: 3"), want: []string{"weight: 3"}, not: []string{"quota"}},
		"Volcano: a weight that is too large":      {in: volcano("q", "weight: 200000"), says: []string{"want a weight from 0 to 100000"}},
		"Volcano: a guarantee above what deserved": {in: volcano("q", "deserved: {cpu: 1}, guarantee: {resource: {cpu: 4, memory: 1Gi}}"), want: []string{"cpu: \"4\"", "memory: 1Gi"}, says: []string{"spec.guarantee.resource: the amounts are part of the quota"}},
		"Volcano: the root":                        {in: volcano("root", "weight: 1") + volcano("q", "parent: root"), not: []string{"root"}, says: []string{"queue/root: the root of the tree has no counterpart"}},
		"Volcano: fields without a counterpart":    {in: volcano("q", "type: x, dequeueStrategy: fifo, affinity: {nodeGroupAffinity: {}}"), says: []string{"spec.type: ", "spec.dequeueStrategy: ", "spec.affinity: "}},
		"Kueue: a queue without a cohort":          {in: flavor + kueue("ClusterQueue", "q", quota("any", "{name: cpu, nominalQuota: 8}")), want: []string{"limits:\n    cpu: \"8\"\n  quota:\n    cpu: \"8\""}, not: []string{"parent"}},
		"Kueue: a cohort bounds its queues": {
			in:   flavor + kueue("ClusterQueue", "a", "cohort: c, "+quota("any", "{name: cpu, nominalQuota: 8}")) + kueue("ClusterQueue", "b", "cohort: c, "+quota("any", "{name: cpu, nominalQuota: 4, borrowingLimit: 2}")),
			want: []string{"name: c\nspec:\n  limits:\n    cpu: \"12\"\n---", "name: a\nspec:\n  parent: c\n  quota:\n    cpu: \"8\"", "limits:\n    cpu: \"6\"\n  parent: c"},
		},
		"Kueue: cohorts below cohorts": {
			in: flavor + kueue("Cohort", "top", quota("any", "{name: cpu, nominalQuota: 10}")) + kueue("Cohort", "c", "parentName: top, "+quota("any", "{name: cpu, nominalQuota: 2, borrowingLimit: 3}")) +
				kueue("ClusterQueue", "a", "cohort: c, "+quota("any", "{name: cpu, nominalQuota: 8}")),
			want: []string{"name: top\nspec:\n  limits:\n    cpu: \"20\"\n  quota:\n    cpu: \"20\"", "name: c\nspec:\n  limits:\n    cpu: \"13\"\n  parent: top\n  quota:\n    cpu: \"10\""},
		},
		"Kueue: cohorts in a cycle":                   {in: kueue("Cohort", "a", "parentName: b") + kueue("Cohort", "b", "parentName: a"), says: []string{"the queue is above itself"}},
		"Kueue: a cohort and its queue have one name": {in: flavor + kueue("ClusterQueue", "a", "cohort: a, "+quota("any", "{name: cpu, nominalQuota: 8}")), want: []string{"name: a-cohort", "parent: a-cohort"}, says: []string{`the cohort "a" becomes the queue "a-cohort"`}},
		"Kueue: a flavor of a product":                {in: flavor + kueue("ClusterQueue", "a", quota("l4", "{name: nvidia.com/gpu, nominalQuota: 8}")), want: []string{"nvidia.com/gpu: \"8\"", "nvidia.com/gpu:NVIDIA-L4: \"8\""}, says: []string{"give them the node selector {nvidia.com/gpu.product: NVIDIA-L4, zone: a}"}},
		"Kueue: a flavor that is missing":             {in: kueue("ClusterQueue", "a", quota("x", "{name: cpu, nominalQuota: 8}")), says: []string{`the ResourceFlavor "x" is not in the input`}},
		"Kueue: weights":                              {in: kueue("ClusterQueue", "a", "fairSharing: {weight: 500m}") + kueue("ClusterQueue", "b", ""), want: []string{"name: a\nspec:\n  weight: 500", "name: b\nspec:\n  weight: 1000"}},
		"Kueue: several LocalQueues":                  {in: kueue("ClusterQueue", "a", "") + kueue("LocalQueue", "x", "clusterQueue: a") + kueue("LocalQueue", "y", "clusterQueue: b"), not: []string{"Namespace"}, says: []string{"localqueue/ns/x: give the pods of this LocalQueue the label berth.dev/queue: a", "localqueue/ns/y: give the pods", `the ClusterQueue "b" is not in the input`}},
		"Kueue: the LocalQueue default":               {in: kueue("ClusterQueue", "a", "") + kueue("LocalQueue", "x", "clusterQueue: b") + kueue("LocalQueue", "default", "clusterQueue: a, stopPolicy: Hold"), want: []string{"berth.dev/default-queue: a"}, says: []string{"localqueue/ns/default: spec.stopPolicy: "}},
		"KAITO: v1alpha1": {
			in:   workspace("resource: {count: 2, instanceType: Standard_NC24ads_A100_v4, preferredNodes: [a], labelSelector: {matchLabels: {a: b}}}\ninference: {preset: {name: falcon-7b-instruct, accessMode: private, presetOptions: {image: i, imagePullSecrets: [s]}}}"),
			want: []string{"name: w", "namespace: ml", "team: a", "preset: falcon-7b\n", "repository: tiiuae/falcon-7b-instruct", "imagePullSecrets:\n      - s", "unit: Node", "instanceType: Standard_NC24ads_A100_v4"},
			says: []string{"workspace/ml/w: resource.count: ", "resource.preferredNodes: ", "inference.preset.accessMode: ", "inference.preset.presetOptions.image: "},
		},
		"KAITO: a MIG slice":            {in: workspace("resource: {instanceType: x, labelSelector: {}, partition: {mode: mig, profile: 1g.10gb}}\ninference: {preset: {name: phi-4-mini}}"), want: []string{"partition: 1g.10gb", "node.kubernetes.io/instance-type: x"}, not: []string{"unit", "instanceType"}, says: []string{"resource.instanceType: a model that takes a part of a node is not provisioned for"}},
		"KAITO: expressions":            {in: workspace("resource: {labelSelector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: c, operator: Exists}]}}\ninference: {preset: {name: phi-4-mini}}"), want: []string{"nodeSelector:\n      a: b"}, says: []string{"resource.labelSelector.matchExpressions[1]: a Model selects nodes by equal labels only"}},
		"KAITO: a template":             {in: workspace("resource: {labelSelector: {}}\ninference: {template: {spec: {containers: []}}}"), not: []string{"Model"}, says: []string{"inference.template: a pod template is not a model"}},
		"KAITO: tuning":                 {in: workspace("resource: {instanceType: x}\ntuning: {method: lora}"), not: []string{"Model"}, says: []string{"workspace/ml/w: tuning: fine-tuning is not scheduled as a model; run it as a Job"}},
		"KAITO: adapters and config":    {in: workspace("inference: {preset: {name: phi-4-mini}, config: c, adapters: [{source: {name: a, image: i}}]}"), says: []string{"inference.config: ", "inference.adapters: "}},
		"KAITO: a preset by repository": {in: workspace("inference: {preset: {name: microsoft/phi-4}}"), want: []string{"preset: phi-4\n"}},
		"KAITO: an unknown repository":  {in: workspace("inference: {preset: {name: example/unknown}}"), want: []string{"# Complete this object", "#     repository: example/unknown"}, says: []string{`no preset is called "example/unknown"`, "model/ml/w is written as a comment, because the size of the model is not known"}},
		"GPUStack: parameters": {
			in: gpustack("backend: vLLM\nbackend_parameters: [--max-model-len 4096, '--tensor-parallel-size', '2', --gpu-memory-utilization=0.8, --max-num-seqs=64, --enforce-eager, --dtype=half, --kv-cache-dtype=fp8, --seed, '-1', '--override-generation-config={\"a\": 1}', --max-num-batched-tokens=many]"),
			want: []string{"context: 4096", "tensor: 2", "gpuMemoryUtilization: 800m", "maxSequences: 64", "eager: true", "dtype: float16", "kvCacheBits: 8",
				"- --seed\n      - \"-1\"\n      - '--override-generation-config={\"a\": 1}'\n      - --max-num-batched-tokens=many"},
			says: []string{"passed to the server under server.args, without an effect on the estimate of its memory: --seed, --override-generation-config, --max-num-batched-tokens"},
		},
		"GPUStack: parameters of sglang":  {in: gpustack("backend: SGLang\nbackend_parameters: [--context-length=4096, --mem-fraction-static=0.8, --tp-size=2]"), want: []string{"context: 4096", "gpuMemoryUtilization: 800m", "tensor: 2", "backend: sglang"}},
		"GPUStack: an unknown backend":    {in: gpustack("backend: tgi\nimage_name: ghcr.io/tgi"), want: []string{"backend: custom", "image: ghcr.io/tgi"}, says: []string{`backend: Berth does not know "tgi"`}},
		"GPUStack: an unknown version":    {in: gpustack("backend: vLLM\nbackend_version: mine"), not: []string{"backendVersion"}, says: []string{`backend_version: the version "mine" is left out`}},
		"GPUStack: labels of workers":     {in: gpustack("worker_selector: {worker-name: a, os: linux, arch: amd64, zone: b}"), want: []string{"kubernetes.io/hostname: a", "kubernetes.io/os: linux", "kubernetes.io/arch: amd64", "zone: b"}},
		"GPUStack: defaults":              {in: gpustack(""), want: []string{"strategy: Spread"}, not: []string{"distributed", "replicas", "server"}},
		"GPUStack: a slice":               {in: gpustack("gpu_type_selector: {type: pool, accelerator_partitioned_profile: 3g.40gb, accelerator_sliced_memory_percentage: 50}"), want: []string{"partition: 3g.40gb"}, says: []string{"gpu_type_selector.type: ", "gpu_type_selector.accelerator_sliced_memory_percentage: "}},
		"GPUStack: settings":              {in: gpustack("lora_list: [{lora_name: a}]\nextended_kv_cache: {enabled: true}\nscaling_schedule: {enabled: true, rules: [{replicas: 2}]}\nrun_command: x\nrestart_on_error: false"), says: []string{"lora_list: ", "extended_kv_cache: ", "scaling_schedule: ", "run_command: ", "restart_on_error: "}},
		"GPUStack: a draft":               {in: gpustack("speculative_config: {enabled: true, algorithm: eagle3, draft_model: microsoft/Phi-4-mini-instruct, num_draft_tokens: 3}"), want: []string{"draft:\n    preset: phi-4-mini"}, says: []string{"speculative_config.algorithm: ", "speculative_config.num_draft_tokens: "}},
		"GPUStack: a local path":          {in: "name: m\nsource: local_path\nlocal_path: /nowhere/model.gguf\n", want: []string{"#     localPath: /nowhere/model.gguf"}, says: []string{"model/m is written as a comment, because spec.source: "}},
		"GPUStack: a GGUF file":           {in: gpustack("huggingface_filename: '*Q4_K_M.gguf'"), want: []string{"#     repository: meta-llama/Llama-3.1-8B-Instruct"}, says: []string{`the file "*Q4_K_M.gguf" is not read`}},
		"GPUStack: Ollama":                {in: "name: m\nsource: ollama\nollama_library_model_name: llama3\n", want: []string{"#   name: m"}, says: []string{`source: a model of the source "ollama" has no counterpart`, "ollama_library_model_name: "}},
		"GPUStack: conflicting numbers":   {in: gpustack("gpu_selector: {gpus_per_replica: 4}\nbackend_parameters: [--tensor-parallel-size=2]"), want: []string{"#   name: m"}, says: []string{"is 2 devices, not 4"}},
		"GPUStack: a name in upper case":  {in: "name: My_Model\nsource: huggingface\nhuggingface_repo_id: microsoft/phi-4\n", want: []string{"name: my-model"}, says: []string{`the model is named "my-model"`}},
		"kinds that are not converted":    {in: volcano("q", "") + "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n---\napiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n", says: []string{"2 Pod of v1: berth migrate does not convert this kind", "1 PodGroup of scheduling.volcano.sh/v1beta1: Berth reads it as it is"}},
		"fields that merge others":        {in: "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {<<: {weight: 7, odd: 1}}\n", want: []string{"weight: 7"}, says: []string{"queue/q: spec.odd: berth migrate does not know this field"}},
		"the fields that a server writes": {in: volcano("q", "weight: 2") + "status: {state: Open}\n", want: []string{"weight: 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, err := convert(t, x.in)
			if err != nil {
				t.Fatal(err)
			}
			simulate(t, out)
			for _, s := range x.want {
				if !strings.Contains(out, s) {
					t.Errorf("the manifests do not have %q:\n%s", s, out)
				}
			}
			for _, s := range x.not {
				if strings.Contains(out, s) {
					t.Errorf("the manifests have %q:\n%s", s, out)
				}
			}
			for _, s := range x.says {
				if !strings.Contains(notes, s) {
					t.Errorf("the notes do not have %q:\n%s", s, notes)
				}
			}
			if len(x.says) == 0 && strings.Contains(notes, "does not know") {
				t.Errorf("the notes have unknown fields:\n%s", notes)
			}
		})
	}
}

// TestManyUnknownFields checks that few fields of one object are named.
func TestManyUnknownFields(t *testing.T) {
	text := "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec:\n"
	for i := range 100 {
		text += "  f" + strings.Repeat("x", i) + ": 1\n"
	}
	_, notes, err := convert(t, text)
	if err != nil || strings.Count(notes, "\n") != mostUnknown || !strings.HasSuffix(notes, "queue/q: 80 other fields of the object have no counterpart either") {
		t.Errorf("%v:\n%s", err, notes)
	}
}
