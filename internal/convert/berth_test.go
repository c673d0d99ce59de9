package convert_test

import (
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func to[T any](v T) *T { return &v }

func TestNode(t *testing.T) {
	tests := map[string]struct {
		object v1alpha1.Node
		want   cluster.Node
		notes  convert.Notes
	}{
		"devices": {
			v1alpha1.Node{Spec: v1alpha1.NodeSpec{Resources: amounts("cpu", "4"), Devices: v1alpha1.DeviceSets{
				{Product: "L4", Count: 2, Memory: resource.MustParse("24Gi"), Lost: []int{1}}}}},
			cluster.Node{Name: "n", DeviceResource: "nvidia.com/gpu", Resources: []cluster.Ledger{{Name: "cpu", Capacity: 4000}},
				Devices: []cluster.Device{
					{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Memory: 24 * gi, NUMA: -1}, UUID: "GPU-n-0"},
					{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Memory: 24 * gi, NUMA: -1}, UUID: "GPU-n-1", Lost: true},
				}},
			nil,
		},
		"a cell is a label as well": {
			v1alpha1.Node{Spec: v1alpha1.NodeSpec{Cell: "east"}},
			cluster.Node{Name: "n", Cell: "east", Labels: map[string]string{v1alpha1.LabelCell: "east"}}, nil,
		},
		"a phase and files": {
			v1alpha1.Node{Status: v1alpha1.NodeStatus{State: "DRAINING", Files: map[string]string{"llama": "READY"}}},
			cluster.Node{Name: "n", Phase: "DRAINING", Artifacts: map[string]cluster.ArtifactState{"llama": cluster.Ready}}, nil,
		},
		"every mistake": {
			v1alpha1.Node{Spec: v1alpha1.NodeSpec{Resources: amounts("memory", "-1"), DeviceResource: "example.com/npu",
				Isolation: &v1alpha1.NodeIsolation{CPU: []string{"WholeCores"}}}},
			cluster.Node{Name: "n", Resources: []cluster.Ledger{{Name: "memory"}}, SupportedIsolation: cluster.SupportedIsolation{CPU: []cluster.CPUClass{"WholeCores"}}},
			convert.Notes{
				{Path: field.Path{"spec", "isolation", "cpu", 0}, Message: `unknown value "WholeCores"; did you mean WholeCore?`},
				{Path: field.Path{"spec", "resources", "memory"}, Message: "-1 is negative"},
				{Path: field.Path{"spec", "deviceResource"}, Message: "the node lists no devices that could be counted under this name"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.object.Name = "n"
			defer unchanged(t, &tt.object)()
			got, notes := convert.Node(&tt.object)
			compare(t, &tt.want, got)
			compare(t, tt.notes, notes)
			if notes.Invalid() != (tt.notes != nil) {
				t.Errorf("Invalid() = %t", notes.Invalid())
			}
		})
	}
}

