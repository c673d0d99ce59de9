package tenantadmission

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

const gpu = cluster.DefaultDeviceResource

func open(t testing.TB, parts ...enginetest.Part) (*plugin, *cluster.State) {
	t.Helper()
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(parts...)
	s := enginetest.Engine(p).Open(state, engine.Options{})
	t.Cleanup(func() { s.Close() })
	return p.(*plugin), state
}

func node(name string) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(64, "512Gi").GPUs(8, "A100", "80Gi")
}

func job(name string) *enginetest.JobBuilder { return enginetest.Job(name).Queue("q") }

func queue() *enginetest.QueueBuilder { return enginetest.Queue("q") }

func of(resource string) string { return "queue q: " + resource }

func cores(n int64) engine.Quantity { return engine.Quantity{Value: n * 1000, Unit: engine.Cores} }
func parts(n int64) engine.Quantity { return engine.Quantity{Value: n, Unit: engine.Devices} }
func gib(n int64) engine.Quantity   { return engine.Quantity{Value: n << 30, Unit: engine.Bytes} }
func plain(n int64) engine.Quantity { return engine.Quantity{Value: n, Unit: engine.Count} }

func forbidden(resource string, want engine.Quantity) *engine.Rejection {
	return &engine.Rejection{Reason: QueueForbidsResource, Cure: engine.Relax, Subject: of(resource), Queue: "q", Want: want, Have: engine.Quantity{Unit: want.Unit}}
}

func tooSmall(resource string, want, have engine.Quantity) *engine.Rejection {
	return &engine.Rejection{Reason: QueueLimitTooSmall, Cure: engine.Relax, Subject: of(resource), Queue: "q", Want: want, Have: have}
}

func reached(resource string, want, have engine.Quantity) *engine.Rejection {
	return &engine.Rejection{Reason: QueueLimitReached, Cure: cureWaitOrEvict, Subject: of(resource), Queue: "q", Want: want, Have: have}
}

func need(n cluster.Need) *enginetest.JobBuilder {
	return job("j").Shape(func(s *cluster.Shape) { s.Need = n })
}

