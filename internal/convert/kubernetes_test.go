package convert_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const gi = 1 << 30

// exported compares cluster objects by their exported fields. State sets the other fields.
var exported = cmp.Options{
	cmpopts.IgnoreUnexported(cluster.Node{}, cluster.Device{DeviceSpec: &cluster.DeviceSpec{}}, cluster.Job{}, cluster.Alternative{}, cluster.Task{}, cluster.Shape{}, cluster.Queue{}),
	cmpopts.EquateEmpty(),
}

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func compare(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, exported); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// unchanged returns a function that fails the test if the object is no longer as it
// was: informers share their objects, so that a conversion must not write to them.
func unchanged(t *testing.T, object any) func() {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		after, err := json.Marshal(object)
		if err != nil || string(before) != string(after) {
			t.Errorf("the object was\n%s\nand is\n%s\n(%v)", before, after, err)
		}
	}
}

func TestCoreNode(t *testing.T) {
	named := map[string]string{"metadata.name": "n"}
	notReady := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}
	tests := map[string]struct {
		object corev1.Node
		want   cluster.Node
		notes  convert.Notes
	}{
		"devices without labels: only their count is known": {
			corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "2")}},
			cluster.Node{Name: "n", Labels: named, DeviceResource: "nvidia.com/gpu",
				Resources: []cluster.Ledger{{Name: "cpu", Capacity: 8000}, {Name: "memory", Capacity: 32 * gi}},
				Devices: []cluster.Device{
					{DeviceSpec: &cluster.DeviceSpec{Product: "unknown", Type: "cuda", NUMA: -1, Resource: "nvidia.com/gpu"}, UUID: "GPU-n-0"},
					{DeviceSpec: &cluster.DeviceSpec{Product: "unknown", Type: "cuda", NUMA: -1, Resource: "nvidia.com/gpu"}, UUID: "GPU-n-1"},
				}},
			nil,
		},
		"a node that has not reported what is allocatable offers its capacity": {
			corev1.Node{Status: corev1.NodeStatus{Capacity: amounts("cpu", "500m")}},
			cluster.Node{Name: "n", Labels: named, Resources: []cluster.Ledger{{Name: "cpu", Capacity: 500}}},
			nil,
		},
		"cell, taints, unschedulable": {
			corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelCell: "east"}},
				Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}}},
			cluster.Node{Name: "n", Cell: "east", Labels: map[string]string{"metadata.name": "n", v1alpha1.LabelCell: "east"},
				Unschedulable: true, Taints: []cluster.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}}},
			nil,
		},
		"not ready": {
			corev1.Node{Status: notReady},
			cluster.Node{Name: "n", Labels: named, Phase: "NOT_READY"},
			convert.Notes{{Severity: convert.Inactive, Path: field.Path{"status", "conditions"}, Message: "not ready, taking no new tasks"}},
		},
		"a label is missing": {
			corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"nvidia.com/gpu.count": "2"}}},
			cluster.Node{Name: "n", Labels: map[string]string{"metadata.name": "n", "nvidia.com/gpu.count": "2"},
				DeviceResource: "nvidia.com/gpu", Defect: &cluster.Defect{Label: "nvidia.com/gpu.product", Problem: "is missing"}},
			convert.Notes{{Severity: convert.Ignored, Path: field.Path{"metadata", "labels", "nvidia.com/gpu.product"},
				Message: "with devices that could not be determined; tasks that need devices are not placed there",
				Detail:  "nvidia.com/gpu.product is missing"}},
		},
		"more devices than a node may have": {
			corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("amd.com/gpu", "5000")}},
			cluster.Node{Name: "n", Labels: named,
				Defect: &cluster.Defect{Label: "amd.com/gpu", Problem: "5000 devices are more than the 1024 that one node may have"}},
			convert.Notes{{Severity: convert.Ignored, Path: field.Path{"status", "allocatable", "amd.com/gpu"},
				Message: "with devices that could not be determined; tasks that need devices are not placed there",
				Detail:  "amd.com/gpu 5000 devices are more than the 1024 that one node may have"}},
		},
		"negative": {
			corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("cpu", "-1")}},
			cluster.Node{Name: "n", Labels: named, Resources: []cluster.Ledger{{Name: "cpu"}}},
			convert.Notes{{Path: field.Path{"status", "allocatable", "cpu"}, Message: "-1 is negative"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.object.Name = "n"
			check := unchanged(t, &tt.object)
			got, notes := convert.CoreNode(&tt.object)
			compare(t, &tt.want, got)
			compare(t, tt.notes, notes)
			check()
		})
	}
}