func TestQueue(t *testing.T) {
	tests := map[string]struct {
		spec        v1alpha1.QueueSpec
		environment convert.Environment
		want        cluster.Queue
		notes       convert.Notes
	}{
		"nothing given": {want: cluster.Queue{Weight: 1}},
		"devices are counted in thousandths": {
			spec:        v1alpha1.QueueSpec{Limits: amounts("nvidia.com/gpu", "2", "nvidia.com/gpu:L4", "1", "example.com/npu", "3", "cpu", "4")},
			environment: convert.Environment{DeviceResources: map[string]bool{"example.com/npu": true}},
			want: cluster.Queue{Weight: 1, Limits: cluster.Resources{
				{Name: "cpu", Value: 4000}, {Name: "example.com/npu", Value: 3000}, {Name: "nvidia.com/gpu", Value: 2000}, {Name: "nvidia.com/gpu:L4", Value: 1000}}},
		},
		"an unlimited quota, and no weight": {
			spec: v1alpha1.QueueSpec{Weight: to(int64(0)), Quota: map[corev1.ResourceName]v1alpha1.QuotaAmount{"cpu": {Unlimited: true}}},
			want: cluster.Queue{Weightless: true, Quota: cluster.Resources{{Name: "cpu", Value: cluster.Unlimited}}},
		},
		"a product of what is no device": {
			spec:        v1alpha1.QueueSpec{Limits: amounts("example.com/disk:ssd", "1")},
			environment: convert.Environment{DeviceResources: map[string]bool{}},
			want:        cluster.Queue{Weight: 1, Limits: cluster.Resources{{Name: "example.com/disk:ssd", Value: 1000}}},
			notes: convert.Notes{{Path: field.Path{"spec", "limits", "example.com/disk:ssd"},
				Message: `only devices have products, and none are called "example.com/disk"; known: amd.com/gpu, gpu.intel.com/i915, gpu.intel.com/xe, habana.ai/gaudi, huawei.com/Ascend910, nvidia.com/gpu, nvidia.com/gpu.shared`}},
		},
		"a resource with a domain, while no nodes are known, may be devices": {
			spec: v1alpha1.QueueSpec{Limits: amounts("example.com/disk:ssd", "1")},
			want: cluster.Queue{Weight: 1, Limits: cluster.Resources{{Name: "example.com/disk:ssd", Value: 1000}}},
		},
		"a fraction of it is accepted, and rounded up": {
			spec: v1alpha1.QueueSpec{Limits: amounts("example.com/npu", "1500m")},
			want: cluster.Queue{Weight: 1, Limits: cluster.Resources{{Name: "example.com/npu", Value: 2}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Name = "q"
			o := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: tt.spec}
			defer unchanged(t, o)()
			got, notes := convert.Queue(o, &tt.environment)
			compare(t, &tt.want, got)
			compare(t, tt.notes, notes)
		})
	}
}

func TestJob(t *testing.T) {
	base := cluster.Resources{{Name: "cpu", Value: 1000}, {Name: "memory", Value: gi}}
	requests := amounts("cpu", "1", "memory", "1Gi")
	tests := map[string]struct {
		spec  v1alpha1.JobSpec
		want  []cluster.Alternative
		notes convert.Notes
	}{
		"two replicas of one device": {
			v1alpha1.JobSpec{Tasks: []v1alpha1.Task{{Name: "w", Replicas: to(2), Resources: requests, Devices: &v1alpha1.DeviceNeed{}}}},
			[]cluster.Alternative{{Min: 2, Tasks: []*cluster.Task{
				{Name: "w-0", Role: "w", Shape: &cluster.Shape{Resources: base, Need: cluster.Need{Devices: 1}}},
				{Name: "w-1", Role: "w", Index: 1, Shape: &cluster.Shape{Resources: base, Need: cluster.Need{Devices: 1}}},
			}}}, nil,
		},
		"one alternative for each cell": {
			v1alpha1.JobSpec{Cells: []string{"a", "b"}, Tasks: []v1alpha1.Task{{Name: "w", Resources: requests}}},
			[]cluster.Alternative{
				{Name: "in a", Min: 1, Tasks: []*cluster.Task{{Name: "w-0", Role: "w", Shape: &cluster.Shape{Resources: base, Cell: "a"}}}},
				{Name: "in b", Min: 1, Tasks: []*cluster.Task{{Name: "w-0", Role: "w", Shape: &cluster.Shape{Resources: base, Cell: "b"}}}},
			}, nil,
		},
		"no tasks": {
			v1alpha1.JobSpec{}, nil,
			convert.Notes{{Path: field.Path{"spec", "tasks"}, Message: "the job has no tasks; add one such as {name: worker, devices: {count: 1}}"}},
		},
		"devices as a resource": {
			v1alpha1.JobSpec{Tasks: []v1alpha1.Task{{Name: "w", Resources: amounts("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "4")}}},
			[]cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: "w-0", Role: "w", Shape: &cluster.Shape{Resources: base}}}}},
			convert.Notes{{Path: field.Path{"spec", "tasks", 0, "resources", "nvidia.com/gpu"}, Message: "ask for devices under devices: {count: 4}"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "lab"}, Spec: tt.spec}
			defer unchanged(t, o)()
			got, notes := convert.Job(o, &convert.Environment{})
			compare(t, &cluster.Job{ID: "job/lab/j", Namespace: "lab", Chosen: -1, JobDetails: &cluster.JobDetails{}, Alternatives: tt.want}, got)
			compare(t, tt.notes, notes)
		})
	}
}

