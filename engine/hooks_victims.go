package engine

import "github.com/berth-project/berth/cluster"

// This file has the hooks that decide which victims may be evicted or moved for a job.

// AddReclaimable registers a rule for victims that are evicted with the purpose Reclaim: the
// queue of the waiting job takes back its share from queues that hold more than theirs. It
// is called only if a plugin of the profile evicts for this purpose (see AddEvictionPurpose).
//
// Combining: a victim may be evicted if at least one hook answers Allow and none answers
// Protect or NotYet. If several protect it, the first Protect in profile order gives the
// reason or, if there is none, the first NotYet.
func (h *Hooks) AddReclaimable(fn VictimRule) { add(h, &h.victims[Reclaim], fn, fn == nil) }

// AddPreemptable registers a rule for victims that are evicted with the purpose Preempt: the
// waiting job has a higher priority or a stronger tier. It is called only if a plugin of the
// profile evicts for this purpose (see AddEvictionPurpose).
//
// Combining: as AddReclaimable.
func (h *Hooks) AddPreemptable(fn VictimRule) { add(h, &h.victims[Preempt], fn, fn == nil) }

// AddMovable registers a rule for victims that are moved: they are evicted, and room is
// reserved for them on another node. It is called only if a plugin of the profile moves
// tasks (see AddEvictionPurpose).
//
// Combining: as AddReclaimable.
func (h *Hooks) AddMovable(fn VictimRule) { add(h, &h.victims[Move], fn, fn == nil) }

// NarrowVictims registers which classes of jobs the plugin's own VictimRule of the purpose
// may allow. If all rules of a purpose have such a hook, the search for victims considers
// only nodes with jobs of these classes, which makes it fast in large clusters.
//
// Combining: a class is considered if at least one hook may allow it.
func (h *Hooks) NarrowVictims(p Purpose, fn ClassRule) {
	visitOwn(h, p, "NarrowVictims", func(k *hook[VictimRule]) { k.class = fn })
}

// NarrowQueues registers which queues have the classes that the plugin's own VictimRule of
// the purpose may allow. The search then begins with the classes of these queues only. If it
// has to compare many nodes, it may call the ClassRule for classes of other queues too.
//
// Combining: a queue is considered if at least one hook names it, or if at least one rule
// has a NarrowVictims hook and no NarrowQueues hook.
func (h *Hooks) NarrowQueues(p Purpose, fn QueueRule) {
	visitOwn(h, p, "NarrowQueues", func(k *hook[VictimRule]) { k.queues = fn })
}

// FirstVictims names the classes that may have the first victim for a job: classes with
// victims that the VictimRule may allow while no victim is evicted for the job. It leaves out
// classes for which the rule answers at best NotYet.
type FirstVictims struct {
	// Classes must not be nil in NarrowFirst. In LastResort.First, nil means the classes and
	// queues of the LastResort.
	Classes ClassRule
	Queues  QueueRule // the queues that have these classes; nil means any
}

// NarrowFirst registers which classes may have the first victim of the plugin's own
// VictimRule of the purpose. Every plan has a first victim, so the search begins with nodes
// that have jobs of these classes. It is optional: without it, the search begins with all
// classes of NarrowVictims.
//
// Combining: a class is considered if at least one hook names it.
func (h *Hooks) NarrowFirst(p Purpose, first FirstVictims) {
	if first.Classes == nil {
		misused(h, "NarrowFirst", "the field Classes is nil; set it to a ClassRule")
		return
	}
	visitOwn(h, p, "NarrowFirst", func(k *hook[VictimRule]) { k.first = first })
}

// visitOwn visits the hooks of the purpose that the plugin itself registered. If there is
// none, it fails the session.
func visitOwn(h *Hooks, p Purpose, caller string, visit func(*hook[VictimRule])) {
	found := false
	if p >= purposes {
		misused(h, caller, "there is no purpose %d", p)
		return
	}
	for i := range h.victims[p] {
		if k := &h.victims[p][i]; h.opening != nil && k.plugin == h.opening.name {
			visit(k)
			found = true
		}
	}
	if !found {
		misused(h, caller, "the plugin has registered no hook for the purpose %s; register it before", p)
	}
}

// LastResort replaces the VictimRule of a plugin and a purpose in a second search for
// victims, which is made if the first search found no plan.
type LastResort struct {
	Victims VictimRule   // replaces the VictimRule; it must not be nil
	Classes ClassRule    // the classes that Victims may allow; nil means any
	Queues  QueueRule    // the queues that have these classes; nil means any
	First   FirstVictims // the classes that may have the first victim; the zero value means all of Classes
	// Balance compares the State that a plan leads to with the State without the plan. When
	// the plan is carried out in the statement, the engine calls the rule and measures the
	// Balance. It then undoes the plan and measures the Balance again. A plan that does not
	// lower the Balance is rejected. The rule alone decides how room that is idle in these
	// States counts. If Balance is nil, or if the rule returns nil, the plan is accepted.
	Balance BalanceRule
}

// Balance measures how evenly queues hold what they deserve in one State.
type Balance interface {
	// Below reports whether the queues hold what they deserve more evenly in this State
	// than in the other.
	Below(Balance) bool
}

// AddLastResort registers what replaces the plugin's own VictimRule of the purpose in a
// second search for victims, which is made if the first search found no plan.
//
// Combining: as AddReclaimable; a plan must be lower by every Balance.
func (h *Hooks) AddLastResort(p Purpose, last LastResort) {
	if last.Victims == nil {
		misused(h, "AddLastResort", "the field Victims is nil; set it to a VictimRule")
		return
	}
	visitOwn(h, p, "AddLastResort", func(k *hook[VictimRule]) { k.last = &last })
}

// EvictionPurpose is a purpose for which victims may be evicted, and the reason of these evictions.
type EvictionPurpose struct {
	Purpose Purpose
	Reason  Reason
}

// AddEvictionPurpose allows evictions for the purpose. When a job is refused, the engine searches for
// the plan that costs other jobs least, with the victims that the hooks of the purpose
// allow. The decisions to evict them have the given reason.
//
// Combining: one search considers all purposes that plugins registered; the victims of one
// plan may have different purposes.
func (h *Hooks) AddEvictionPurpose(p Purpose, why Reason) {
	if p >= purposes {
		misused(h, "AddEvictionPurpose", "there is no purpose %d", p)
		return
	}
	if h.opening == nil {
		misused(h, "AddEvictionPurpose", "it was called after OnSessionOpen; call it in OnSessionOpen")
		return
	}
	if len(h.evictionPurposes) == 0 {
		h.AddAdapter(makeRoom)
	}
	h.evictionPurposes = append(h.evictionPurposes, EvictionPurpose{p, why})
}

// NoClass is the ClassRule for hooks that only protect victims and never answer Allow.
func NoClass(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
	return func(cluster.Class) bool { return false }
}
