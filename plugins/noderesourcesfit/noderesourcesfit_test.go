package noderesourcesfit

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// on returns a node of 8 cores, 64 GiB and four A100 with the jobs running on it.
func on(jobs ...*enginetest.JobBuilder) *cluster.Node {
	parts := []enginetest.Part{enginetest.Node("n").CPU(8, "64Gi").GPUs(4, "A100", "80Gi")}
	for _, j := range jobs {
		parts = append(parts, j)
	}
	return enginetest.State(parts...).Node("n")
}

func shape(b *enginetest.JobBuilder) *cluster.Shape { return b.Build().Tasks()[0].Shape }

func need(n cluster.Need) *cluster.Shape {
	return shape(enginetest.Job("j").Shape(func(s *cluster.Shape) { s.Need = n }))
}

func gib(n int64) engine.Quantity    { return engine.Quantity{Value: n << 30, Unit: engine.Bytes} }
func cores(n int64) engine.Quantity  { return engine.Quantity{Value: n * 1000, Unit: engine.Cores} }
func number(n int64) engine.Quantity { return engine.Quantity{Value: n, Unit: engine.Count} }
func parts(n int64) engine.Quantity  { return engine.Quantity{Value: n, Unit: engine.Devices} }

// judge calls the filters in the order of a session.
func judge(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if r := possible(s, n); r != nil {
		return r
	}
	return (&plugin{}).fit(s, n)
}

