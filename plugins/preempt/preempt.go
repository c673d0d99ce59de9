// Package preempt makes room for a job by evicting what matters less: jobs of
// lower priority in its own queue, and jobs of weaker tiers in others.
//
// It refuses to know what a fair share is.
package preempt

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/tier"
)

// Name is the plugin's name in a profile.
const Name = "Preempt"

// The reasons: why a task was evicted, and why others were not.
const (
	Preempted                engine.Reason = "Preempted"
	VictimNotLower           engine.Reason = "VictimNotLower"           // in the same queue, of the same or a higher priority
	VictimTierNotWeaker      engine.Reason = "VictimTierNotWeaker"      // in another queue, of the same or a stronger tier
	VictimWithinItsGuarantee engine.Reason = "VictimWithinItsGuarantee" // a Guaranteed queue would fall below its quota
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: Preempted, Phrase: "the other one matters more", Meaning: "Of an eviction: a job of higher priority in the same queue, or of a stronger tier in another, takes the task's place."},
	{Reason: VictimNotLower, Phrase: "of no lower priority", Spared: "of no lower priority", Meaning: "Why a job is not preempted: its priority is not lower than that of the job in the same queue that wants its room."},
	{Reason: VictimTierNotWeaker, Phrase: "of no weaker tier", Spared: "of no weaker tier", Meaning: "Why a job is not preempted: its queue is of no weaker tier than the one that wants its room."},
	{Reason: VictimWithinItsGuarantee, Phrase: "its Guaranteed queue would fall below its quota", Spared: "whose Guaranteed queue would fall below its quota", Meaning: "Why a job is not preempted: its queue is Guaranteed, and would hold less than its quota without it."},
}

type plugin struct{ session *engine.Session }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.session = s
	s.Hooks.AddPreemptable(p.preemptable)
	s.Hooks.NarrowVictims(engine.Preempt, p.classes)
	s.Hooks.NarrowQueues(engine.Preempt, p.queues)
	s.Hooks.AddMeans(engine.Preempt, Preempted)
}

// preemptable compares priorities within a queue, and tiers where branches part.
func (p *plugin) preemptable(job *cluster.Job, lacks []*cluster.Task) func(*engine.Victim) engine.Verdict {
	view := p.session.View
	own, tierOf := p.tiers(job, lacks)
	return func(v *engine.Victim) engine.Verdict {
		if v.Job.Queue == job.Queue {
			if v.Job.Priority < job.Priority {
				return engine.Allow
			}
			return engine.Protect(VictimNotLower)
		}
		a, b := view.Fork(own, view.Queue(v.Job.Queue))
		if b == nil { // a job that runs stays in its queue when that is gone, or has queues below it by now
			return engine.Protect(VictimTierNotWeaker)
		}
		theirs, keeps := tier.Without(view, b, func(resource string) int64 { return v.ChargeOf(b, resource) })
		switch {
		case keeps:
			return engine.Protect(VictimWithinItsGuarantee)
		case theirs.Rank() > tierOf(a).Rank():
			return engine.Allow
		case theirs.Rank() > a.Tier.Rank():
			return engine.NotYet(VictimTierNotWeaker) // the quota of a may hold once others of it have left
		}
		return engine.Protect(VictimTierNotWeaker)
	}
}

// classes are those of lower priority in the queue, and those of queues that may
// count as weaker: beyond its quota a Guaranteed queue is Standard.
func (p *plugin) classes(job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	view := p.session.View
	own, weaker := view.Queue(job.Queue), p.weaker(job)
	return func(c cluster.Class) bool {
		if c.Queue == job.Queue {
			return c.Priority < job.Priority
		}
		if !weaker {
			return false
		}
		a, b := view.Fork(own, view.Queue(c.Queue))
		return b != nil && tier.Weakest(b).Rank() > a.Tier.Rank()
	}
}

// queues is the job's own where no other queue counts as weaker.
func (p *plugin) queues(job *cluster.Job, _ []*cluster.Task) (queues []string, all bool) {
	if p.weaker(job) {
		return nil, true
	}
	return []string{job.Queue}, false
}

// weaker reports whether some queue may count as weaker than the job's or one above it.
func (p *plugin) weaker(job *cluster.Job) bool {
	view := p.session.View
	for q := view.Queue(job.Queue); q != nil; q = view.Parent(q) {
		if max(view.Weakest(), cluster.TierStandard.Rank()) > q.Tier.Rank() {
			return true
		}
	}
	return false
}

// tiers is what the job's queue and those above it count as with the job: those of its
// tasks that are placed already are part of what the queues hold.
func (p *plugin) tiers(job *cluster.Job, lacks []*cluster.Task) (own *cluster.Queue, tierOf func(*cluster.Queue) cluster.Tier) {
	view := p.session.View
	return view.Queue(job.Queue), func(q *cluster.Queue) cluster.Tier {
		return tier.With(view, q, func(resource string) int64 { return p.session.ChargeStill(q, lacks, resource) })
	}
}
