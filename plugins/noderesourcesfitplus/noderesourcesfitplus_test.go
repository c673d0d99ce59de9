package noderesourcesfitplus

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func built(t testing.TB, args engine.Arguments) *plugin {
	t.Helper()
	p, err := New(args)
	if err != nil {
		t.Fatal(err)
	}
	return p.(*plugin)
}

func shape(b *enginetest.JobBuilder) *cluster.Shape { return b.Build().Tasks()[0].Shape }

// machine returns a node with 96 cores, 512 GiB and 8 devices.
func machine() *enginetest.NodeBuilder {
	return enginetest.Node("n").CPU(96, "512Gi").GPUs(8, "A100", "80Gi")
}

func with(n *enginetest.NodeBuilder, jobs ...*enginetest.JobBuilder) *cluster.Node {
	parts := []enginetest.Part{n}
	for _, j := range jobs {
		parts = append(parts, j.On("n"))
	}
	return enginetest.State(parts...).Node("n")
}

// leftOut makes each task of the job one container.
func leftOut(b *enginetest.JobBuilder) *enginetest.JobBuilder {
	return b.Shape(func(s *cluster.Shape) { s.LeftOut = cluster.LeftOut(s.Resources) })
}

// noCPU adds a container that requests no cpu.
func noCPU(s *cluster.Shape) {
	s.LeftOut = cluster.Resources{{Name: cluster.CPU, Value: int64(cluster.DefaultCPU)}}
}

