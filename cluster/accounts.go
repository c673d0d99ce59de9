package cluster

import (
	"cmp"
	"maps"
	"slices"
)

// accounts is how queues get other terms while their jobs run: the tree of queues
// and what each is charged with stay in step.
type accounts struct {
	journal  *journal
	roster   *roster
	tree     *tree
	workload *workload
	booking  *booking
}

// rename brings the names of products in step with the queues' terms. Where
// they change, which is rare, everything is booked anew under the new ones.
func (ac *accounts) rename() {
	maps.DeleteFunc(ac.tree.terms, func(_ string, count int) bool { return count == 0 })
	if len(ac.tree.terms) == len(ac.tree.products) && !slices.ContainsFunc(ac.tree.products, func(name string) bool { return ac.tree.terms[name] == 0 }) {
		return
	}
	ac.booking.rebookAll(-1)
	ac.tree.products = slices.Sorted(maps.Keys(ac.tree.terms))
	ac.booking.rebookAll(+1)
}

// swap puts the queue in the place of the old one. Either may be nil.
func (ac *accounts) swap(old, q *Queue) {
	ac.set(old, q)
	if ac.journal.recording() {
		ac.journal.cold(func() { ac.set(q, old) })
	}
}

// set puts the queue in the place of the old one, where either may be nil, and
// keeps the tree of queues in step.
func (ac *accounts) set(old, q *Queue) {
	ac.tree.revision++
	ac.tree.countTerms(old, -1)
	ac.tree.countTerms(q, +1)
	if old != nil && q != nil && old.Parent == q.Parent && old.sameAccounts(q) {
		q.Used, q.Firm, q.children, q.loose = old.Used, old.Firm, old.children, old.loose
		ac.tree.seat(q, old)
		ac.tree.sumQuotas(q)
	} else {
		ac.rehang(old, q)
	}
	ac.rename()
}

// rehang is set for a queue that is new, is removed, gets another parent or is
// charged for slices under another name. Its cost depends on the queue and those below it, and on no other.
func (ac *accounts) rehang(old, q *Queue) {
	below := ac.tree.below(cmp.Or(old, q).Name)
	ac.charge(below, -1) // what is charged to the queues above is taken back
	above := ac.tree.hang(old, q, below)
	ac.charge(below, +1)
	for _, name := range below { // jobs are considered in leaves of the tree
		ac.workload.settleQueue(name)
	}
	for _, k := range above {
		if k != nil {
			ac.workload.settleQueue(k.Name)
		}
	}
}

// charge adds (sign +1) or takes back (-1) what the tasks in these queues hold.
func (ac *accounts) charge(names []string, sign int64) {
	for _, name := range names {
		for _, j := range ac.roster.byQueue[name] {
			for t := range j.each {
				ac.tree.chargePlaced(t, sign)
				ac.tree.chargePlaced(t.landing, sign)
			}
		}
	}
}
