package standard_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim/timeline"
)

// Many nodes have one victim each. Which victim is chosen does not depend on the number of nodes.
func TestVictimAmongMany(t *testing.T) {
	scavengers := enginetest.Queue("s").Tier(cluster.TierScavenger)
	tests := map[string]struct {
		queues  []enginetest.Part
		devices int
		victim  func(i int, j *enginetest.JobBuilder)
		job     *enginetest.JobBuilder
		without []string
		want    []int // from the end where negative
	}{
		"the youngest": {
			devices: 1, job: enginetest.Job("new").Devices(1).Priority(5),
			victim: func(i int, j *enginetest.JobBuilder) { j.Started(int64(i + 1)) }, want: []int{-1},
		},
		"the lowest priority": {
			devices: 1, job: enginetest.Job("new").Devices(1).Priority(5),
			victim: func(i int, j *enginetest.JobBuilder) { j.Priority(int32(-1 - i)) }, want: []int{-1},
		},
		"the youngest of the weakest tier": {
			queues: []enginetest.Part{scavengers}, devices: 1, job: enginetest.Job("new").Devices(1).Priority(5),
			victim:  func(i int, j *enginetest.JobBuilder) { j.Queue("s").Started(int64(i + 1)) },
			without: []string{"Reclaim"}, want: []int{-1},
		},
		"the lowest priority of the weakest tier": {
			queues: []enginetest.Part{scavengers}, devices: 1, job: enginetest.Job("new").Devices(1).Priority(5),
			victim:  func(i int, j *enginetest.JobBuilder) { j.Queue("s").Priority(int32(-1 - i)) },
			without: []string{"Reclaim"}, want: []int{-1},
		},
		// The tier of the queue is determined before any task of the gang is placed: the gang
		// is counted once, and not again for each task that is placed.
		"two for a gang within a guaranteed quota": {
			queues:  []enginetest.Part{enginetest.Queue("g").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), enginetest.Queue("r")},
			devices: 1, job: enginetest.Job("new").Queue("g").Gang(2).Devices(1),
			victim:  func(_ int, j *enginetest.JobBuilder) { j.Queue("r") },
			without: []string{"Reclaim"}, want: []int{0, 1},
		},
		// The second victim leaves its queue below its share, which is allowed only for a queue within its quota.
		"two that cannot be divided, for a gang within a smaller quota": {
			queues:  []enginetest.Part{enginetest.Queue("q").Quota(gpu, 12000), enginetest.Queue("r")},
			devices: 8, job: enginetest.Job("new").Queue("q").Gang(2).Devices(6),
			victim: func(_ int, j *enginetest.JobBuilder) { j.Queue("r").Devices(8) }, want: []int{0, 1},
		},
	}
	for name, tt := range tests {
		for _, n := range []int{6, 70} {
			t.Run(fmt.Sprintf("%s/%d nodes", name, n), func(t *testing.T) {
				parts := append(slices.Clone(tt.queues), tt.job)
				for i := range n {
					j := low(fmt.Sprintf("v%03d", i)).On(fmt.Sprintf("n%03d", i))
					tt.victim(i, j)
					parts = append(parts, a100(fmt.Sprintf("n%03d", i), tt.devices), j)
				}
				var want []string
				for _, i := range tt.want {
					want = append(want, fmt.Sprintf("job/v%03d/worker-0", (i+n)%n))
				}
				out := session(t, profile(t, tt.without...), enginetest.State(parts...), engine.Options{})
				if d := cmp.Diff(want, evictedTasks(out)); d != "" {
					t.Errorf("evicted (-want +got):\n%s", d)
				}
			})
		}
	}
}

