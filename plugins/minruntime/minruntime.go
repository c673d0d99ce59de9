// Package minruntime leaves tasks alone that have only just started: what has to
// go before it has done any work has cost a start for nothing.
//
// It goes by the minimum run time of the nearest queue at or above the victim's
// that sets one, and refuses to know who asks for the room. A task whose start
// nobody saw started long ago.
package minruntime

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "MinRunTime"

// TooYoung is given for a victim whose minimum run time has not passed.
const TooYoung engine.Reason = "VictimTooYoung"

// reasons documents what the plugin says about victims.
var reasons = []engine.ReasonDoc{
	{Reason: TooYoung, Cure: engine.Wait, Phrase: "has not run for the minimum time of its queue", Spared: "that started less than {time} ago", Spans: "the minimum run time of their queues", Span: minimum, Meaning: "What would have to go started less than the minimum run time of its queue ago: a task by its own start, a whole job by that of its first task. It spares a victim and turns no node down."},
}

// plugin remembers what it found in the terms of queues until they change.
type plugin struct {
	view             cluster.View
	revision         uint64
	reclaim, preempt bool // some queue has a run time for it
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers nothing for a purpose that no queue has a run time for.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	if p.view != s.View || p.revision != s.View.Recent().Terms() {
		*p = plugin{view: s.View, revision: s.View.Recent().Terms()}
		for _, q := range s.View.Queues() {
			p.reclaim = p.reclaim || q.MinRunBeforeReclaim > 0
			p.preempt = p.preempt || q.MinRunBeforePreempt > 0
		}
	}
	if p.reclaim {
		s.Hooks.AddReclaimable(veto(s, engine.Reclaim))
		s.Hooks.NarrowVictims(engine.Reclaim, engine.NoClass)
	}
	if p.preempt {
		s.Hooks.AddPreemptable(veto(s, engine.Preempt))
		s.Hooks.AddMovable(veto(s, engine.Move))
		s.Hooks.NarrowVictims(engine.Preempt, engine.NoClass)
		s.Hooks.NarrowVictims(engine.Move, engine.NoClass)
	}
}

// veto protects victims that are younger than their queues' minimum.
func veto(s *engine.Session, p engine.Purpose) engine.VictimRule {
	may := func(v *engine.Victim) engine.Verdict {
		least := minimum(s.View, v.Job, p)
		if least == 0 {
			return engine.NoOpinion
		}
		if at := started(v); at != 0 && s.Now-at < least {
			return engine.Protect(TooYoung)
		}
		return engine.NoOpinion
	}
	return func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return may }
}

// minimum is how long a job is protected after its start: what the nearest queue at or
// above its own says; 0: none does.
func minimum(s cluster.View, j *cluster.Job, p engine.Purpose) int64 {
	for q := s.Queue(j.Queue); q != nil; q = s.Parent(q) {
		least := q.MinRunBeforePreempt
		if p == engine.Reclaim {
			least = q.MinRunBeforeReclaim
		}
		if least > 0 {
			return least
		}
	}
	return 0
}

// started is when the victim began to run, 0 for long ago. Tasks of a whole job
// that went before the rest still tell when it began.
func started(v *engine.Victim) int64 {
	if !v.Whole {
		first := v.Tasks[0].Started
		for _, t := range v.Tasks {
			first = min(first, t.Started)
		}
		return first
	}
	first := int64(-1)
	for _, t := range v.Job.Tasks() {
		if ran := t.Runs() || t.Status == cluster.Releasing; ran && (first < 0 || t.Started < first) {
			first = t.Started
		}
	}
	return max(0, first)
}
