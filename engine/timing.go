package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Timings measures how long the hooks of plugins take. It does not measure functions that
// belong to another hook, such as last resorts, class rules and upper bounds. No decision
// depends on it.
type Timings struct {
	Clock func() int64 // a monotonic clock, in nanoseconds
	// PerTurn also measures each turn of a job, with the hooks that are called in it. Turns
	// returns them.
	PerTurn bool
	timers  map[[2]string]*timer
	turns   []TurnTiming
}

// Timing is how long one kind of hook of one plugin took.
type Timing struct {
	Plugin, Hook string
	Calls        int64
	Nanoseconds  int64 // for all calls; if there are many calls, it is estimated from a sample
}

// List returns what was measured, the longest time first.
func (t *Timings) List() []Timing { return t.since(nil) }

// since returns what was measured after the timers had the given values.
func (t *Timings) since(before map[[2]string]timer) []Timing {
	out := make([]Timing, 0, len(t.timers))
	for key, m := range t.timers {
		was := before[key]
		if calls, timed := m.calls-was.calls, m.timed-was.timed; timed > 0 {
			out = append(out, Timing{key[0], key[1], calls, int64(float64(m.nanoseconds-was.nanoseconds) * float64(calls) / float64(timed))})
		}
	}
	slices.SortFunc(out, func(a, b Timing) int {
		return cmp.Or(cmp.Compare(b.Nanoseconds, a.Nanoseconds), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Hook, b.Hook))
	})
	return out
}

// timer measures the calls of one hook: each of the first allTimed calls, then one of every
// sampleSize.
type timer struct {
	clock                     func() int64
	calls, timed, nanoseconds int64
}

const (
	allTimed   = 1024
	sampleSize = 16
)

func (t *Timings) timer(plugin, hook string) *timer {
	if t.timers == nil {
		t.timers = map[[2]string]*timer{}
	}
	key := [2]string{plugin, hook}
	if t.timers[key] == nil {
		t.timers[key] = &timer{clock: t.Clock}
	}
	return t.timers[key]
}

// start counts a call and returns its start time, or -1 if the call is not measured.
func (t *timer) start() int64 {
	if t.calls++; t.calls > allTimed && t.calls%sampleSize != 0 {
		return -1
	}
	return t.clock()
}

func (t *timer) stop(start int64) {
	if start >= 0 {
		t.timed++
		t.nanoseconds += t.clock() - start
	}
}

