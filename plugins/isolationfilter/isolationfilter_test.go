package isolationfilter

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func shape(b *enginetest.JobBuilder) *cluster.Shape { return b.Build().Tasks()[0].Shape }

var everything = cluster.SupportedIsolation{CPU: cluster.CPUClasses, GPU: cluster.GPUClasses, IsolableCores: 4}

// plain returns a node of 8 cores and 2 devices that advertises no class. able returns one that
// advertises all classes.
func plain() *enginetest.NodeBuilder {
	return enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A100", "80Gi")
}
func able() *enginetest.NodeBuilder { return plain().SupportedIsolation(everything) }

func on(n *enginetest.NodeBuilder, jobs ...*enginetest.JobBuilder) *cluster.Node {
	wantsPartitions := []enginetest.Part{n}
	for _, j := range jobs {
		wantsPartitions = append(wantsPartitions, j.On("n"))
	}
	return enginetest.State(wantsPartitions...).Node("n")
}

func isolated(b *enginetest.JobBuilder, cpu cluster.CPUClass, gpu cluster.GPUClass) *enginetest.JobBuilder {
	return b.Isolate(cluster.Isolation{CPU: cpu, GPU: gpu})
}

func session(b *enginetest.JobBuilder, name string) *enginetest.JobBuilder {
	return b.Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: name})
}

func unsupportedClass(class string) *engine.Rejection {
	return &engine.Rejection{Reason: NoNodeSupportsClass, Cure: engine.Grow, Subject: class}
}

func tooFew(class string, want, have int64) *engine.Rejection {
	r := unsupportedClass(class)
	r.Want, r.Have = count(want), count(have)
	return r
}