func TestPod(t *testing.T) {
	none := cluster.Resources{{Name: "cpu"}, {Name: "memory"}}
	byDefault := cluster.Resources{{Name: "cpu", Value: 100}, {Name: "memory", Value: 200 << 20}}
	shaped := func(s cluster.Shape) *cluster.Job {
		return &cluster.Job{ID: "pod/default/p", Namespace: "default", Chosen: -1,
			Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: &s}}}}}
	}
	plain := func() *cluster.Job { return shaped(cluster.Shape{Resources: none, LeftOut: byDefault}) }
	container := func(r corev1.ResourceRequirements) []corev1.Container { return []corev1.Container{{Resources: r}} }
	ignored := func(message string, at ...any) convert.Note {
		return convert.Note{Severity: convert.Ignored, Path: at, Message: message}
	}
	byTeam := corev1.PodAffinityTerm{TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	tests := map[string]struct {
		object      corev1.Pod
		environment convert.Environment
		want        *cluster.Job
		notes       convert.Notes
	}{
		"only limits: they are its requests": {
			object: corev1.Pod{Spec: corev1.PodSpec{Containers: container(corev1.ResourceRequirements{Limits: amounts("cpu", "2", "memory", "2Gi", "nvidia.com/gpu", "1")})}},
			want: shaped(cluster.Shape{Resources: cluster.Resources{{Name: "cpu", Value: 2000}, {Name: "memory", Value: 2 * gi}},
				Need: cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}}),
		},
		"no requests": {object: corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}, want: plain()},
		"where nodes count pods, a pod requests one": {
			object:      corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}},
			environment: convert.Environment{PodsCounted: true},
			want:        shaped(cluster.Shape{Resources: cluster.Resources{{Name: "cpu"}, {Name: "memory"}, {Name: "pods", Value: 1}}, LeftOut: byDefault}),
		},
		"a resource that nodes count devices under": {
			object:      corev1.Pod{Spec: corev1.PodSpec{Containers: container(corev1.ResourceRequirements{Requests: amounts("cpu", "1", "memory", "1Gi", "example.com/npu", "2")})}},
			environment: convert.Environment{DeviceResources: map[string]bool{"example.com/npu": true}},
			want: shaped(cluster.Shape{Resources: cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: gi}},
				Need: cluster.Need{Devices: 2, Resource: "example.com/npu"}}),
		},
		"a queue that makes its workloads preemptible": {
			object:      corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelQueue: "spare"}}},
			environment: convert.Environment{Scavengers: map[string]string{"spare": "idle"}},
			want: &cluster.Job{ID: "pod/default/p", Namespace: "default", Queue: "spare", Chosen: -1, Preemptible: true,
				Labels:     map[string]string{v1alpha1.LabelQueue: "spare"},
				JobDetails: &cluster.JobDetails{Remarks: []string{"Preemptible: queue idle is of the Scavenger tier, and the workload does not say otherwise."}},
				Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "0",
					Shape: &cluster.Shape{Resources: none, Preemptible: true}}}}}},
		},
		"fields that are not read": {
			object: corev1.Pod{Spec: corev1.PodSpec{
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}},
				ResourceClaims:            []corev1.PodResourceClaim{{Name: "gpu"}},
				Containers:                []corev1.Container{{}, {Ports: []corev1.ContainerPort{{}, {HostPort: 80}, {HostPort: 81}}}},
				Volumes:                   []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}},
				Tolerations:               []corev1.Toleration{{Key: "a", Operator: "Exists"}, {Key: "b", Operator: "Lt", Value: "5"}},
			}},
			want: shaped(cluster.Shape{Resources: none, LeftOut: cluster.Resources{{Name: "cpu", Value: 200}, {Name: "memory", Value: 400 << 20}},
				Tolerations: []cluster.Toleration{{Key: "a", Operator: "Exists"}}}),
			notes: convert.Notes{
				ignored("with topologySpreadConstraints, which berth does not read", "spec", "topologySpreadConstraints"),
				ignored("with resourceClaims, which berth does not read", "spec", "resourceClaims"),
				ignored("with hostPort, which berth does not read", "spec", "containers", 1, "ports", 1, "hostPort"),
				ignored("with persistentVolumeClaim, which berth does not read", "spec", "volumes", 0, "persistentVolumeClaim"),
				ignored("with a toleration by Lt, which berth does not read", "spec", "tolerations", 1, "operator"),
			},
		},
		"namespaces by label": {
			object: corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1), Affinity: &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{byTeam}}}}},
			want: func() *cluster.Job {
				j := plain()
				j.OwnDetails().Affinity = []cluster.JobTerm{{Within: "zone", Anti: true}}
				return j
			}(),
			notes: convert.Notes{ignored("with a namespace selector by label; only the names of namespaces are known",
				"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0, "namespaceSelector")},
		},
		"fields that are not read do not matter for a pod that runs": {
			object: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: make([]corev1.Container, 1),
				ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}},
			want: plain(),
		},
		"held back": {
			object: corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "quota"}}}},
			notes:  convert.Notes{{Severity: convert.Inactive, Path: field.Path{"spec", "schedulingGates"}, Message: "held back by scheduling gates, not scheduled"}},
		},
		"ended": {object: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}},
		"two kinds of device": {
			object: corev1.Pod{Spec: corev1.PodSpec{Containers: container(corev1.ResourceRequirements{Limits: amounts("cpu", "1", "memory", "1Gi", "amd.com/gpu", "1", "nvidia.com/gpu", "1")})}},
			want: shaped(cluster.Shape{Resources: cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: gi}},
				Need: cluster.Need{Devices: 1, Resource: "amd.com/gpu"}}),
			notes: convert.Notes{{Path: field.Path{"spec", "containers"},
				Message: "the pod asks for both amd.com/gpu and nvidia.com/gpu; ask for one kind of device, or split the pod"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.object.Name = "p"
			check := unchanged(t, &tt.object)
			got, notes := convert.Pod(&tt.object, &tt.environment)
			if tt.want != nil && tt.want.JobDetails == nil {
				tt.want.OwnDetails()
			}
			compare(t, tt.want, got)
			compare(t, tt.notes, notes)
			check()
		})
	}
}