func TestModel(t *testing.T) {
	o := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.ModelSpec{
		Source: v1alpha1.ModelSource{Preset: "phi-4"}, Replicas: to(3), Context: 8192}}
	check := unchanged(t, o)
	s, notes := convert.Model(o, &convert.Environment{})
	if len(notes) > 0 || s.ID != "model/m" || s.Replicas != 3 || s.Serving.Context != 8192 || s.Backend == nil || s.Backend.Name != "vllm" || s.Source != nil {
		t.Errorf("%+v, %v", s, notes)
	}
	check()
	o.Spec = v1alpha1.ModelSpec{KVCacheBits: 5, Replicas: to(-1)}
	_, notes = convert.Model(o, &convert.Environment{})
	compare(t, convert.Notes{
		{Path: field.Path{"spec", "replicas"}, Message: "want from 0 to 10000, have -1"},
		{Path: field.Path{"spec", "kvCacheBits"}, Message: "want 16, 8 or 4, have 5"},
		{Path: field.Path{"spec", "source"}, Message: "say where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory"},
	}, notes)
}

// A wrong isolation class of a model is reported once.
func TestModelIsolation(t *testing.T) {
	_, notes := convert.Model(&v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.ModelSpec{
		Source: v1alpha1.ModelSource{Preset: "phi-4"}, Isolation: &v1alpha1.Isolation{CPU: "WholeCores"}}}, &convert.Environment{})
	compare(t, convert.Notes{{Path: field.Path{"spec", "isolation", "cpu"}, Message: `unknown value "WholeCores"; did you mean WholeCore?`}}, notes)
}

// Notes about several fields of one object are in the order of the fields.
func TestOrderOfNotes(t *testing.T) {
	paths := func(notes convert.Notes) []string {
		var out []string
		for _, n := range notes {
			out = append(out, n.Path.String())
		}
		return out
	}
	meta := metav1.ObjectMeta{Name: "x"}
	early := metav1.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 20 { // the order of a map may be right by chance
		_, model := convert.Model(&v1alpha1.Model{ObjectMeta: meta, Spec: v1alpha1.ModelSpec{Source: v1alpha1.ModelSource{Preset: "phi-4"},
			Context: -1, Sequences: -1, BatchTokens: -1, Parallelism: &v1alpha1.Parallelism{Tensor: -1, Pipeline: -1}}}, &convert.Environment{})
		compare(t, []string{"spec.context", "spec.sequences", "spec.batchTokens", "spec.parallelism.tensor", "spec.parallelism.pipeline"}, paths(model))
		_, node := convert.Node(&v1alpha1.Node{ObjectMeta: meta, Spec: v1alpha1.NodeSpec{Devices: v1alpha1.DeviceSets{
			{Product: "L4", Count: 1, Memory: resource.MustParse("24Gi"), UUIDs: []string{"a", "b"}, NUMA: []int{0, 1}, Links: []string{"a", "b"}}}}})
		compare(t, []string{"spec.devices[0].uuids", "spec.devices[0].numa", "spec.devices[0].links"}, paths(node))
		_, job := convert.Job(&v1alpha1.Job{ObjectMeta: meta, Spec: v1alpha1.JobSpec{Placement: &v1alpha1.Placement{Unit: "Node"}, Tasks: []v1alpha1.Task{{Name: "w",
			Devices: &v1alpha1.DeviceNeed{Memory: to(resource.MustParse("1Gi")), Share: to(resource.MustParse("1")), Partition: "1g.10gb"}}}}}, &convert.Environment{})
		compare(t, []string{"spec.tasks[0].devices.memory", "spec.tasks[0].devices.share", "spec.tasks[0].devices.partition"}, paths(job))
		_, queue := convert.Queue(&v1alpha1.Queue{ObjectMeta: meta, Status: v1alpha1.QueueStatus{Usage: []v1alpha1.QueueUsage{{From: early, To: early}}}}, &convert.Environment{})
		compare(t, []string{"status.usage[0].from", "status.usage[0].to"}, paths(queue))
	}
}