func TestAdmit(t *testing.T) {
	const (
		none      = cluster.GPUClass("")
		shared    = cluster.GPUShared
		sessions  = cluster.GPUSessionExclusive
		exclusive = cluster.GPUDeviceExclusive
		partition = cluster.GPUPartitionExclusive
	)
	job := func() *enginetest.JobBuilder { return enginetest.Job("j").CPU(1000, "1Gi") }
	gpu := func(n int, c cluster.GPUClass) *cluster.Shape { return shape(isolated(job().Devices(n), "", c)) }
	share := func(c cluster.GPUClass) *cluster.Shape { return shape(isolated(job().Share(1, 500), "", c)) }
	cpu := func(milli int64, c cluster.CPUClass) *cluster.Shape {
		return shape(isolated(enginetest.Job("j").CPU(milli, "1Gi"), c, ""))
	}
	need := func(c cluster.GPUClass, n cluster.Need) *cluster.Shape {
		return shape(isolated(job(), "", c).Shape(func(s *cluster.Shape) { s.Need = n }))
	}
	held := func(milli int64, c cluster.CPUClass) *enginetest.JobBuilder {
		return isolated(enginetest.Job("x").CPU(milli, "1Gi"), c, "")
	}
	x := func() *enginetest.JobBuilder { return enginetest.Job("x") }
	many := cluster.SupportedIsolation{CPU: cluster.CPUClasses, IsolableCores: 64}
	exclusively := cluster.SupportedIsolation{GPU: cluster.GPUClasses, Share: cluster.ShareExclusive}
	sliced := func() *enginetest.NodeBuilder { return able().Slices(7, "A100", "1g.10gb", "10Gi") }
	even := func() *enginetest.NodeBuilder { // all devices are divided alike: slices are requested by number
		return enginetest.Node("n").CPU(8, "64Gi").GPUs(7, "A100-MIG-1g.10gb", "10Gi").SupportedIsolation(everything).With(func(n *cluster.Node) {
			for i := range n.Devices {
				n.Devices[i].OwnSpec().Parent = "GPU-0"
			}
		})
	}
	tests := map[string]struct {
		shape *cluster.Shape
		node  *cluster.Node
		want  *engine.Rejection
	}{
		"no class":               {gpu(2, none), on(plain()), nil},
		"BestEffort":             {cpu(500, cluster.CPUBestEffort), on(plain()), nil},
		"a class but no devices": {shape(isolated(job(), "", exclusive)), on(plain()), nil},

		"WholeCore, not advertised":      {cpu(1000, cluster.CPUWholeCore), on(plain()), unsupportedClass("WholeCore")},
		"WholeCore":                      {cpu(8000, cluster.CPUWholeCore), on(able()), nil},
		"WholeCore takes all of a core":  {cpu(7500, cluster.CPUWholeCore), on(able(), held(500, "")), contended("WholeCore", 8, 7)},
		"WholeCore, at least one":        {cpu(0, cluster.CPUWholeCore), on(able(), held(7500, "")), contended("WholeCore", 1, 0)},
		"WholeCore, never that many":     {cpu(8500, cluster.CPUWholeCore), on(able()), tooFew("WholeCore", 9, 8)},
		"StrictIsolated, not advertised": {cpu(1000, cluster.CPUStrictIsolated), on(plain()), unsupportedClass("StrictIsolated")},
		"StrictIsolated":                 {cpu(4000, cluster.CPUStrictIsolated), on(able()), nil},
		"StrictIsolated, held":           {cpu(2000, cluster.CPUStrictIsolated), on(able(), held(3000, cluster.CPUStrictIsolated)), contended("StrictIsolated", 2, 1)},
		"StrictIsolated, beside others":  {cpu(4000, cluster.CPUStrictIsolated), on(able(), held(4000, cluster.CPUWholeCore)), nil},
		"StrictIsolated, others hold":    {cpu(4000, cluster.CPUStrictIsolated), on(able(), held(5500, "")), contended("StrictIsolated", 4, 2)},
		"StrictIsolated, never":          {cpu(5000, cluster.CPUStrictIsolated), on(able()), tooFew("StrictIsolated", 5, 4)},
		"StrictIsolated, more than all":  {cpu(9000, cluster.CPUStrictIsolated), on(plain().SupportedIsolation(many)), tooFew("StrictIsolated", 9, 8)},

		"Shared":                              {share(shared), on(plain()), nil},
		"a share without a class":             {share(none), on(plain()), nil},
		"Shared, share mode exclusive":        {share(shared), on(plain().SupportedIsolation(exclusively)), &engine.Rejection{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Subject: "Shared", Precedence: 1}},
		"share mode exclusive, unsaid":        {share(none), on(plain().SupportedIsolation(exclusively)), &engine.Rejection{Reason: ClassConflictsWithDaemonMode, Cure: engine.Grow, Subject: "Shared", Precedence: 1}},
		"whole devices, share mode exclusive": {gpu(1, none), on(plain().SupportedIsolation(exclusively)), nil},
		"Shared beside shared":                {share(shared), on(plain(), isolated(x().Share(2, 500), "", shared)), nil},
		"Shared, all held exclusively":        {share(shared), on(able(), isolated(x().Devices(2), "", exclusive)), contended("Shared", 1, 0)},
		"Shared, all held by sessions":        {share(shared), on(able(), session(x().Share(2, 100), "a")), contended("Shared", 1, 0)},
		"Shared, one left":                    {share(shared), on(able(), isolated(x().Devices(1), "", exclusive)), nil},

		"SessionExclusive, not advertised": {gpu(1, sessions), on(plain()), unsupportedClass("SessionExclusive")},
		"SessionExclusive":                 {gpu(2, sessions), on(able()), nil},
		"SessionExclusive, claimed":        {gpu(2, sessions), on(able(), isolated(x().Devices(1), "", sessions)), contended("SessionExclusive", 2, 1)},
		"the same session":                 {shape(session(job().Share(2, 500), "a")), on(able(), session(x().Share(2, 500), "a")), nil},
		"another session":                  {shape(session(job().Share(2, 500), "b")), on(able(), session(x().Share(1, 500), "a")), contended("SessionExclusive", 2, 1)},

		"DeviceExclusive, not advertised": {gpu(1, exclusive), on(plain()), unsupportedClass("DeviceExclusive")},
		"DeviceExclusive":                 {gpu(2, exclusive), on(able()), nil},
		"DeviceExclusive, leased":         {gpu(2, exclusive), on(able(), x().Share(1, 100)), contended("DeviceExclusive", 2, 1)},
		"DeviceExclusive, too few":        {gpu(3, exclusive), on(able(), x().Share(1, 100)), nil}, // NodeResourcesFit rejects the node
		"DeviceExclusive, a partition":    {need(exclusive, cluster.Need{Devices: 1, Partition: "1g.10gb"}), on(sliced()), &engine.Rejection{Reason: ClassConflictsWithResourceId, Subject: "DeviceExclusive", Precedence: 2}},
		"DeviceExclusive, beside slices":  {gpu(2, exclusive), on(sliced()), nil},
		"DeviceExclusive, only slices":    {gpu(1, exclusive), on(even()), unsupportedClass("DeviceExclusive")},
		"DeviceExclusive, replicas":       {gpu(1, exclusive), on(able().With(func(n *cluster.Node) { n.Devices[0].OwnSpec().Replica = true })), unsupportedClass("DeviceExclusive")},
		"whole node, exclusively":         {need(exclusive, cluster.Need{WholeNode: true}), on(able(), x().Share(1, 100)), contended("DeviceExclusive", 2, 1)},
		"layers, exclusively":             {need(exclusive, cluster.Need{Layers: &cluster.Layers{Total: 1, Bytes: 1}}), on(able(), x().Share(2, 100)), contended("DeviceExclusive", 1, 0)},

		"PartitionExclusive":                   {need(partition, cluster.Need{Devices: 1, Partition: "1g.10gb"}), on(sliced()), nil},
		"PartitionExclusive, not advertised":   {need(partition, cluster.Need{Devices: 1, Partition: "1g.10gb"}), on(plain().Slices(7, "A100", "1g.10gb", "10Gi")), unsupportedClass("PartitionExclusive")},
		"PartitionExclusive, held":             {need(partition, cluster.Need{Devices: 7, Partition: "1g.10gb"}), on(sliced(), x().Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Partition: "1g.10gb"} })), contended("PartitionExclusive", 7, 6)},
		"PartitionExclusive, cut up evenly":    {gpu(7, partition), on(even()), nil},
		"PartitionExclusive, no partition":     {gpu(1, partition), on(able()), unsupportedClass("PartitionExclusive")},
		"PartitionExclusive, named as a whole": {need(partition, cluster.Need{Devices: 1, Resource: "nvidia.com/gpu"}), on(able()), &engine.Rejection{Reason: ClassConflictsWithResourceId, Subject: "PartitionExclusive", Precedence: 2}},

		"never beats not now": {shape(isolated(enginetest.Job("j").CPU(8000, "1Gi").Devices(1), cluster.CPUWholeCore, exclusive)), on(plain().SupportedIsolation(cluster.SupportedIsolation{CPU: cluster.CPUClasses}), held(1000, "")), unsupportedClass("DeviceExclusive")},
		"cores, then devices": {shape(isolated(enginetest.Job("j").CPU(8000, "1Gi").Devices(2), cluster.CPUWholeCore, exclusive)), on(able(), held(1000, "").Share(1, 100)), contended("WholeCore", 8, 7)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, admit(tc.shape, tc.node)); diff != "" {
				t.Errorf("admit (-want +got):\n%s", diff)
			}
			if tc.want != nil && !matters(tc.shape) {
				t.Error("the filter does not apply to the shape")
			}
		})
	}
}