// Which victim is chosen does not depend on the number of nodes without possible victims.
func TestVictimAmongBystanders(t *testing.T) {
	rack := func(name, rack string) *enginetest.NodeBuilder { return a100(name, 4).Label("rack", rack) }
	other := func(n *cluster.Node) { n.DeviceResource = "other.com/gpu" }
	tests := map[string]struct {
		parts []enginetest.Part
		want  []string
	}{
		"one large rather than two small": {
			[]enginetest.Part{
				a100("a", 4), low("x").On("a"), low("y").On("a"), low("z").Devices(2).On("a"),
				enginetest.Job("new").Devices(2).Priority(9),
			},
			[]string{"job/z/worker-0"},
		},
		"the cheapest rack rather than the first": {
			[]enginetest.Part{
				rack("a", "1"), low("v0").On("a"), low("v1").On("a"), low("v2").On("a"), low("v3").On("a"),
				rack("b", "2"), low("w").Devices(4).On("b"),
				enginetest.Job("new").Gang(2).Devices(2).Priority(5).Topology(cluster.Topology{Required: "rack"}),
			},
			[]string{"job/w/worker-0"},
		},
		// Free devices are summed over all resource names, so the request must be, too.
		"devices of another name are not in the way": {
			[]enginetest.Part{
				a100("a0", 2).With(other), enginetest.Job("f0").Devices(2).On("a0"),
				a100("a1", 2).With(other), enginetest.Job("f1").Devices(2).On("a1"),
				a100("a2", 2).With(other), enginetest.Job("f2").Devices(2).On("a2"),
				a100("b0", 2), low("x0").On("b0"), a100("b1", 2), low("x1").On("b1"),
				enginetest.Job("new").Devices(2),
			},
			[]string{"job/x0/worker-0"},
		},
	}
	for name, tt := range tests {
		for _, n := range []int{0, 70} {
			t.Run(fmt.Sprintf("%s/%d bystanders", name, n), func(t *testing.T) {
				out := session(t, profile(t), enginetest.State(append(bystanders(n), tt.parts...)...), engine.Options{})
				if d := cmp.Diff(tt.want, evictedTasks(out)); d != "" {
					t.Errorf("evicted (-want +got):\n%s", d)
				}
			})
		}
	}
}

// Protected victims are first here, and there are more of them than the nodes that a search
// looks at without success. They must not use up that number.
func TestProtectedVictimsDoNotEndTheSearch(t *testing.T) {
	var parts []enginetest.Part
	for i := range 300 {
		name := fmt.Sprintf("n%03d", i)
		j := low("v" + name).Priority(10).On(name)
		if i == 299 {
			j.Priority(0)
		}
		parts = append(parts, a100(name, 1), j)
	}
	s := enginetest.State(append(parts, enginetest.Job("new").Devices(1).Priority(5))...)
	e := profile(t)
	var got []string
	for i := range int64(5) { // each session is after the back-off of the one before
		got = append(got, evictedTasks(session(t, e, s, engine.Options{Now: (1000 + 400*i) * second, Patient: true}))...)
	}
	if d := cmp.Diff([]string{"job/vn299/worker-0"}, got); d != "" {
		t.Errorf("evicted (-want +got):\n%s", d)
	}
}

// The queue's own limit is reached: only victims in this queue help.
func TestQueueLimitAmongManyOthers(t *testing.T) {
	for _, n := range []int{20, 40} {
		parts := []enginetest.Part{
			enginetest.Queue("q").Limit(gpu, 2000), enginetest.Queue("r"),
			low("l1").Queue("q").On("n000"), low("l2").Queue("q").On("n001"),
			low("new").Queue("q").Priority(5),
		}
		for i := range n {
			name := fmt.Sprintf("n%03d", i)
			parts = append(parts, a100(name, 8))
			for k := range 7 {
				parts = append(parts, low(fmt.Sprintf("v%s-%d", name, k)).Queue("r").On(name))
			}
		}
		out := session(t, profile(t), enginetest.State(parts...), engine.Options{})
		if d := cmp.Diff([]string{"job/l1/worker-0"}, evictedTasks(out)); d != "" {
			t.Errorf("%d nodes: evicted (-want +got):\n%s", n, d)
		}
	}
}

