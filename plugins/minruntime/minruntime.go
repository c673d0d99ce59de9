// Package minruntime protects tasks that started recently, so that the cost of their
// start is not lost.
//
// The minimum run time is that of the nearest queue, from the victim's queue upwards, that
// sets one. A queue may set one before reclaim and another before preemption, and each is
// searched for on its own; the latter also applies to moves. It does not matter for which job
// the room is needed. A victim counts as started long ago if the start of any of its tasks is
// not known.
package minruntime

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "MinRunTime"

// TooYoung is given for a victim that has not run for its minimum run time.
const TooYoung engine.Reason = "VictimTooYoung"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: TooYoung, Cure: engine.Wait, Phrase: "has not run for the minimum time of its queue", Protects: "that started less than {time} ago", Spans: "the minimum run time of their queues", Span: minimum, Meaning: "The victim started less than the minimum run time of its queue ago. For surplus tasks the earliest start among them counts, for a whole job the start of its first task. The reason protects a victim and rejects no node."},
}

type plugin struct {
	session *engine.Session
	bounds  bounds // of the queues
	judges  bounds // those for which hooks are registered
	// The bounds of the queues are valid for this State, until the specs of its queues change.
	view     cluster.View
	revision uint64
}

// bounds says whether any queue has a minimum run time before reclaim, or before preempt.
type bounds struct{ reclaim, preempt bool }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

// OnSessionOpen registers no hook for a purpose for which no queue has a minimum run time.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	p.judges = p.bounds
	if p.judges.reclaim {
		s.Hooks.AddReclaimable(p.protectYoung(engine.Reclaim))
		s.Hooks.NarrowVictims(engine.Reclaim, engine.NoClass)
	}
	if p.judges.preempt {
		s.Hooks.AddPreemptable(p.protectYoung(engine.Preempt))
		s.Hooks.AddMovable(p.protectYoung(engine.Move))
		s.Hooks.NarrowVictims(engine.Preempt, engine.NoClass)
		s.Hooks.NarrowVictims(engine.Move, engine.NoClass)
	}
}

// Reopen returns false if another purpose has a minimum run time than before.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	if revision := s.View.Recent().QueueSpecsVersion(); p.view != s.View || p.revision != revision {
		p.view, p.revision, p.bounds = s.View, revision, bounds{}
		for _, q := range s.View.Queues() {
			p.bounds.reclaim = p.bounds.reclaim || q.MinRunBeforeReclaim > 0
			p.bounds.preempt = p.bounds.preempt || q.MinRunBeforePreempt > 0
		}
	}
	return p.judges == p.bounds
}

// protectYoung protects victims that have run for less than the minimum run time.
func (p *plugin) protectYoung(purpose engine.Purpose) engine.VictimRule {
	judge := func(v *engine.Victim) engine.Verdict {
		s := p.session
		minRun := minimum(s.View, v.Job, purpose)
		if minRun == 0 {
			return engine.NoOpinion
		}
		if at := started(v); at != 0 && s.Now-at < minRun {
			return engine.Protect(TooYoung)
		}
		return engine.NoOpinion
	}
	return func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return judge }
}

// minimum returns for how many nanoseconds a job is protected after its start: the value of
// the nearest queue, from its own upwards, that sets one, and 0 if there is none.
func minimum(s cluster.View, j *cluster.Job, p engine.Purpose) int64 {
	for q := s.Queue(j.Queue); q != nil; q = s.Parent(q) {
		minRun := q.MinRunBeforePreempt
		if p == engine.Reclaim {
			minRun = q.MinRunBeforeReclaim
		}
		if minRun > 0 {
			return minRun
		}
	}
	return 0
}

// started returns when the first task of the victim started, and 0 if the start of one of its
// tasks is not known. For a whole job, tasks that are releasing count too. Otherwise the job
// would look younger once its oldest task was evicted.
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