// What an evicted task still holds counts as free, because the new task can be nominated.
func TestReleasing(t *testing.T) {
	state := enginetest.State(able(), enginetest.Job("x").Devices(2).On("n"))
	task := state.Job("job/x").Tasks()[0]
	evict := cluster.Evict{Task: task.Ref(), Attempt: task.Attempt + 1}
	if err := state.Apply(cluster.Decided{Changes: []cluster.Change{evict}}); err != nil {
		t.Fatal(err)
	}
	if r := admit(shape(isolated(enginetest.Job("j").Devices(2), "", cluster.GPUDeviceExclusive)), state.Node("n")); r != nil {
		t.Errorf("rejected: %+v", r)
	}
}

// The tier of a queue does not change on which nodes a class is available.
func TestTiersDoNotMatter(t *testing.T) {
	for _, cpu := range append([]cluster.CPUClass{""}, cluster.CPUClasses...) {
		for _, gpu := range append([]cluster.GPUClass{""}, cluster.GPUClasses...) {
			t.Run(fmt.Sprintf("%s,%s", cpu, gpu), func(t *testing.T) {
				got := map[cluster.Tier]string{}
				for _, tier := range cluster.Tiers {
					got[tier] = decide(t, tier, cpu, gpu)
				}
				want := map[cluster.Tier]string{}
				for _, tier := range cluster.Tiers {
					want[tier] = got[cluster.TierStandard]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("by tier (-Standard +got):\n%s", diff)
				}
			})
		}
	}
}

// decide places a job with the classes, from a queue of the tier, on one of three nodes.
func decide(t *testing.T, tier cluster.Tier, cpu cluster.CPUClass, gpu cluster.GPUClass) string {
	t.Helper()
	state := enginetest.State(
		enginetest.Queue("q").Tier(tier),
		enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Node("b").CPU(8, "64Gi").GPUs(2, "A100", "80Gi").SupportedIsolation(cluster.SupportedIsolation{CPU: cluster.CPUClasses[:2], GPU: cluster.GPUClasses[:3]}),
		enginetest.Node("c").CPU(8, "64Gi").Slices(7, "A100", "1g.10gb", "10Gi").SupportedIsolation(everything),
		isolated(enginetest.Job("j").Queue("q").CPU(1000, "1Gi").Devices(1), cpu, gpu),
	)
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p, room{}).Open(state, engine.Options{Search: engine.Twin})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Refusals) > 0 {
		return fmt.Sprint(out.Refusals[0].Reason, out.Refusals[0].Permanent)
	}
	return out.Decisions[0].Node
}

