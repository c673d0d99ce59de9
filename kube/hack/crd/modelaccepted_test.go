package main

import (
	"testing"

	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/kube/internal/crdtest"
	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// testAcceptedModels creates models that are unusual and valid, for the reader of manifests too.
func (s server) testAcceptedModels(t *testing.T) {
	tests := map[string]string{
		"memory alone":        "spec: {memory: {device: 1Gi}}",
		"null in fields":      "spec: {memory: {device: 1Gi}, replicas: null, backend: null, source: null, context: null, parallelism: null, placement: null, server: null, template: null}",
		"zeros":               "spec: {memory: {device: 1Gi}, replicas: 0, context: 0, sequences: 0, kvCacheBits: 0, microBatch: 0, parallelism: {tensor: 0, data: 0}, placement: {devicesPerReplica: 0}, server: {port: 0}}",
		"empty texts":         "spec: {memory: {device: 1Gi}, backend: '', backendVersion: '', dtype: '', quantization: '', queue: '', source: {preset: '', config: ''}, placement: {strategy: '', unit: '', partition: '', instanceType: ''}, server: {distribution: '', image: ''}}",
		"paths of files":      "spec: {source: {huggingFace: ../models/a}, draft: {localPath: /models/b}, adapters: [{name: a, path: adapters/a}]}",
		"config":              "spec: {source: {config: '{}', weights: 16Gi, repository: Qwen/Qwen3-8B}}",
		"a config over lines": "spec:\n  source:\n    weights: 1Gi\n    config: |\n      {\n      }\n",
		"alias of a backend":  "spec: {source: {preset: phi-4}, backend: Llama.CPP, microBatch: 64, flashAttention: true, kvCacheBits: 4}",
		"a GGUF file":         "spec: {source: {localPath: /models/a.GGUF}, flashAttention: false, fullWindowCache: true}",
		"versions":            "spec: {source: {preset: phi-4}, backendVersion: v0.10.1rc2+CU126}",
		"a preset of speech":  "spec: {source: {preset: whisper-small}}",
		"sixteen ranks":       "spec: {memory: {device: 1Gi}, parallelism: {tensor: 2, pipeline: 2, data: 4, expert: true}, placement: {devicesPerReplica: 16}}",
		"ranks alone":         "spec: {memory: {device: 1Gi}, parallelism: {data: 2}, placement: {devicesPerReplica: 4}}",
		"whole nodes":         "spec: {memory: {device: 1Gi}, placement: {unit: Node, instanceType: g5.xlarge, nodeSelector: {node.kubernetes.io/instance-type: g5.xlarge}}}",
		"devices":             "spec: {memory: {device: 1Gi}, placement: {devices: ['a:cuda:0', 'a:cuda:+1', 'a:cuda:-0', 'a:cuda:0001023']}}",
		"the most priority":   "spec: {memory: {device: 1Gi}, priority: 1000000000}",
		"the least priority":  "spec: {memory: {device: 1Gi}, priority: -1000000000}",
		"delays":              "spec: {memory: {device: 1Gi}, staleGrace: -1s, preemptionDelay: \"0\"}",
		"tolerations":         "spec: {memory: {device: 1Gi}, tolerations: [{operator: Exists}, {key: a/b, value: c, effect: NoSchedule}]}",
		"adapters":            "spec: {memory: {device: 1Gi}, adapters: [{name: a, memory: 0}, {name: b, memory: 1Gi}]}",
		"resources":           "spec: {memory: {device: 1Gi}, resources: {cpu: 500m, memory: 1.5Gi, example.com/nic: 2, 'a:b': 1}}",
		"server":              "spec: {memory: {device: 1Gi}, server: {image: a/b:1, command: [\"a\\nb\"], args: [--c], cache: {hostPath: /a..b}, tokenSecret: {name: a}, imagePullSecrets: [a, b.c]}}",
		"template":            "spec: {memory: {device: 1Gi}, template: {metadata: {labels: {a: b}}, spec: {schedulerName: '', containers: [{name: server, resources: {limits: {memory: 8Gi}}}], hostIPC: true}}}",
	}
	for _, b := range backend.All() {
		tests["backend "+b.Name] = "spec: {memory: {device: 1Gi}, backend: " + b.Name + "}"
	}
	for name, fields := range tests {
		t.Run(name, func(t *testing.T) {
			text := aModel("a", fields)
			if problem := modelProblem(text); problem != "" {
				t.Errorf("the reader of manifests: %s", problem)
			}
			if _, err := s.create(t.Context(), crdtest.Object(t, text), metav1.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// testModelStatus writes the status of a model, changes its replicas through the subresource
// scale, and reads the table of kubectl get.
func (s server) testModelStatus(t *testing.T) {
	const status = `
status:
  observedGeneration: 1
  group: {product: NVIDIA-L4, count: 2, memory: 24Gi, nodesPerReplica: 2}
  groupName: NVIDIA-L4 × 2, 24 GiB each
  nodesPerReplica: 2
  currentReplicas: 1
  readyReplicas: 1
  selector: berth.dev/model=chat
  conditions: [{type: Placed, status: "False", reason: InsufficientDevices, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  estimate: {form: 1 device, perDevice: "20198768640", parts: [{name: weights, memory: 15Gi}], assumed: [A sentence.]}
  workloads: [{kind: LeaderWorkerSet, name: chat-0, form: 2 nodes, replicas: 1}]
  replicas:
  - {replica: 0, state: Running, form: 2 nodes, pods: [chat-0], created: "2026-01-01T00:00:00Z", placements: [{task: leader-0, node: a, devices: [0, 1], started: "2026-01-01T00:00:00Z"}]}`
	created, err := s.create(t.Context(), crdtest.Object(t, aModel("chat", "spec: {source: {preset: phi-4}, template: {spec: {hostIPC: true}}}"+status)))
	if err != nil {
		t.Fatal(err)
	}
	if _, found := created.Object["status"]; found {
		t.Error("the status of a new model was not dropped")
	}
	spec := crdtest.Model(t, created).Spec
	if spec.Replicas == nil || *spec.Replicas != 1 || spec.Placement.Strategy != "Pack" || spec.Placement.Unit != "Device" || string(spec.Template.Raw) != `{"spec":{"hostIPC":true}}` {
		t.Errorf("defaults and template: %+v", spec)
	}
	change := crdtest.Object(t, aModel("chat", "spec: {replicas: 7}"+status))
	change.SetResourceVersion(created.GetResourceVersion())
	updated, err := s.UpdateStatus(t.Context(), change, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	got := crdtest.Model(t, updated)
	if diff := cmp.Diff(crdtest.Model(t, change).Status, got.Status); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	if *got.Spec.Replicas != 1 || updated.GetGeneration() != 1 {
		t.Errorf("an update of the status changed the spec: %d replicas, generation %d", *got.Spec.Replicas, updated.GetGeneration())
	}
	s.testScale(t)
	want := []string{"Name|Group|Ready|Desired|Nodes/Replica|Placed|Age", "chat|NVIDIA-L4 × 2, 24 GiB each|1|3|2|InsufficientDevices"}
	if diff := cmp.Diff(want, s.table(t)); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	read, err := s.Get(t.Context(), "chat", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := read.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if problem := modelProblem(string(data) + "\n"); problem != "" {
		t.Errorf("the reader of manifests does not read the object of the API server: %s", problem)
	}
	s.testWrongStatus(t, read.GetResourceVersion())
}

// testScale reads the scale of model chat, and raises it as kubectl scale does.
func (s server) testScale(t *testing.T) {
	t.Helper()
	u, err := s.Get(t.Context(), "chat", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	var scale autoscalingv1.Scale
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &scale); err != nil {
		t.Fatal(err)
	}
	want := autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}, Status: autoscalingv1.ScaleStatus{Replicas: 1, Selector: "berth.dev/model=chat"}}
	if diff := cmp.Diff(want.Spec, scale.Spec); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, scale.Status); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
	scale.Spec.Replicas = 3
	if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&scale); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("autoscaling/v1")
	u.SetKind("Scale")
	if _, err := s.Update(t.Context(), u, metav1.UpdateOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	read, err := s.Get(t.Context(), "chat", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m := crdtest.Model(t, read); *m.Spec.Replicas != 3 || m.Generation != 2 || m.Status.CurrentReplicas != 1 {
		t.Errorf("after the scale was raised: %d replicas, generation %d, status %+v", *m.Spec.Replicas, m.Generation, m.Status)
	}
}

// testWrongStatus writes values to the status that the definition does not allow.
func (s server) testWrongStatus(t *testing.T, version string) {
	for name, tc := range map[string]struct{ status, want string }{
		"nodes of a replica": {"group: {product: L4, count: 1, memory: 1Gi, nodesPerReplica: 65}", "status.group.nodesPerReplica: Invalid value: 65: group.nodesPerReplica in body should be less than or equal to 64"},
		"memory of devices":  {"group: {product: L4, count: 1, memory: 0, nodesPerReplica: 1}", "status.group.memory: Invalid value: 0: say the memory of each device, such as 80Gi; no device has more than 16Ti"},
		"replica twice":      {"replicas: [{replica: 1}, {replica: 1}]", `status.replicas[1]: Duplicate value: {"replica":1}`},
		"state":              {"replicas: [{replica: 1, state: running}]", `status.replicas[0].state: supported values: "", "Running", "Starting", "Failed"`},
		"kind":               {"workloads: [{kind: Pod, name: a, replicas: 1}]", `status.workloads[0].kind: supported values: "Deployment", "LeaderWorkerSet"`},
		"part":               {"estimate: {form: a, perDevice: 1x}", "status.estimate.perDevice: estimate.perDevice in body should match '" + reportedPattern + "'"},
	} {
		t.Run(name, func(t *testing.T) {
			u := crdtest.Object(t, aModel("chat", "spec: {source: {preset: phi-4}}\nstatus: {"+tc.status+"}"))
			u.SetResourceVersion(version)
			_, err := s.UpdateStatus(t.Context(), u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			if diff := cmp.Diff(tc.want, causes(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