func TestPodPlacement(t *testing.T) {
	start := metav1.NewTime(time.Unix(7, 0))
	pod := corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{StartTime: &start}}
	if got, ok := convert.PodPlacement(&pod); !ok || got != (convert.Placement{Node: "n", Started: 7e9}) {
		t.Errorf("%+v, %t", got, ok)
	}
	pod.DeletionTimestamp = &start
	if got, _ := convert.PodPlacement(&pod); !got.Releasing {
		t.Errorf("a pod that was deleted: %+v", got)
	}
	if _, ok := convert.PodPlacement(&corev1.Pod{}); ok {
		t.Error("a pending pod has a placement")
	}
}

func TestPodDisruptionBudget(t *testing.T) {
	third, two := intstr.FromString("30%"), intstr.FromInt32(2)
	all := cluster.Term{{Operator: cluster.DoesNotExist}}
	tests := map[string]struct {
		spec  policyv1.PodDisruptionBudgetSpec
		want  cluster.Budget
		notes convert.Notes
	}{
		"a percentage": {
			policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &third, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			cluster.Budget{Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"a"}}}, Bound: 30, Percent: true, Unavailable: true}, nil,
		},
		"no bound, no selector":        {policyv1.PodDisruptionBudgetSpec{}, cluster.Budget{}, nil},
		"an empty selector covers all": {policyv1.PodDisruptionBudgetSpec{MinAvailable: &two, Selector: &metav1.LabelSelector{}}, cluster.Budget{Selector: all, Bound: 2}, nil},
		"both bounds": {
			policyv1.PodDisruptionBudgetSpec{MinAvailable: &two, MaxUnavailable: &two},
			cluster.Budget{Bound: 2, Unavailable: true},
			convert.Notes{{Path: field.Path{"spec", "maxUnavailable"}, Message: "minAvailable and maxUnavailable both say how many may be missing; keep one"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Name, tt.want.Namespace = "b", "default"
			got, notes := convert.PodDisruptionBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: tt.spec})
			compare(t, &tt.want, got)
			compare(t, tt.notes, notes)
		})
	}
}