// measure replaces the hooks by functions that measure them.
func (m *Timings) measure(h *Hooks) {
	timeAll(m, "AddQueueOrder", h.queueOrders, timed2[Bid, Bid, int])
	timeAll(m, "AddJobPriority", h.jobPriorities, timed2[*cluster.Job, *cluster.Job, int])
	timeAll(m, "AddJobOrder", h.jobOrders, timed2[*cluster.Job, *cluster.Job, int])
	timeAll(m, "AddSurplus", h.surpluses, timed2[*cluster.Job, []*cluster.Task, bool])
	timeAll(m, "AddTaskOrder", h.taskOrders, timed2[*cluster.Task, *cluster.Task, int])
	timeAll(m, "AddPreFilter", h.preFilters, timed2[*cluster.Task, *cluster.Job, *Rejection])
	timeAll(m, "AddShapeFilter", h.shapeFilters, timed2[*cluster.Shape, *cluster.Node, *Rejection])
	timeAll(m, "AddTaskFilter", h.taskFilters, timed3[*cluster.Task, *cluster.Job, *cluster.Node, *Rejection])
	timeAll(m, "AddShapeScore", h.shapeScores, timed2[*cluster.Shape, *cluster.Node, float64])
	timeAll(m, "AddTaskScore", h.taskScores, timed3[*cluster.Task, *cluster.Job, *cluster.Node, float64])
	timeAll(m, "AddDeviceScore", h.deviceScores, timed3[*cluster.Shape, *cluster.Node, *cluster.Device, float64])
	timeAll(m, "AddGroupFilter", h.groupFilters, timed4[*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node, *Rejection])
	timeAll(m, "AddGroupScore", h.groupScores, timed4[*cluster.Job, *cluster.WholeNodes, *cluster.Group, []*cluster.Node, float64])
	timeAll(m, "AddExclusion", h.exclusions, timed1[*cluster.Job, []Exclusion])
	timeAll(m, "AddInstanceScore", h.instanceScores, timed1[*cluster.Job, float64])
	for p, hook := range [purposes]string{Reclaim: "AddReclaimable", Preempt: "AddPreemptable", Move: "AddMovable"} {
		timeAll(m, hook, h.victims[p], timedVictimRule)
	}
	timeAll(m, "AddVictimCost", h.victimCosts, timed1[*cluster.Task, int64])
	timeAll(m, "AddAdapter", h.adapters, timed3[*Statement, *cluster.Job, *Refusal, *Refusal])
	timeAll(m, "AddLearner", h.learners, func(t *timer, l learner) learner {
		return learner{l.key, l.use, func() []int64 { defer t.stop(t.start()); return l.learn() }, l.notes}
	})
	timeAll(m, "AddStanding", h.standings, timed1[*cluster.Queue, []Standing])
	timeAll(m, "AddSweep", h.sweeps, func(t *timer, fn Sweep) Sweep {
		return func(stmt *Statement) { defer t.stop(t.start()); fn(stmt) }
	})
	timeAll(m, "AddReserve", h.reservers, func(t *timer, r Reserver) Reserver {
		out := Reserver{Reserve: timed2(t, r.Reserve), Unreserve: func(task *cluster.Task, n *cluster.Node) { defer t.stop(t.start()); r.Unreserve(task, n) }}
		if r.Devices != nil {
			out.Devices = timed2(t, r.Devices)
		}
		return out
	})
	timeAll(m, "AddEventHandler", h.handlers, func(t *timer, e EventHandler) EventHandler {
		return EventHandler{timedHandler(t, e.AllocateFunc), timedHandler(t, e.DeallocateFunc)}
	})
}

// timeAll replaces the function of each hook by one that measures it.
func timeAll[F any](m *Timings, name string, list []hook[F], measured func(*timer, F) F) {
	for i := range list {
		h := &list[i]
		h.origin = h.function()
		h.fn = measured(m.timer(h.plugin, h.registered(name)), h.fn)
	}
}

func timed1[A, R any, F ~func(A) R](t *timer, fn F) F {
	return func(a A) R { defer t.stop(t.start()); return fn(a) }
}

func timed2[A, B, R any, F ~func(A, B) R](t *timer, fn F) F {
	return func(a A, b B) R {
		start := t.start()
		r := fn(a, b)
		t.stop(start)
		return r
	}
}

func timed3[A, B, C, R any, F ~func(A, B, C) R](t *timer, fn F) F {
	return func(a A, b B, c C) R {
		start := t.start()
		r := fn(a, b, c)
		t.stop(start)
		return r
	}
}

func timed4[A, B, C, D, R any, F ~func(A, B, C, D) R](t *timer, fn F) F {
	return func(a A, b B, c C, d D) R { defer t.stop(t.start()); return fn(a, b, c, d) }
}

// timedVictimRule measures the call of a VictimRule and each call of the function that it
// returns.
func timedVictimRule(t *timer, fn VictimRule) VictimRule {
	return func(job *cluster.Job, lacks []*cluster.Task) func(*Victim) Verdict {
		start := t.start()
		judge := fn(job, lacks)
		t.stop(start)
		if judge == nil {
			return nil
		}
		return timed1(t, judge)
	}
}

func timedHandler(t *timer, fn func(*Event)) func(*Event) {
	if fn == nil {
		return nil
	}
	return func(e *Event) { defer t.stop(t.start()); fn(e) }
}