// room rejects nodes that have no devices for a task, as NodeResourcesFit does.
type room struct{}

func (room) Name() string { return "room" }
func (room) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
		if n.Feasible(s) {
			return nil
		}
		return &engine.Rejection{Reason: "Full", Cure: engine.Grow}
	})
}

// The reason of a refusal is the one with the highest precedence if nodes are rejected for
// different reasons.
func TestReasonOfARefusal(t *testing.T) {
	exclusive := cluster.SupportedIsolation{Share: cluster.ShareExclusive}
	node := func(name string, a cluster.SupportedIsolation) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(8, "64Gi").GPUs(1, "A100", "80Gi").SupportedIsolation(a)
	}
	device := func() *enginetest.JobBuilder {
		return isolated(enginetest.Job("j").Devices(1), "", cluster.GPUDeviceExclusive)
	}
	tests := map[string]struct {
		wantsPartitions []enginetest.Part
		reason          engine.Reason
		permanent       bool
	}{
		"no node advertises": {[]enginetest.Part{node("a", cluster.SupportedIsolation{}), node("b", cluster.SupportedIsolation{}), device()}, NoNodeSupportsClass, true},
		"contention beats": {[]enginetest.Part{node("a", cluster.SupportedIsolation{}), node("b", cluster.SupportedIsolation{}), node("c", everything), enginetest.Job("x").Devices(1).On("c"), device()},
			NodesSupportButContended, false},
		"daemon mode beats": {[]enginetest.Part{node("a", cluster.SupportedIsolation{CPU: cluster.CPUClasses, Share: cluster.ShareExclusive}), node("b", cluster.SupportedIsolation{}), node("c", cluster.SupportedIsolation{}),
			isolated(enginetest.Job("j").CPU(1000, "1Gi").Share(1, 500), cluster.CPUWholeCore, cluster.GPUShared)}, ClassConflictsWithDaemonMode, true},
		"a partition, exclusively": {[]enginetest.Part{node("a", everything), node("b", cluster.SupportedIsolation{}), isolated(enginetest.Job("j"), "", cluster.GPUDeviceExclusive).Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Partition: "1g.10gb"} })},
			ClassConflictsWithResourceId, true},
		"share mode everywhere": {[]enginetest.Part{node("a", exclusive), node("b", exclusive), isolated(enginetest.Job("j").Share(1, 500), "", cluster.GPUShared)}, ClassConflictsWithDaemonMode, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New(engine.NoArguments{})
			if err != nil {
				t.Fatal(err)
			}
			s := enginetest.Engine(p).Open(enginetest.State(tc.wantsPartitions...), engine.Options{})
			defer s.Close()
			out, err := s.Run()
			if err != nil || len(out.Refusals) != 1 {
				t.Fatalf("refusals %v, error %v", out.Refusals, err)
			}
			if r := out.Refusals[0]; r.Reason != tc.reason || r.Permanent != tc.permanent {
				t.Errorf("%s (permanent: %v), want %s (%v)", r.Reason, r.Permanent, tc.reason, tc.permanent)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"classes": []}`)); err == nil {
		t.Error("New takes arguments that it does not have")
	}
}

func BenchmarkIsolation(b *testing.B) {
	n := enginetest.Node("n").CPU(96, "512Gi").Resource("ephemeral-storage", 1<<40).Resource("hugepages-2Mi", 1<<30).GPUs(8, "A100", "80Gi").SupportedIsolation(everything).Build()
	for name, s := range map[string]*cluster.Shape{
		"device":  shape(isolated(enginetest.Job("j").CPU(1000, "1Gi").Devices(2), "", cluster.GPUDeviceExclusive)),
		"shared":  shape(enginetest.Job("j").CPU(1000, "1Gi").Share(1, 500)),
		"session": shape(isolated(enginetest.Job("j").CPU(1000, "1Gi").Devices(2), "", cluster.GPUSessionExclusive)),
		"cores":   shape(isolated(enginetest.Job("j").CPU(1000, "1Gi"), cluster.CPUWholeCore, "")),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				admit(s, n)
			}
		})
	}
}

// admit calls both filters, as a session does.
func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if r := support(s, n); r != nil {
		return r
	}
	return contention(s, n)
}