func TestScore(t *testing.T) {
	job := enginetest.Job
	task := shape(job("j").CPU(16000, "32Gi").Devices(2))
	gpus := engine.Arguments(enginetest.Arguments(`{"resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 1}}}`))
	slices := enginetest.Arguments(`{"resources": {"nvidia.com/mig-1g.10gb": {"type": "MostAllocated", "weight": 1}}}`)
	cpu := enginetest.Arguments(`{"resources": {"cpu": {"type": "LeastAllocated", "weight": 3}}}`)
	need := func(n cluster.Need) *cluster.Shape {
		return shape(job("j").Shape(func(s *cluster.Shape) { s.Need = n }))
	}
	tests := map[string]struct {
		args  engine.Arguments
		shape *cluster.Shape
		node  *cluster.Node
		want  float64
	}{
		"N1, partly used":      {engine.NoArguments{}, task, with(machine(), job("x").CPU(16000, "32Gi").Devices(4)), 75},
		"N2, empty":            {engine.NoArguments{}, task, with(machine()), 56},
		"no devices requested": {engine.NoArguments{}, shape(job("j").CPU(16000, "32Gi")), with(machine()), (83 + 93) / 2},
		// A resource that is not requested does not count, however full the node is.
		"nothing requested":                          {engine.NoArguments{}, shape(leftOut(job("j"))), with(machine()), 100},
		"devices alone requested":                    {engine.NoArguments{}, shape(leftOut(job("j").Devices(2))), with(machine(), job("x").CPU(96000, "512Gi")), 25},
		"another container requests none":            {cpu, shape(job("j").CPU(500, "1Gi").Shape(noCPU)), with(enginetest.Node("n").CPU(1, "1Gi")), 40},
		"running tasks request none":                 {cpu, shape(job("j").CPU(500, "1Gi")), with(enginetest.Node("n").CPU(1, "1Gi"), leftOut(job("x")), leftOut(job("y"))), 30},
		"default requests above the capacity":        {cpu, shape(job("j").CPU(1, "1Gi")), with(enginetest.Node("n").CPU(0, "1Gi").Resource("cpu", 150), leftOut(job("x")), leftOut(job("y"))), 0},
		"no configured resource is requested":        {gpus, shape(job("j").CPU(16000, "32Gi")), with(machine()), 100},
		"more than the capacity":                     {cpu, shape(job("j").CPU(97000, "1Gi")), with(machine()), 0},
		"devices on a node without devices":          {gpus, shape(job("j").Devices(1)), with(enginetest.Node("n").CPU(1, "1Gi")), 0},
		"a resource that the node lacks counts as 0": {engine.NoArguments{}, shape(job("j").CPU(48000, "256Gi").Devices(1)), with(enginetest.Node("n").CPU(96, "512Gi")), 25},
		"another resource name":                      {gpus, shape(job("j").Devices(1)), with(machine().With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })), 100},
		"another resource name is requested":         {gpus, need(cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}), with(machine().With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })), 0},

		"share":                          {gpus, shape(job("j").Share(2, 500)), with(machine(), job("x").Share(1, 500)), 18},
		"memory of a device":             {gpus, shape(job("j").DeviceMemory(4, "40Gi")), with(machine()), 25},
		"exclusive counts whole devices": {gpus, shape(job("j").Share(2, 500).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive})), with(machine()), 25},
		"whole node":                     {gpus, need(cluster.Need{WholeNode: true}), with(machine()), 100},
		"layers":                         {gpus, need(cluster.Need{Layers: &cluster.Layers{Total: 160, Bytes: 1 << 30}}), with(machine()), 25},
		"lost devices do not count":      {gpus, shape(job("j").Devices(1)), with(machine().With(func(n *cluster.Node) { n.Devices[0].Lost = true })), 14},
		"slices":                         {slices, need(cluster.Need{Devices: 1, Partition: "1g.10gb"}), with(machine().Slices(7, "A100", "1g.10gb", "10Gi")), 14},
		"slices do not count as GPUs":    {gpus, need(cluster.Need{Devices: 1, Partition: "1g.10gb"}), with(machine().Slices(7, "A100", "1g.10gb", "10Gi")), 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := built(t, tc.args)
			if got := p.score(tc.shape, tc.node); got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	tests := map[string]struct{ args, err string }{
		"unknown type":   {`{"resources": {"cpu": {"type": "Spraed", "weight": 1}}}`, `resources: cpu: type "Spraed" is not known; did you mean "Spread"?`},
		"no type":        {`{"resources": {"cpu": {"weight": 1}}}`, `resources: cpu: type "" is not known; known: Pack, Spread`},
		"weight 0":       {`{"resources": {"cpu": {"type": "MostAllocated"}}}`, `resources: cpu: weight 0 is not between 1 and 100000; to leave the resource out of the score, remove it`},
		"weight below 0": {`{"resources": {"cpu": {"type": "MostAllocated", "weight": -1}}}`, `resources: cpu: weight -1 is not between 1 and 100000; to leave the resource out of the score, remove it`},
		"no resources":   {`{"resources": {}}`, `resources is empty, so every node would score the same; name a resource, or leave the field out for the default`},
		"no name":        {`{"resources": {"": {"type": "MostAllocated", "weight": 1}}}`, `resources: a resource has no name; write one such as cpu`},
		"unknown field":  {`{"resource": {}}`, `json: unknown field "resource"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(enginetest.Arguments(tc.args))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.err, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	want := []resource{{"cpu", 1, true}, {"memory", 1, true}, {"nvidia.com/gpu", 2, false}}
	if diff := cmp.Diff(want, built(t, engine.NoArguments{}).resources, cmp.AllowUnexported(resource{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func BenchmarkFitPlus(b *testing.B) {
	p := built(b, engine.NoArguments{})
	n := with(machine().Resource("ephemeral-storage", 1<<40).Resource("hugepages-2Mi", 1<<30), enginetest.Job("x").CPU(16000, "32Gi").Devices(4))
	for name, s := range map[string]*cluster.Shape{
		"cpu":     shape(enginetest.Job("j").CPU(16000, "32Gi")),
		"devices": shape(enginetest.Job("j").CPU(16000, "32Gi").Devices(2)),
		"memory":  shape(enginetest.Job("j").CPU(16000, "32Gi").DeviceMemory(1, "20Gi")),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.score(s, n)
			}
		})
	}
}
