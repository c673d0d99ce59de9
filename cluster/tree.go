package cluster

import (
	"maps"
	"slices"
	"strings"
)

// tree is the queues and budgets. Every change of a queue's use or terms gives it a
// new version.
type tree struct {
	journal       *journal
	byName        map[string]*Queue
	slots         slots[Queue]
	heirs         map[string][]string // by queue, known or not: the queues that name it as their parent, by name
	terms         map[string]int      // by product that queues have terms for: how many terms
	products      []string            // of these, sorted
	tierCounts    [4]int              // queues, by rank of their tier
	revision      uint64              // grows when queues or budgets change
	budgets       []*Budget           // sorted by namespace and name
	now           int64               // when the last session was opened
	passedVersion uint64              // version of queues when the clock was last moved
}

func newTree(l *journal) tree {
	return tree{journal: l, byName: map[string]*Queue{}, heirs: map[string][]string{}, terms: map[string]int{}}
}

// Fork is View.Fork.
func (tr *tree) Fork(left, right *Queue) (a, b *Queue) {
	if left == right || left == nil || right == nil {
		return nil, nil
	}
	if left.Parent == right.Parent {
		return left, right
	}
	deeper := tr.depth(left) - tr.depth(right)
	for ; deeper > 0; deeper-- {
		left = tr.Parent(left)
	}
	for ; deeper < 0; deeper++ {
		right = tr.Parent(right)
	}
	for left != right {
		a, b = left, right
		left, right = tr.Parent(left), tr.Parent(right)
	}
	return a, b
}

// depth is how many queues are above the queue.
func (tr *tree) depth(q *Queue) int {
	n := 0
	for q = tr.Parent(q); q != nil; q = tr.Parent(q) {
		n++
	}
	return n
}

// sumQuotas works out again what the queue deserves, and all above it.
func (tr *tree) sumQuotas(q *Queue) {
	for ; q != nil; q = tr.Parent(q) {
		tr.sumQuota(q)
	}
}

// sumQuota works out again what the queue deserves.
func (tr *tree) sumQuota(q *Queue) {
	sum := map[string]int64{}
	for _, name := range q.children {
		for _, a := range tr.byName[name].deserved {
			total, ok := AddOverflow(sum[a.Name], a.Value)
			if !ok {
				total = Unlimited
			}
			sum[a.Name] = total
		}
	}
	for _, a := range q.Quota {
		sum[a.Name] = a.Value
	}
	q.deserved = nil
	for name, v := range sum {
		q.deserved = append(q.deserved, Amount{name, v})
	}
	slices.SortFunc(q.deserved, func(a, b Amount) int { return strings.Compare(a.Name, b.Name) })
}

// charge adds or takes back what the task holds of its queue, and of those above it.
func (tr *tree) charge(t *Task, sign int64) {
	for q := tr.byName[t.Job.Queue]; q != nil; q = tr.Parent(q) {
		tr.slots.touch(q.slot)
		for _, a := range t.held.Resources {
			q.charge(t, a.Name, sign*(a.Value+t.Node.host(t.held, t.Claims, a.Name)))
		}
		for _, c := range t.Claims {
			d := &t.Node.Devices[c.Device]
			q.charge(t, d.Resource, sign*int64(c.Milli))
			if len(tr.products) > 0 && tr.Named(d.ProductResource) {
				q.charge(t, d.ProductResource, sign*int64(c.Milli))
			}
			if d.Fraction > 0 && d.Resource != DefaultDeviceResource {
				q.charge(t, DefaultDeviceResource, sign*q.Charge(d, c.Milli, DefaultDeviceResource))
			}
		}
	}
}

// Named is View.Named.
func (tr *tree) Named(product string) bool {
	_, found := slices.BinarySearch(tr.products, product)
	return found
}

// countTerms counts (sign +1) or forgets (-1) the products that the queue has terms for.
func (tr *tree) countTerms(q *Queue, sign int) {
	if q == nil {
		return
	}
	for _, list := range []Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
		for _, a := range list {
			if _, product := SplitProduct(a.Name); product != "" {
				tr.terms[a.Name] += sign
			}
		}
	}
}

// Parent is View.Parent.
func (tr *tree) Parent(q *Queue) *Queue {
	if q.Parent == "" || q.loose {
		return nil
	}
	return tr.byName[q.Parent]
}

// Queues is View.Queues.
func (tr *tree) Queues() []*Queue {
	return ordered(tr.byName, func(a, b *Queue) int { return strings.Compare(a.Name, b.Name) })
}

// setBudgets replaces the list of budgets; the old one is not changed.
func (tr *tree) setBudgets(list []*Budget) {
	was := tr.budgets
	tr.budgets = list
	tr.revision++
	if tr.journal.recording() {
		tr.journal.cold(func() { tr.budgets = was; tr.revision++ })
	}
}