// A time is reported if State cannot count it. The beginning of 1970 is 0 in State, which
// means that the time is not known.
func TestTimes(t *testing.T) {
	const wrong = "want a time from 1970 to 2200, have "
	for text, want := range map[string]string{
		"1970-01-01T00:00:01Z":      "",
		"1969-12-31T23:30:00-05:00": "",
		"2200-12-31T23:59:59Z":      "",
		"1970-01-01T00:00:00Z":      "1970-01-01T00:00:00Z stands for a time that is not known; write a later time, or leave it out",
		"0001-01-01T00:00:00Z":      wrong + "0001-01-01T00:00:00Z",
		"1969-12-31T23:59:59Z":      wrong + "1969-12-31T23:59:59Z",
		"2201-01-01T00:00:00Z":      wrong + "2201-01-01T00:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		var notes convert.Notes
		if want != "" {
			notes = convert.Notes{{Path: field.Path{"now"}, Message: want}}
		}
		compare(t, notes, convert.Scenario(&v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Now: &metav1.Time{Time: at}, Expect: v1alpha1.Expectation{Pending: []string{"job/a"}}}))
	}
}

func TestDisruptionBudget(t *testing.T) {
	two, much := intstr.FromInt32(2), intstr.FromString("120%")
	of := v1alpha1.JobSelector{MatchLabels: map[string]string{"app": "a"}}
	term := cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"a"}}}
	tests := map[string]struct {
		spec  v1alpha1.DisruptionBudgetSpec
		want  cluster.Budget
		notes convert.Notes
	}{
		"a number": {v1alpha1.DisruptionBudgetSpec{Selector: of, MinAvailable: &two}, cluster.Budget{Selector: term, Bound: 2}, nil},
		"more than all": {
			v1alpha1.DisruptionBudgetSpec{Selector: of, MinAvailable: &much}, cluster.Budget{Selector: term},
			convert.Notes{{Path: field.Path{"spec", "minAvailable"}, Message: `want a number of tasks such as 2, or a percentage from 0% to 100%, have "120%"`}},
		},
		"nothing": {
			v1alpha1.DisruptionBudgetSpec{}, cluster.Budget{},
			convert.Notes{
				{Path: field.Path{"spec", "selector"}, Message: "say which jobs: matchLabels or matchExpressions"},
				{Path: field.Path{"spec"}, Message: "say minAvailable or maxUnavailable, such as 2 or 30%"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Name, tt.want.Namespace = "b", "lab"
			got, notes := convert.DisruptionBudget(&v1alpha1.DisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "lab"}, Spec: tt.spec})
			compare(t, &tt.want, got)
			compare(t, tt.notes, notes)
		})
	}
}

// A configuration and a scenario are not part of State, and are only checked.
func TestChecks(t *testing.T) {
	compare(t, convert.Notes{
		{Path: field.Path{"plugins", 1, "name"}, Message: `plugin "A" is already configured as plugins[0]; merge the two entries`},
		{Path: field.Path{"plugins", 1, "before"}, Message: "a plugin that is disabled has no place; remove before, or disabled"},
	}, convert.Configuration(&v1alpha1.SchedulerConfiguration{Plugins: []v1alpha1.PluginConfig{{Name: "A"}, {Name: "A", Disabled: true, Before: "B"}}}))
	o := &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Expect: v1alpha1.Expectation{Pending: []string{""}}}
	compare(t, convert.Notes{
		{Path: field.Path{"expect", "pending", 0}, Message: "say which workload, such as job/train"},
	}, convert.Scenario(o))
}

// Quantity is the inverse of the conversion of a limit.
func TestQuantity(t *testing.T) {
	env := convert.Environment{DeviceResources: map[string]bool{"example.com/npu": true}}
	for name, text := range map[string]string{
		"cpu": "1500m", "memory": "80Gi", "hugepages-2Mi": "64Mi", "pods": "110", "example.com/license": "3", "example.com/npu": "2500m",
		"nvidia.com/gpu": "4", "nvidia.com/gpu:H100": "500m", "nvidia.com/mig-1g.10gb": "7", "habana.ai/gaudi": "8",
	} {
		q, notes := convert.Queue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.QueueSpec{Limits: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(text)}}}, &env)
		if len(notes) > 0 {
			t.Errorf("%s: %v", name, notes)
			continue
		}
		if got := env.Quantity(name, q.Limits.Of(name)); got.String() != text {
			t.Errorf("%s: want %s, have %s", name, text, got.String())
		}
	}
}