// Costs that are known before any node is looked at.
func TestPreFilter(t *testing.T) {
	amd := func() *enginetest.NodeBuilder {
		return node("amd").With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })
	}
	const mig = "nvidia.com/mig-1g.10gb"
	exclusive := cluster.Isolation{GPU: cluster.GPUDeviceExclusive}
	type list = []enginetest.Part
	tests := map[string]struct {
		parts list
		want  *engine.Rejection
	}{
		"no limits":                                  {list{queue(), job("j").CPU(1000, "1Gi").Devices(8)}, nil},
		"the default queue":                          {list{queue().Limit("cpu", 0), enginetest.Job("j").CPU(1000, "1Gi")}, nil},
		"another resource":                           {list{queue().Limit("example.com/fpga", 0), job("j").CPU(1000, "1Gi")}, nil},
		"within the limit":                           {list{queue().Limit("cpu", 8000), job("x").CPU(4000, "1Gi").On("n"), job("j").CPU(4000, "1Gi")}, nil},
		"cores reached":                              {list{queue().Limit("cpu", 8000), job("x").CPU(5000, "1Gi").On("n"), job("j").CPU(4000, "1Gi")}, reached("cpu", cores(4), cores(3))},
		"jobs of other queues do not count":          {list{queue().Limit("cpu", 8000), enginetest.Job("x").CPU(5000, "1Gi").On("n"), job("j").CPU(4000, "1Gi")}, nil},
		"memory too small":                           {list{queue().Limit("memory", 8<<30), job("j").CPU(0, "9Gi")}, tooSmall("memory", gib(9), gib(8))},
		"a resource other than cores and memory":     {list{queue().Limit("example.com/fpga", 1), job("j").Resource("example.com/fpga", 2)}, tooSmall("example.com/fpga", plain(2), plain(1))},
		"a limit of 0":                               {list{queue().Limit(gpu, 0), job("j").Devices(1)}, forbidden(gpu, parts(1000))},
		"a limit of 0, device memory requested":      {list{queue().Limit(gpu, 0), job("j").DeviceMemory(2, "10Gi")}, forbidden(gpu, parts(2))},
		"devices reached":                            {list{queue().Limit(gpu, 4000), job("x").Devices(3).On("n"), job("j").Devices(2)}, reached(gpu, parts(2000), parts(1000))},
		"shares reached":                             {list{queue().Limit(gpu, 1000), job("x").Share(1, 600).On("n"), job("j").Share(1, 500)}, reached(gpu, parts(500), parts(400))},
		"exclusive counts whole devices":             {list{queue().Limit(gpu, 1500), job("j").Share(2, 500).Isolate(exclusive)}, tooSmall(gpu, parts(2000), parts(1500))},
		"a gang too large":                           {list{queue().Limit(gpu, 4000), job("j").Gang(3).Devices(2)}, tooSmall(gpu, parts(6000), parts(4000))},
		"a gang's minimum":                           {list{queue().Limit(gpu, 4000), job("j").Gang(3).Min(2).Devices(2)}, nil},
		"a permanent rejection is returned first":    {list{queue().Limit("cpu", 1000).Limit(gpu, 0), job("x").CPU(1000, "1Gi").On("n"), job("j").CPU(1000, "1Gi").Devices(1)}, forbidden(gpu, parts(1000))},
		"devices of any name":                        {list{amd(), queue().Limit(gpu, 0), job("j").Devices(1)}, nil},
		"devices by name":                            {list{amd(), queue().Limit("amd.com/gpu", 0), need(cluster.Need{Devices: 1, Resource: "amd.com/gpu"})}, forbidden("amd.com/gpu", parts(1000))},
		"another name":                               {list{amd(), queue().Limit("amd.com/gpu", 0), need(cluster.Need{Devices: 1, Resource: gpu})}, nil},
		"slices":                                     {list{node("m").Slices(7, "A100", "1g.10gb", "10Gi"), queue().Limit(mig, 2000), need(cluster.Need{Devices: 3, Partition: "1g.10gb"})}, tooSmall(mig, parts(3000), parts(2000))},
		"slices, a limit of 0 GPUs":                  {list{node("m").Slices(7, "A100", "1g.10gb", "10Gi"), queue().Limit(gpu, 0), need(cluster.Need{Devices: 3, Partition: "1g.10gb"})}, forbidden(gpu, parts(3*142))},
		"slices fill a GPU":                          {list{node("m").Slices(7, "A100", "1g.10gb", "10Gi"), queue().Limit(gpu, 1000), need(cluster.Need{Devices: 7, Partition: "1g.10gb"})}, nil},
		"slices beyond a GPU":                        {list{node("m").Slices(7, "A100", "3g.40gb", "40Gi"), queue().Limit(gpu, 1000), need(cluster.Need{Devices: 3, Partition: "3g.40gb"})}, tooSmall(gpu, parts(3*428), parts(1000))},
		"slices with a limit of their own":           {list{node("m").Slices(7, "A100", "1g.10gb", "10Gi"), queue().Limit(gpu, 0).Limit(mig, 3000), need(cluster.Need{Devices: 3, Partition: "1g.10gb"})}, nil},
		"whole nodes with a least number of devices": {list{queue().Limit(gpu, 4000), need(cluster.Need{WholeNode: true, Devices: 8})}, tooSmall(gpu, parts(8000), parts(4000))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, append(list{node("n")}, tc.parts...)...)
			task := state.Job("job/j").Tasks()[0]
			if diff := cmp.Diff(tc.want, p.preFilter(task, task.Job)); diff != "" {
				t.Errorf("preFilter (-want +got):\n%s", diff)
			}
		})
	}
}