// hang puts the queue in the place of the old one, where either may be nil, and
// works out again what the queues below it and above it are made of: children and
// quotas. The queues below, with itself, use nothing then. Above are the queues
// right above it, before and after.
func (tr *tree) hang(old, q *Queue, below []string) (above [2]*Queue) {
	if old != nil {
		above[0] = tr.Parent(old)
		tr.listHeir(old, false)
	}
	tr.seat(q, old)
	if q != nil {
		tr.listHeir(q, true)
	}
	for i, name := range below {
		k := tr.byName[name]
		if k == nil {
			continue // the one that is removed
		}
		parent := tr.byName[k.Parent]
		// A queue that names one below itself as its parent is in no tree, and neither are those below it.
		k.loose = k.Parent != "" && (parent == nil || parent.loose || i == 0 && slices.Contains(below, k.Parent))
		k.Used, k.Firm, k.children = nil, nil, nil
	}
	if q != nil {
		above[1] = tr.Parent(q)
	}
	for _, k := range above {
		if k != nil {
			tr.listChildren(k)
		}
	}
	for _, name := range slices.Backward(below) { // children before their parents
		if k := tr.byName[name]; k != nil {
			tr.listChildren(k)
			tr.sumQuota(k)
			tr.slots.touch(k.slot)
		}
	}
	for _, k := range above {
		for tr.sumQuotas(k); k != nil; k = tr.Parent(k) {
			tr.slots.touch(k.slot)
		}
	}
	return above
}

// below are the queue and all queues below it, by name, known or not: parents come
// before their children.
func (tr *tree) below(name string) []string {
	out := []string{name}
	if len(tr.heirs[name]) == 0 {
		return out
	}
	seen := map[string]bool{name: true}
	for i := 0; i < len(out); i++ {
		for _, heir := range tr.heirs[out[i]] {
			if !seen[heir] {
				seen[heir] = true
				out = append(out, heir)
			}
		}
	}
	return out
}

// listHeir adds the queue to those that name its parent, or takes it out.
func (tr *tree) listHeir(q *Queue, add bool) {
	if q.Parent == "" {
		return
	}
	list := tr.heirs[q.Parent]
	if add {
		list = insert(list, q.Name, strings.Compare)
	} else {
		list = remove(list, q.Name, strings.Compare)
	}
	keepIf(len(list) > 0, tr.heirs, q.Parent, list)
}

// listChildren takes the queue's children from those that name it as their parent.
func (tr *tree) listChildren(q *Queue) {
	if q.children = nil; !q.loose {
		q.children = slices.Clone(tr.heirs[q.Name])
	}
}

// hangAll works the tree of queues out. Nothing is in them yet.
func (tr *tree) hangAll() {
	for _, q := range tr.byName {
		q.loose = tr.isLoose(q)
		tr.slots.touch(q.slot)
	}
	for _, q := range tr.byName {
		tr.listChildren(q)
	}
	for _, q := range tr.byName {
		if q.Leaf() {
			tr.sumQuotas(q)
		}
	}
}

// astray reports whether the way up from the queue does not end at the top.
func (tr *tree) isLoose(q *Queue) bool {
	for steps := 0; q.Parent != ""; steps++ {
		if q = tr.byName[q.Parent]; q == nil || steps > len(tr.byName) {
			return true
		}
	}
	return false
}

// Weakest is View.Weakest.
func (tr *tree) Weakest() int {
	for rank := len(tr.tierCounts) - 1; rank > 0; rank-- {
		if tr.tierCounts[rank] > 0 {
			return rank
		}
	}
	return 0
}

// seat gives the queue the slot of the one that it replaces, or another one.
// A queue that nothing replaces gives its slot back.
func (tr *tree) seat(q, old *Queue) {
	slot := 0
	if old != nil {
		slot = old.slot
		tr.slots.at[slot] = q
		tr.tierCounts[old.Tier.Rank()]--
	} else {
		slot = tr.slots.take(q)
	}
	if q != nil {
		q.slot = slot
		tr.byName[q.Name] = q
		tr.tierCounts[q.Tier.Rank()]++
	} else {
		tr.slots.free(slot)
		delete(tr.byName, old.Name)
	}
	tr.slots.touch(slot)
}

func (tr *tree) clone(l *journal) tree {
	c := *tr
	c.journal, c.byName, c.slots, c.heirs = l, make(map[string]*Queue, len(tr.byName)), tr.slots.clone(), make(map[string][]string, len(tr.heirs))
	c.terms, c.products, c.budgets = maps.Clone(tr.terms), slices.Clone(tr.products), slices.Clone(tr.budgets)
	for name, q := range tr.byName {
		copied := *q
		copied.Used = slices.Clone(q.Used)
		copied.Firm = slices.Clone(q.Firm)
		copied.children = slices.Clone(q.children)
		c.byName[name], c.slots.at[q.slot] = &copied, &copied
	}
	for name, queues := range tr.heirs {
		c.heirs[name] = slices.Clone(queues)
	}
	return c
}

func (tr *tree) chargePlaced(t *Task, sign int64) {
	if t != nil && t.Node != nil && !t.leaves() {
		tr.charge(t, sign)
	}
}