// The last task of the gang needs a node from which a whole gang must be evicted, and then
// there is room for all its tasks: victims that were chosen before are not evicted.
func TestNoNeedlessVictims(t *testing.T) {
	for _, n := range []int{3, 13} {
		parts := append(bystanders(70), enginetest.Node("m").CPU(64, "512Gi").GPUs(1, "H100", "80Gi"))
		on := []string{"m"}
		want := []string{"job/gang/worker-0"}
		for i := range n {
			single, member := fmt.Sprintf("s%02d", i), fmt.Sprintf("g%02d", i)
			parts = append(parts, a100(single, 1), a100(member, 1), low(single).On(single))
			on = append(on, member)
			want = append(want, fmt.Sprintf("job/gang/worker-%d", i+1))
		}
		s := enginetest.State(append(parts, low("gang").Gang(n+1).On(on...))...)
		j := enginetest.Job("new").Gang(n + 1).Devices(1).Priority(5).Build()
		for i, w := range j.Tasks() {
			w.Shape.Need.Products = []string{"A100"}
			if i == n {
				w.Shape.Need.Products = []string{"H100"}
			}
		}
		apply(t, s, cluster.JobPut{Job: *j})
		slices.Sort(want)
		if d := cmp.Diff(want, evictedTasks(session(t, profile(t), s, engine.Options{}))); d != "" {
			t.Errorf("%d singles: evicted (-want +got):\n%s", n, d)
		}
	}
}

// Jobs with equal requests share the result of a search; a job that requests more does not.
func TestRefusedGangDoesNotAffectOtherJobs(t *testing.T) {
	for name, before := range map[string][]enginetest.Part{
		"alone": nil, "after a gang beyond the quota": {low("big").Queue("g").Gang(3).Created(1)},
	} {
		parts := append([]enginetest.Part{
			enginetest.Queue("g").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), enginetest.Queue("r"),
			low("small").Queue("g").Created(2),
		}, before...)
		for i := range 70 {
			n := fmt.Sprintf("n%03d", i)
			parts = append(parts, a100(n, 1), low("v"+n).Queue("r").On(n))
		}
		s := enginetest.State(parts...)
		session(t, profile(t, "Reclaim"), s, engine.Options{})
		if !s.Job("job/small").HasMinimum() {
			t.Errorf("%s: the job is not placed", name)
		}
	}
}

// A quota that names no devices must not make a queue stronger when it requests devices than
// when it holds them: each device is reclaimed at most once and never reclaimed back.
func TestReclaimedAtMostOnce(t *testing.T) {
	queue := func() *enginetest.QueueBuilder { return enginetest.Queue("g").Tier(cluster.TierGuaranteed) }
	for name, q := range map[string]*enginetest.QueueBuilder{"no quota": queue(), "a quota of cores": queue().Quota(cluster.CPU, 8000)} {
		parts := []enginetest.Part{q, enginetest.Queue("r"), a100("a", 8)}
		for i := range 8 {
			parts = append(parts, low(fmt.Sprintf("g%d", i)).Queue("g"), low(fmt.Sprintf("r%d", i)).Queue("r"))
		}
		c, err := timeline.Run(profile(t), enginetest.State(parts...), timeline.Options{Cycles: 500, Start: 1000 * second, Every: 60 * second, Grace: 1})
		if err != nil {
			t.Fatal(err)
		}
		if n := c.Summary().Evictions; !c.Settled || n > 8 {
			t.Errorf("%s: %d evictions in %d cycles, settled %t", name, n, c.Cycle, c.Settled)
		}
	}
}

// A victim that holds none of the divided resources is not waited for: no other eviction
// makes it allowed. The session checks that no node with victims is left out.
func TestVictimsWithoutDevicesAreNotWaitedFor(t *testing.T) {
	s := enginetest.State(enginetest.Queue("owners").Quota(gpu, 1000), enginetest.Queue("others"),
		enginetest.Node("a").CPU(64, "16Gi").GPUs(1, "A100", "80Gi"), enginetest.Node("b").CPU(64, "64Gi").GPUs(1, "A100", "80Gi"),
		low("mine").Queue("owners").On("a"), enginetest.Job("theirs").Queue("others").CPU(1000, "64Gi").Preemptible().On("b"),
		enginetest.Job("new").Queue("owners").Devices(1).CPU(1000, "32Gi").Priority(5))
	if out := session(t, profile(t), s, engine.Options{Search: engine.Twin}); len(out.Decisions) > 0 {
		t.Errorf("%v", out.Decisions)
	}
}
