package cluster

import (
	"cmp"
	"maps"
	"slices"
)

// accounts changes the specs of queues, such as quota, limits and weights, while their
// jobs run. It keeps the tree of queues and what each queue is charged with consistent.
type accounts struct {
	journal  *journal
	roster   *roster
	tree     *tree
	workload *workload
	booking  *booking
}

// updateProducts updates the list of products that the quota, limits or weights of queues
// name. If the list changes, which is rare, all tasks are booked again under the new names.
func (ac *accounts) updateProducts() {
	maps.DeleteFunc(ac.tree.terms, func(_ string, count int) bool { return count == 0 })
	if len(ac.tree.terms) == len(ac.tree.products) && !slices.ContainsFunc(ac.tree.products, func(name string) bool { return ac.tree.terms[name] == 0 }) {
		return
	}
	ac.booking.rebookAll(-1)
	ac.tree.products = slices.Sorted(maps.Keys(ac.tree.terms))
	ac.booking.rebookAll(+1)
}

// replaceQueue replaces the old queue by q, and records how to undo that. Either may be
// nil.
func (ac *accounts) replaceQueue(old, q *Queue) {
	ac.setQueue(old, q)
	if ac.journal.recording() {
		ac.journal.recordUndo(func() { ac.setQueue(q, old) })
	}
}

// setQueue is replaceQueue without the journal.
func (ac *accounts) setQueue(old, q *Queue) {
	ac.tree.revision++
	ac.tree.countTerms(old, -1)
	ac.tree.countTerms(q, +1)
	if old != nil && q != nil && old.Parent == q.Parent && old.sameAccounts(q) {
		q.Used, q.UsedByFirm, q.children, q.loose = old.Used, old.UsedByFirm, old.children, old.loose
		ac.tree.enter(q, old)
		ac.tree.sumQuotas(q)
	} else {
		ac.reattach(old, q)
	}
	ac.updateProducts()
}

// reattach is setQueue for a queue that is added, is removed, gets another parent or is
// charged for slices under another name. Its cost depends on the queue and on the
// queues below it only.
func (ac *accounts) reattach(old, q *Queue) {
	below := ac.tree.below(cmp.Or(old, q).Name)
	ac.charge(below, -1) // also removes the charge from the queues above
	above := ac.tree.replace(old, q, below)
	ac.charge(below, +1)
	for _, name := range below { // only jobs in leaves of the tree can be pending
		ac.workload.updateQueue(name)
	}
	for _, k := range above {
		if k != nil {
			ac.workload.updateQueue(k.Name)
		}
	}
}

// charge adds (sign +1) or subtracts (-1) what the tasks in these queues hold.
func (ac *accounts) charge(names []string, sign int64) {
	for _, name := range names {
		for j := range ac.roster.inQueue(name) {
			for t := range j.each {
				ac.tree.chargePlaced(t, sign)
				ac.tree.chargePlaced(t.Landing(), sign)
			}
		}
	}
}
