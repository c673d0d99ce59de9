package feed

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// modelPod returns a pod of the model chat that requests whole devices, with the annotation.
func modelPod(t *testing.T, gpus string, task any) *corev1.Pod {
	t.Helper()
	p := podWith(map[string]string{"cpu": "1"})
	if gpus != "" {
		p = podWith(map[string]string{"nvidia.com/gpu": gpus})
	}
	p.Spec.SchedulerName = "berth-scheduler"
	p.UID, p.ResourceVersion = "1", "1"
	p.Labels = map[string]string{LabelModel: "chat"}
	text, isText := task.(string)
	if !isText {
		b, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	p.Annotations = map[string]string{AnnotationModelTask: text}
	return p
}

// TestModelTask reads pods of models. A pod that requests more of the kubelet than its annotation
// says, or parts of devices that cannot be enforced, is not placed.
func TestModelTask(t *testing.T) {
	created := metav1.Unix(1000, 0)
	task := func(n cluster.Need) ModelTask {
		return ModelTask{Model: "chat", Created: &created, Priority: 7, Need: n, Strategy: cluster.Spread, Backend: "vllm", Files: cluster.Files{Main: "chat"}, Cell: "east"}
	}
	other := task(cluster.Need{Devices: 1})
	other.Model = "other"
	unknown := task(cluster.Need{Devices: 1})
	unknown.Strategy = "Best"
	for name, tt := range map[string]struct {
		pod      *corev1.Pod
		enforced bool
		problem  string // "" if the pod is read
	}{
		"whole devices":            {modelPod(t, "2", task(cluster.Need{Devices: 2, SumAtLeast: 1 << 30})), false, ""},
		"a share of 1":             {modelPod(t, "1", task(cluster.Need{Devices: 1, Share: cluster.Whole})), false, ""},
		"a whole node":             {modelPod(t, "8", task(cluster.Need{WholeNode: true})), false, ""},
		"a part":                   {modelPod(t, "", task(cluster.Need{Devices: 1, Share: 500})), true, ""},
		"no device":                {modelPod(t, "", task(cluster.Need{})), false, ""},
		"a part that is not given": {modelPod(t, "", task(cluster.Need{Devices: 1, Memory: 1 << 30})), false, "cannot be enforced here"},
		"a part beside a device":   {modelPod(t, "1", task(cluster.Need{Devices: 1, Share: 100})), true, "the containers request whole devices"},
		"fewer than requested":     {modelPod(t, "8", task(cluster.Need{Devices: 1})), false, "another number of devices"},
		"none, but requested":      {modelPod(t, "8", task(cluster.Need{})), true, "another number of devices"},
		"a node without devices":   {modelPod(t, "", task(cluster.Need{WholeNode: true})), true, "another number of devices"},
		"of another model":         {modelPod(t, "1", other), false, "not about the model"},
		"no strategy":              {modelPod(t, "1", unknown), false, "strategy is not known"},
		"negative":                 {modelPod(t, "1", task(cluster.Need{Devices: -1})), false, "not valid"},
		"no JSON":                  {modelPod(t, "1", "{"), false, "cannot be read"},
		"a list":                   {modelPod(t, "1", "[]"), false, "cannot be read"},
		"layers":                   {modelPod(t, "", task(cluster.Need{Devices: 1, Layers: &cluster.Layers{}})), true, "not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(Options{SchedulerNames: []string{"berth-scheduler"}, DevicesEnforced: tt.enforced})
			facts, notes := f.PutPod(tt.pod)
			invalid := ""
			for _, n := range notes {
				if n.Severity == convert.Invalid {
					invalid += n.Message
				}
			}
			if tt.problem != "" {
				if len(facts) > 0 || !strings.Contains(invalid, tt.problem) {
					t.Errorf("%d facts, %q; want %q", len(facts), invalid, tt.problem)
				}
				return
			}
			if invalid != "" || len(facts) != 1 {
				t.Fatalf("%d facts, %q", len(facts), invalid)
			}
			j := facts[0].(cluster.JobPut).Job
			if s := j.Alternatives[0].Tasks[0].Shape; j.Set.Name != "model/ml/chat" || j.Created != created.UnixNano() || j.Priority != 7 || s.Strategy != cluster.Spread || s.Backend != "vllm" || s.Files.Main != "chat" || s.Cell != "east" {
				t.Errorf("%+v %+v", j, s)
			}
		})
	}
}

// TestReplicas: with Options.Replicas, pods without a node are no tasks, and the health of replicas
// is reported.
func TestReplicas(t *testing.T) {
	f := New(Options{SchedulerNames: []string{"berth-scheduler"}, Replicas: true})
	p := modelPod(t, "1", ModelTask{Model: "chat", Need: cluster.Need{Devices: 1}, Strategy: cluster.Binpack, Backend: "vllm"})
	if facts, _ := f.PutPod(p); len(facts) > 0 {
		t.Errorf("a pod without a node is %v", facts)
	}
	s := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(8, "A100", "80Gi"))
	for i, tt := range []struct {
		status corev1.PodStatus
		want   cluster.Health
	}{
		{corev1.PodStatus{}, cluster.HealthStarting},
		{corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, cluster.HealthRunning},
		{corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}, cluster.HealthFailed},
	} {
		own := p.DeepCopy()
		own.Spec.NodeName, own.Status, own.ResourceVersion = "a", tt.status, string(rune('2'+i))
		facts, _ := f.PutPod(Strip(own).(*corev1.Pod))
		if err := s.ApplyAll(facts); err != nil {
			t.Fatal(err)
		}
		if j := s.Job("pod/ml/" + p.Name); j == nil || j.Health != tt.want {
			t.Errorf("%+v, want %q", j, tt.want)
		}
	}
}