// The limits of the queues above apply as well.
func TestAncestors(t *testing.T) {
	under := func() *enginetest.QueueBuilder { return queue().Parent("mid") }
	tree := func(top, mid int64) []enginetest.Part {
		return []enginetest.Part{node("n"), enginetest.Queue("top").Limit(gpu, top), enginetest.Queue("mid").Parent("top").Limit(gpu, mid), under(), enginetest.Queue("side").Parent("top")}
	}
	side := enginetest.Job("x").Queue("side").Devices(3).On("n")
	tests := map[string]struct {
		parts []enginetest.Part
		want  *engine.Rejection
	}{
		"room on all levels":            {append(tree(6000, 4000), side, job("j").Devices(3)), nil},
		"a sibling queue holds devices": {append(tree(4000, 4000), side, job("j").Devices(2)), reached(gpu, parts(2000), parts(1000))},
		"too small at the top":          {append(tree(4000, 8000), job("j").Devices(5)), tooSmall(gpu, parts(5000), parts(4000))},
		"a limit of 0 in the middle":    {append(tree(4000, 0), job("j").Devices(1)), forbidden(gpu, parts(1000))},
		"a gang":                        {append(tree(4000, 8000), job("j").Gang(5).Devices(1)), tooSmall(gpu, parts(5000), parts(4000))},
	}
	subjects := map[string]string{"a sibling queue holds devices": "top", "too small at the top": "top", "a limit of 0 in the middle": "mid", "a gang": "top"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, tc.parts...)
			if tc.want != nil {
				tc.want.Subject, tc.want.Queue = "queue "+subjects[name]+": "+gpu, subjects[name]
			}
			task := state.Job("job/j").Tasks()[0]
			if diff := cmp.Diff(tc.want, p.preFilter(task, task.Job)); diff != "" {
				t.Errorf("preFilter (-want +got):\n%s", diff)
			}
		})
	}
}

// Costs that depend on the node.
func TestAdmit(t *testing.T) {
	amd := func() *enginetest.NodeBuilder {
		return node("n").With(func(n *cluster.Node) { n.DeviceResource = "amd.com/gpu" })
	}
	mixed := func() *enginetest.NodeBuilder {
		return enginetest.Node("n").CPU(64, "512Gi").GPUs(1, "A100", "80Gi").GPUs(1, "L4", "20Gi")
	}
	layers := func(devices int, l cluster.Layers) *enginetest.JobBuilder {
		l.Bytes = 1 << 30
		return need(cluster.Need{Devices: devices, Layers: &l})
	}
	type list = []enginetest.Part
	tests := map[string]struct {
		node    *enginetest.NodeBuilder
		parts   list
		matters bool
		want    *engine.Rejection
	}{
		"no limits":                          {node("n"), list{queue(), job("j").DeviceMemory(1, "20Gi")}, false, nil},
		"no devices":                         {node("n"), list{queue().Limit(gpu, 0), job("j").CPU(1000, "1Gi")}, false, nil},
		"only cores limited":                 {node("n"), list{queue().Limit("cpu", 1000), job("j").DeviceMemory(1, "20Gi")}, false, nil},
		"the cost is known before any node":  {node("n"), list{queue().Limit(gpu, 1000), need(cluster.Need{Devices: 1, Resource: gpu})}, false, nil},
		"memory, within":                     {node("n"), list{queue().Limit(gpu, 1000), job("x").Share(1, 750).On("n"), job("j").DeviceMemory(1, "20Gi")}, true, nil},
		"memory, reached":                    {node("n"), list{queue().Limit(gpu, 1000), job("x").Share(1, 800).On("n"), job("j").DeviceMemory(1, "20Gi")}, true, reached(gpu, parts(250), parts(200))},
		"memory, too small":                  {node("n"), list{queue().Limit(gpu, 1000), job("j").DeviceMemory(5, "20Gi")}, true, tooSmall(gpu, parts(1250), parts(1000))},
		"memory, the highest cost counts":    {mixed(), list{queue().Limit(gpu, 500), job("j").DeviceMemory(1, "20Gi")}, true, tooSmall(gpu, parts(1000), parts(500))},
		"devices by another name":            {amd(), list{queue().Limit("amd.com/gpu", 1000), job("j").Devices(2)}, false, nil},
		"another resource name, not limited": {amd(), list{queue().Limit(gpu, 1000), job("j").Devices(2)}, false, nil},
		"another resource name, limit 0":     {amd(), list{queue().Limit("amd.com/gpu", 0), job("j").Devices(2)}, false, nil},
		"a whole node":                       {node("n"), list{queue().Limit(gpu, 8000), need(cluster.Need{WholeNode: true})}, true, nil},
		"a share of a whole node":            {node("n"), list{queue().Limit(gpu, 7200), need(cluster.Need{WholeNode: true, Share: 900})}, true, nil},
		"a share, too small":                 {node("n"), list{queue().Limit(gpu, 7000), need(cluster.Need{WholeNode: true, Share: 900})}, true, tooSmall(gpu, parts(7200), parts(7000))},
		"a whole node, too small":            {node("n"), list{queue().Limit(gpu, 7000), need(cluster.Need{WholeNode: true})}, true, tooSmall(gpu, parts(8000), parts(7000))},
		"layers on two devices":              {node("n"), list{queue().Limit(gpu, 2000), layers(0, cluster.Layers{Total: 100})}, true, nil},
		"layers, reached":                    {node("n"), list{queue().Limit(gpu, 2000), job("x").Share(1, 500).On("n"), layers(0, cluster.Layers{Total: 100})}, true, reached(gpu, parts(2000), parts(1500))},
		"a few layers":                       {node("n"), list{queue().Limit(gpu, 500), layers(1, cluster.Layers{Total: 40})}, true, nil},
		"layers that spill":                  {mixed(), list{queue().Limit("memory", 100<<30), layers(0, cluster.Layers{Total: 200, Least: 10, Spill: true})}, true, nil},
		"layers that spill more":             {mixed(), list{queue().Limit("memory", 99<<30), layers(0, cluster.Layers{Total: 200, Least: 10, Spill: true})}, true, tooSmall("memory", gib(100), gib(99))},
		"layers that do not fit":             {mixed(), list{queue().Limit("memory", 1), layers(0, cluster.Layers{Total: 200})}, true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, state := open(t, append(list{tc.node}, tc.parts...)...)
			task := state.Job("job/j").Tasks()[0]
			if got := p.matters(task, task.Job); got != tc.matters {
				t.Fatalf("matters: %v", got)
			}
			if !tc.matters {
				return
			}
			if diff := cmp.Diff(tc.want, p.admit(task, task.Job, state.Node("n"))); diff != "" {
				t.Errorf("admit (-want +got):\n%s", diff)
			}
		})
	}
}

