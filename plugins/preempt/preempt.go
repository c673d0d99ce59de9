// Package preempt makes room for a job by evicting jobs of lower priority in its own queue
// and jobs of weaker tiers in other queues. Only preemptible jobs are evicted.
//
// What a Guaranteed queue holds within its quota is Guaranteed, and what it holds beyond its
// quota is Standard. A job is not evicted if its Guaranteed queue would then hold less than
// its quota. The plugin does not consider fair shares, for which Reclaim evicts.
package preempt

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/tier"
)

// Name is the plugin's name in a profile.
const Name = "Preempt"

// The reasons: why a task was evicted, and why a victim is protected.
const (
	Preempted                engine.Reason = "Preempted"                // the task was evicted for a job of higher priority or stronger tier
	VictimNotLower           engine.Reason = "VictimNotLower"           // the victim is in the same queue and of the same or a higher priority
	VictimTierNotWeaker      engine.Reason = "VictimTierNotWeaker"      // the victim is in another queue, of the same or a stronger tier
	VictimWithinItsGuarantee engine.Reason = "VictimWithinItsGuarantee" // the victim's Guaranteed queue would hold less than its quota
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: Preempted, Phrase: "for a job of higher priority or stronger tier", Meaning: "Of an eviction: a job of higher priority in the same queue, or of a stronger tier in another queue, takes the room of the task."},
	{Reason: VictimNotLower, Phrase: "of the same or a higher priority", Protects: "of the same or a higher priority", Meaning: "Why a job is not preempted: its priority is not lower than that of the job in the same queue that needs its room."},
	{Reason: VictimTierNotWeaker, Phrase: "of the same or a stronger tier", Protects: "of the same or a stronger tier", Meaning: "Why a job is not preempted: the tier of its queue is not weaker than that of the queue that needs its room."},
	{Reason: VictimWithinItsGuarantee, Phrase: "its Guaranteed queue would hold less than its quota", Protects: "in Guaranteed queues that would hold less than their quota", Meaning: "Why a job is not preempted: its queue is Guaranteed, and would hold less than its quota without the job."},
}

type plugin struct {
	session  *engine.Session
	register func(*engine.Hooks) // registers the hooks; nil before the first session
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	if p.register == nil {
		p.register = p.registration()
	}
	p.register(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	return true
}

// registration returns the function that registers the hooks. The functions of the hooks are made
// once, because each method value that is made allocates memory.
func (p *plugin) registration() func(*engine.Hooks) {
	preemptable, classes, queues := p.preemptable, p.classes, p.queues
	return func(h *engine.Hooks) {
		h.AddPreemptable(preemptable)
		h.NarrowVictims(engine.Preempt, classes)
		h.NarrowQueues(engine.Preempt, queues)
		h.AddEvictionPurpose(engine.Preempt, Preempted)
	}
}

// preemptable compares priorities within a queue, and otherwise the tiers of the two
// sibling queues at which the paths to the queues diverge.
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
		if b == nil { // the victim's queue was removed, or has queues below it by now; the job still runs
			return engine.Protect(VictimTierNotWeaker)
		}
		theirs, keeps := tier.WithoutVictim(view, b, func(resource string) int64 { return v.ChargeOf(b, resource) })
		switch {
		case keeps:
			return engine.Protect(VictimWithinItsGuarantee)
		case theirs.Rank() > tierOf(a).Rank():
			return engine.Allow
		case theirs.Rank() > a.Tier.Rank():
			return engine.NotYet(VictimTierNotWeaker) // once other victims are evicted, queue a may be within its quota
		}
		return engine.Protect(VictimTierNotWeaker)
	}
}

// classes returns the classes that may contain victims: those of lower priority in the same
// queue, and those of queues that may count as weaker. Beyond its quota a Guaranteed queue
// is Standard.
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

// queues returns the job's own queue only, if no other queue can count as weaker.
func (p *plugin) queues(job *cluster.Job, _ []*cluster.Task) (queues []string, all bool) {
	if p.weaker(job) {
		return nil, true
	}
	return []string{job.Queue}, false
}

// weaker reports whether some queue may count as weaker than the job's queue or one above it.
func (p *plugin) weaker(job *cluster.Job) bool {
	view := p.session.View
	for q := view.Queue(job.Queue); q != nil; q = view.Parent(q) {
		if max(view.Weakest(), cluster.TierStandard.Rank()) > q.Tier.Rank() {
			return true
		}
	}
	return false
}

// tiers returns the tier that the job's queue, and each queue above it, has with the job.
// Tasks of the job that are already placed are included in what the queues hold.
func (p *plugin) tiers(job *cluster.Job, lacks []*cluster.Task) (own *cluster.Queue, tierOf func(*cluster.Queue) cluster.Tier) {
	view := p.session.View
	return view.Queue(job.Queue), func(q *cluster.Queue) cluster.Tier {
		return tier.WithJob(view, q, func(resource string) int64 { return p.session.ChargeUnplaced(q, lacks, resource) })
	}
}