func TestFit(t *testing.T) {
	job := enginetest.Job
	mixed := enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi").GPUs(3, "L4", "24Gi").Build()
	model := func(l cluster.Layers) cluster.Need { l.Bytes = 1 << 30; return cluster.Need{Layers: &l} }
	reserved := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(1, "A100", "80Gi").With(func(n *cluster.Node) { n.Devices[0].OwnSpec().Reserved = 10 << 30 })).Node("n")
	unified := func(jobs ...*enginetest.JobBuilder) *cluster.Node { // two devices and the node share 100 GiB
		parts := []enginetest.Part{enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "GB10", "100Gi").With(func(n *cluster.Node) { n.Unified = true })}
		for _, j := range jobs {
			parts = append(parts, j)
		}
		return enginetest.State(parts...).Node("n")
	}
	sharedMemory := func(n cluster.Need) *cluster.Shape {
		return shape(job("j").CPU(0, "30Gi").Shape(func(s *cluster.Shape) { s.Need = n }))
	}
	tests := map[string]struct {
		shape *cluster.Shape
		node  *cluster.Node
		want  *engine.Rejection
	}{
		"nothing requested":            {shape(job("j")), on(), nil},
		"fits exactly":                 {shape(job("j").CPU(8000, "64Gi").Devices(4)), on(), nil},
		"cores held":                   {shape(job("j").CPU(6000, "1Gi")), on(job("x").CPU(4000, "1Gi").On("n")), &engine.Rejection{Reason: InsufficientResource, Cure: cureWaitOrEvict, Subject: "cpu", Want: cores(6), Have: cores(4)}},
		"memory held":                  {shape(job("j").CPU(1000, "40Gi")), on(job("x").CPU(1000, "32Gi").On("n")), &engine.Rejection{Reason: InsufficientResource, Cure: cureWaitOrEvict, Subject: "memory", Want: gib(40), Have: gib(32)}},
		"more cores than the node has": {shape(job("j").CPU(9000, "1Gi")), on(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "cpu", Want: cores(9), Have: cores(8)}},
		"an unknown resource":          {shape(job("j").Resource("example.com/fpga", 2)), on(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "example.com/fpga", Want: number(2), Have: number(0)}},
		"cores in use, and too few devices even if idle": {shape(job("j").CPU(6000, "1Gi").Devices(5)), on(job("x").CPU(4000, "1Gi").On("n")), &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(5), Have: number(4)}},
		"the node has less than its tasks hold":          {shape(job("j").CPU(1000, "1Gi")), on(job("x").CPU(9000, "1Gi").On("n")), &engine.Rejection{Reason: InsufficientResource, Cure: cureWaitOrEvict, Subject: "cpu", Want: cores(1), Have: cores(0)}},

		"too few devices":       {shape(job("j").Devices(5)), on(), &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(5), Have: number(4)}},
		"devices held":          {shape(job("j").Devices(3)), on(job("x").Devices(2).On("n")), &engine.Rejection{Reason: InsufficientDevices, Cure: cureWaitOrEvict, Want: number(3), Have: number(2)}},
		"no such partition":     {need(cluster.Need{Devices: 1, Partition: "1g.5gb"}), on(), &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(1), Have: number(0)}},
		"devices too small":     {shape(job("j").DeviceMemory(1, "90Gi")), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(90), Have: gib(80)}},
		"too few large devices": {shape(job("j").DeviceMemory(3, "40Gi")), mixed, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(40), Have: gib(24)}},
		"memory in use":         {shape(job("j").DeviceMemory(1, "40Gi")), on(job("x").DeviceMemory(4, "50Gi").On("n")), &engine.Rejection{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Want: gib(40), Have: gib(30)}},
		"memory of the second":  {shape(job("j").DeviceMemory(2, "40Gi")), on(job("x").DeviceMemory(3, "50Gi").On("n")), &engine.Rejection{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Want: gib(40), Have: gib(30)}},
		"share held":            {shape(job("j").Share(1, 500)), on(job("x").Share(4, 700).On("n")), &engine.Rejection{Reason: InsufficientDeviceShare, Cure: cureWaitOrEvict, Want: parts(500), Have: parts(300)}},
		"share beside a whole":  {shape(job("j").Share(4, 500)), on(job("x").Devices(1).On("n")), &engine.Rejection{Reason: InsufficientDeviceShare, Cure: cureWaitOrEvict, Want: parts(500), Have: parts(0)}},
		"exclusive takes whole": {shape(job("j").Share(4, 500).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive})), on(job("x").Share(1, 100).On("n")), &engine.Rejection{Reason: InsufficientDevices, Cure: cureWaitOrEvict, Want: number(4), Have: number(3)}},

		"one product":             {need(cluster.Need{Devices: 3, SameProduct: true}), mixed, nil},
		"one product has too few": {need(cluster.Need{Devices: 4, SameProduct: true}), mixed, &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(4), Have: number(3)}},
		"sum reached":             {need(cluster.Need{Devices: 3, SumAtLeast: 184 << 30}), mixed, nil},
		"sum never reached":       {need(cluster.Need{Devices: 3, SumAtLeast: 185 << 30}), mixed, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Subject: "3 devices together", Want: gib(185), Have: gib(184)}},
		"sum of what is free":     {need(cluster.Need{Devices: 2, Share: 500, SumAtLeast: 80 << 30}), on(job("x").Devices(3).On("n")), &engine.Rejection{Reason: InsufficientDeviceShare, Cure: cureWaitOrEvict, Subject: "1 of 4 devices meets the share, and 2 must; the next has", Want: parts(500), Have: parts(0), WantBytes: 40 << 30}},

		"whole node":                 {need(cluster.Need{WholeNode: true, SumAtLeast: 320 << 30}), on(), nil},
		"whole node in use":          {need(cluster.Need{WholeNode: true}), on(job("x").Share(1, 100).On("n")), &engine.Rejection{Reason: NodeInUse, Cure: cureWaitOrEvict, Want: number(4), Have: number(3)}},
		"whole node too small":       {need(cluster.Need{WholeNode: true, SumAtLeast: 321 << 30}), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Subject: "4 devices together", Want: gib(321), Have: gib(320)}},
		"whole node too few":         {need(cluster.Need{WholeNode: true, Devices: 8}), on(), &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(8), Have: number(4)}},
		"whole node of others":       {need(cluster.Need{WholeNode: true, Products: []string{"A100"}}), mixed, &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(5), Have: number(2)}},
		"whole node without devices": {need(cluster.Need{WholeNode: true}), enginetest.Node("n").CPU(8, "64Gi").Build(), &engine.Rejection{Reason: TooFewDevices, Cure: cureOtherNode, Want: number(1), Have: number(0)}},

		"layers fit":               {need(model(cluster.Layers{Total: 200})), on(), nil},
		"layers never fit":         {need(model(cluster.Layers{Total: 400})), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Subject: "4 devices together", Want: gib(400), Have: gib(320)}},
		"layers do not fit now":    {need(model(cluster.Layers{Total: 200})), on(job("x").Devices(2).On("n")), &engine.Rejection{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Subject: "4 devices together", Want: gib(200), Have: gib(160)}},
		"all layers on one":        {need(cluster.Need{Devices: 1, Layers: &cluster.Layers{Total: 1, Bytes: 70 << 30, Fixed: 5 << 30}}), on(job("x").DeviceMemory(4, "20Gi").On("n")), &engine.Rejection{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Want: gib(75), Have: gib(60)}},
		"a sum of one":             {need(cluster.Need{Devices: 1, Share: 900, SumAtLeast: 73 << 30}), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(73), Have: gib(72)}},
		"layers spill":             {need(model(cluster.Layers{Total: 200, Least: 100, Spill: true})), on(job("x").Devices(2).On("n")), nil},
		"layers cannot spill now":  {need(model(cluster.Layers{Total: 230, Least: 100, Spill: true})), on(job("x").Devices(2).On("n")), &engine.Rejection{Reason: InsufficientResource, Cure: cureWaitOrEvict, Subject: "memory", Want: gib(70), Have: gib(64)}},
		"layers can never spill":   {need(model(cluster.Layers{Total: 400, Least: 100, Spill: true})), on(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(80), Have: gib(64)}},
		"whole node, share sums":   {need(cluster.Need{WholeNode: true, Share: 900, SumAtLeast: 289 << 30}), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Subject: "4 of 4 devices meet the share, together", Want: gib(289), Have: gib(288)}},
		"reserved of a sum":        {need(cluster.Need{Devices: 1, SumAtLeast: 71 << 30}), reserved, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(71), Have: gib(70)}},
		"reserved of a share":      {need(cluster.Need{Devices: 1, Share: 900, SumAtLeast: 71 << 30}), reserved, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(71), Have: gib(70)}},
		"reserved of memory":       {need(cluster.Need{Devices: 1, Memory: 71 << 30}), reserved, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(71), Have: gib(70)}},
		"a fraction beside layers": {need(cluster.Need{Layers: &cluster.Layers{Total: 8, Bytes: 1 << 30, Fixed: 90 << 30}}), on(), &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(91), Have: gib(80)}},
		"one layer of each":        {need(cluster.Need{Devices: 3, Layers: &cluster.Layers{Total: 8, Bytes: 1 << 30, Fixed: 29 << 30}}), mixed, &engine.Rejection{Reason: GPUMemoryTooSmall, Cure: cureOtherNode, Want: gib(30), Have: gib(24)}},

		"unified memory holds it":                {sharedMemory(cluster.Need{Devices: 1, Memory: 70 << 30}), unified(), nil},
		"unified memory never holds memory":      {sharedMemory(cluster.Need{Devices: 1, Memory: 80 << 30}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(110), Have: gib(100)}},
		"unified memory never holds a share":     {sharedMemory(cluster.Need{Devices: 1, Share: 900, SumAtLeast: 50 << 30}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(120), Have: gib(100)}},
		"unified memory never holds layers":      {sharedMemory(cluster.Need{Layers: &cluster.Layers{Total: 80, Bytes: 1 << 30}}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(110), Have: gib(100)}},
		"unified memory never holds what spills": {sharedMemory(cluster.Need{Layers: &cluster.Layers{Total: 80, Bytes: 1 << 30, Spill: true}}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(110), Have: gib(100)}},
		"unified memory never holds the node":    {sharedMemory(cluster.Need{WholeNode: true, Share: 900}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(210), Have: gib(100)}},
		"unified memory never holds two whole":   {sharedMemory(cluster.Need{Devices: 2}), unified(), &engine.Rejection{Reason: ResourceTooSmall, Cure: cureOtherNode, Subject: "memory", Want: gib(230), Have: gib(100)}},
		"unified memory is held":                 {sharedMemory(cluster.Need{Devices: 1, Memory: 60 << 30}), unified(job("x").CPU(0, "20Gi").On("n")), &engine.Rejection{Reason: InsufficientResource, Cure: cureWaitOrEvict, Subject: "memory", Want: gib(90), Have: gib(80)}},
		"device of unified memory is held":       {sharedMemory(cluster.Need{Devices: 2, Memory: 20 << 30}), unified(job("x").Share(2, 1).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "a"}).CPU(0, "1Gi").On("n")), &engine.Rejection{Reason: GPUMemoryInUse, Cure: cureWaitOrEvict, Want: gib(20), Have: gib(0)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.shape, tc.node)); diff != "" {
				t.Errorf("judge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if p, err := New(engine.NoArguments{}); err != nil || p.Name() != Name {
		t.Errorf("New without arguments: %v, %v", p, err)
	}
	if _, err := New(enginetest.Arguments(`{"resources": []}`)); err == nil {
		t.Error("New takes arguments that it does not have")
	}
}

func BenchmarkFit(b *testing.B) {
	node := func() *cluster.Node {
		return enginetest.State(
			enginetest.Node("n").CPU(96, "512Gi").Resource("ephemeral-storage", 1<<40).Resource("hugepages-2Mi", 1<<30).GPUs(8, "A100", "80Gi"),
			enginetest.Job("x").Devices(4).On("n"),
		).Node("n")
	}()
	ask := func() *enginetest.JobBuilder {
		return enginetest.Job("j").CPU(8000, "64Gi").Resource("ephemeral-storage", 1<<30)
	}
	for name, s := range map[string]*cluster.Shape{
		"cpu":      shape(ask()),
		"devices":  shape(ask().Devices(4)),
		"share":    shape(ask().Share(1, 500)),
		"memory":   shape(ask().DeviceMemory(1, "20Gi")),
		"rejected": shape(ask().Devices(5)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			p := &plugin{}
			for b.Loop() {
				p.fit(s, node)
			}
		})
	}
}