// A gang that would exceed the limit is not placed at all; surplus tasks stop at the limit too.
func TestSession(t *testing.T) {
	run := func(j *enginetest.JobBuilder) (placed int, refusal *engine.Refusal) {
		p, err := New(engine.NoArguments{})
		if err != nil {
			t.Fatal(err)
		}
		state := enginetest.State(node("n"), queue().Limit(gpu, 4000), job("x").Devices(1).On("n"), j)
		s := enginetest.Engine(p, room{}).Open(state, engine.Options{Search: engine.Twin})
		defer s.Close()
		out, err := s.Run()
		if err != nil || len(out.Refusals) != 1 {
			t.Fatalf("refusals %v, error %v", out.Refusals, err)
		}
		return len(out.Decisions), out.Refusals[0]
	}
	placed, refusal := run(job("j").Gang(2).Devices(2))
	if placed != 0 || refusal.Reason != QueueLimitReached || refusal.Permanent || refusal.Surplus {
		t.Errorf("the gang: %d placed, %+v", placed, refusal)
	}
	placed, refusal = run(job("j").Gang(4).Min(1).Devices(1))
	if placed != 3 || refusal.Reason != QueueLimitReached || !refusal.Surplus {
		t.Errorf("the surplus: %d placed, %+v", placed, refusal)
	}
	placed, refusal = run(job("j").Gang(3).Devices(2))
	if placed != 0 || refusal.Reason != QueueLimitTooSmall || !refusal.Permanent {
		t.Errorf("the gang that is too large: %d placed, %+v", placed, refusal)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"limits": {}}`)); err == nil {
		t.Error("New takes arguments that it does not have")
	}
}
