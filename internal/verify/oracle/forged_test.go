package oracle

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// forged is an outcome that a test writes without an engine.
type forged struct {
	state *cluster.State
	out   engine.Outcome
}

func (f *forged) task(job string, i int) *cluster.Task { return f.state.Job("job/" + job).Tasks()[i] }

func (f *forged) place(action engine.Action, t *cluster.Task, node string, claims ...cluster.Claim) {
	kind := map[engine.Action]engine.EventKind{engine.Bind: engine.BoundTo, engine.Nominate: engine.NominatedTo}[action]
	f.out.Events = append(f.out.Events, engine.Record{Kind: kind, Job: t.Job.ID, Task: t.Ref(), Decision: &engine.Decision{Action: action, Task: t.Ref(), Node: node, Claims: claims}})
}

func (f *forged) evict(t *cluster.Task, why engine.Reason, job string) {
	f.out.Events = append(f.out.Events, engine.Record{Kind: engine.Evicted, Job: t.Job.ID, Task: t.Ref(), Decision: &engine.Decision{Action: engine.EvictTask, Task: t.Ref(), Reason: why, For: job}})
}

// TestForged checks that violations are found that only a faulty engine makes. Nodes n and m
// have two devices each, and node l, in another rack, has one. job/r holds both devices of n,
// and job/w is a pending gang of two tasks with one device each.
func TestForged(t *testing.T) {
	whole := func(i int) cluster.Claim { return cluster.Claim{Device: i, Milli: cluster.Whole, Memory: 80 * gib} }
	gpus := resourceNames[gpu]
	for name, c := range map[string]struct {
		kind  Kind // "": Preempt
		queue *enginetest.QueueBuilder
		firm  bool
		racks bool
		forge func(*forged)
		rules []string // the rules that are broken
	}{
		"no violation": {forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "m", whole(1))
		}},
		"held by others": {forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "m", whole(0))
		}, rules: []string{"a device is of another product, too small or held by other tasks", "bound before its room is free"}},
		"half a gang": {forge: func(f *forged) { f.place(engine.Bind, f.task("w", 0), "m", whole(0)) },
			rules: []string{"its tasks start although its minimum is not bound", "placed below its minimum"}},
		"unknown node": {forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "x", whole(1))
		}, rules: []string{"its tasks start although its minimum is not bound", "placed below its minimum", "placed on a node that does not exist"}},
		"less than requested": {forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "m")
		}, rules: []string{"bound before its room is free", "it does not hold as many devices as it requests"}},
		"beyond the limit": {queue: enginetest.Queue("q").Limit(gpus, 3*device), forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "m", whole(1))
		}, rules: []string{"its queue exceeds its limit"}},
		"firm beyond the quota": {queue: enginetest.Queue("q").Quota(gpus, device), firm: true, forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "m", whole(1))
		}, rules: []string{"jobs that are not preemptible exceed the quota"}},
		"evicted for a job that is not placed": {forge: func(f *forged) { f.evict(f.task("r", 0), "Preempted", "job/w") },
			rules: []string{"evictions for a job that is not placed", "its minimum was not placed"}},
		"evicted for no job": {forge: func(f *forged) { f.evict(f.task("r", 0), "Preempted", "") }, rules: []string{"evictions for no job"}},
		"another reason, and too soon": {forge: func(f *forged) {
			f.evict(f.task("r", 0), "Consolidated", "job/w")
			f.place(engine.Bind, f.task("w", 0), "n", whole(0))
			f.place(engine.Bind, f.task("w", 1), "n", whole(1))
		}, rules: []string{"bound before its room is free", "evicted with a reason of another plugin", "no plugin may evict it"}},
		"more than needed": {forge: func(f *forged) {
			f.evict(f.task("r", 0), "Preempted", "job/w")
			f.place(engine.Nominate, f.task("w", 0), "n", whole(0))
			f.place(engine.Nominate, f.task("w", 1), "n", whole(1))
		}, rules: []string{"not all of its victims are needed"}},
		"moved to its former location": {kind: Consolidate, forge: func(f *forged) {
			f.evict(f.task("r", 0), "Consolidated", "job/w")
			f.place(engine.Nominate, f.task("w", 0), "m", whole(0))
			f.place(engine.Nominate, f.task("w", 1), "m", whole(1))
			f.place(engine.Nominate, f.task("r", 0), "n", whole(0), whole(1))
		}, rules: []string{"moved to its former location", "not all of its victims are needed"}},
		"moved without a new location": {kind: Combined, forge: func(f *forged) {
			f.evict(f.task("r", 0), "Consolidated", "job/w")
			f.place(engine.Nominate, f.task("w", 0), "n", whole(0))
			f.place(engine.Nominate, f.task("w", 1), "n", whole(1))
		}, rules: []string{"moved, but it has no new location", "not all of its victims are needed"}},
		"reclaimed in its own queue": {kind: Combined, forge: func(f *forged) {
			f.evict(f.task("r", 0), "Reclaimed", "job/w")
			f.place(engine.Nominate, f.task("w", 0), "n", whole(0))
			f.place(engine.Nominate, f.task("w", 1), "n", whole(1))
		}, rules: []string{"reclaim: it is in the same queue"}},
		"in two racks": {kind: Topology, racks: true, forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 1), "l", whole(0))
		}, rules: []string{"placed outside the domain of its job"}},
		"twice": {forge: func(f *forged) {
			f.place(engine.Bind, f.task("w", 0), "m", whole(0))
			f.place(engine.Bind, f.task("w", 0), "m", whole(1))
		}, rules: []string{"its tasks start although its minimum is not bound", "placed below its minimum", "placed, but it was not pending"}},
	} {
		if c.queue == nil {
			c.queue = enginetest.Queue("q")
		}
		want := enginetest.Job("w").Queue("q").Gang(2).Devices(1).Priority(1)
		if !c.firm {
			want.Preemptible()
		}
		if c.kind == "" {
			c.kind = Preempt
		}
		if c.racks {
			want.Topology(cluster.Topology{Required: rack})
		}
		f := &forged{state: enginetest.State(node("n", 2).Label(rack, "r1"), node("m", 2).Label(rack, "r1"), node("l", 1).Label(rack, "r2"), c.queue, enginetest.Job("r").Queue("q").Devices(2).Preemptible().On("n"), want)}
		before := f.state.Clone()
		c.forge(f)
		var rules []string
		for _, v := range Legal(c.kind, before, 1000*minute, f.out) {
			if !slices.Contains(rules, v.Rule) {
				rules = append(rules, v.Rule)
			}
		}
		if slices.Sort(rules); !slices.Equal(rules, c.rules) {
			t.Errorf("%s: %q, want %q", name, rules, c.rules)
		}
	}
}
