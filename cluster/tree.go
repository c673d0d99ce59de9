package cluster

import (
	"maps"
	"slices"
	"strings"
)

// tree is the table of the queues and budgets. Every change of a queue's use or spec, such
// as its quota, limits or weights, gives the queue a new version.
type tree struct {
	journal         *journal
	byName          map[string]*Queue
	slots           slots[Queue]
	byParent        map[string][]string // by queue, which need not be known: names of the queues with this parent, sorted
	terms           map[string]int      // by ProductResource: how many entries of quotas, limits and weights name it
	products        []string            // the keys of terms, sorted
	tierCounts      [4]int              // number of queues, by rank of their tier
	revision        uint64              // grows when the specs of queues or the budgets change
	budgets         []*Budget           // sorted by namespace and name
	now             int64               // when the last session was opened, in nanoseconds
	advancedVersion uint64              // version of queues at the last call of advance
}

func newTree(l *journal) tree {
	return tree{journal: l, byName: map[string]*Queue{}, byParent: map[string][]string{}, terms: map[string]int{}}
}

// Fork implements View.Fork.
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

// depth returns how many queues are above the queue.
func (tr *tree) depth(q *Queue) int {
	n := 0
	for q = tr.Parent(q); q != nil; q = tr.Parent(q) {
		n++
	}
	return n
}

// sumQuotas computes again what the queue deserves, and then all queues above it.
func (tr *tree) sumQuotas(q *Queue) {
	for ; q != nil; q = tr.Parent(q) {
		tr.sumQuota(q)
	}
}

// sumQuota computes again what the queue deserves: its quota or, for a resource that its
// quota does not name, the sum over the queues directly below it.
func (tr *tree) sumQuota(q *Queue) {
	sum := map[string]int64{}
	for _, name := range q.children {
		for _, a := range tr.byName[name].quotas {
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
	q.quotas = nil
	for name, v := range sum {
		q.quotas = append(q.quotas, Amount{name, v})
	}
	slices.SortFunc(q.quotas, func(a, b Amount) int { return strings.Compare(a.Name, b.Name) })
}

// charge adds (sign +1) or subtracts (-1) what the task holds to the use of its queue and
// of all queues above that.
func (tr *tree) charge(t *Task, sign int64) {
	for q := tr.byName[t.Job.Queue]; q != nil; q = tr.Parent(q) {
		tr.slots.Touch(q.slot)
		for _, a := range t.held.Resources {
			q.charge(t, a.Name, sign*(a.Value+t.Node.hostMemory(t.held, t.Claims, a.Name)))
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

// Named implements View.Named.
func (tr *tree) Named(product string) bool {
	_, found := slices.BinarySearch(tr.products, product)
	return found
}

// countTerms adds (sign +1) or removes (-1) the products that the queue's quota, limits and
// weights name.
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

// Parent implements View.Parent.
func (tr *tree) Parent(q *Queue) *Queue {
	if q.Parent == "" || q.loose {
		return nil
	}
	return tr.byName[q.Parent]
}

// Queues implements View.Queues.
func (tr *tree) Queues() []*Queue {
	return ordered(tr.byName, func(a, b *Queue) int { return strings.Compare(a.Name, b.Name) })
}

// setBudgets replaces the list of budgets. The old list must not be changed, because the
// journal keeps it.
func (tr *tree) setBudgets(list []*Budget) {
	was := tr.budgets
	tr.budgets = list
	tr.revision++
	if tr.journal.recording() {
		tr.journal.recordUndo(func() { tr.budgets = was; tr.revision++ })
	}
}

// replace replaces the queue old by q, either of which may be nil. It computes again the
// children and quotas of the queues below, which include the queue itself, and of the
// queues above. The use of the queues below is set to nothing; the caller charges their
// tasks again. replace returns the parents of old and of q, each of which may be nil.
func (tr *tree) replace(old, q *Queue, below []string) (above [2]*Queue) {
	if old != nil {
		above[0] = tr.Parent(old)
		tr.listByParent(old, false)
	}
	tr.enter(q, old)
	if q != nil {
		tr.listByParent(q, true)
	}
	for i, name := range below {
		k := tr.byName[name]
		if k == nil {
			continue // the queue that is removed
		}
		parent := tr.byName[k.Parent]
		// If the parent of the queue is below the queue, the parents form a cycle. The queue
		// and all queues below it are then loose.
		k.loose = k.Parent != "" && (parent == nil || parent.loose || i == 0 && slices.Contains(below, k.Parent))
		k.Used, k.UsedByFirm, k.children = nil, nil, nil
	}
	if q != nil {
		above[1] = tr.Parent(q)
	}
	for _, k := range above {
		if k != nil {
			tr.listChildren(k)
		}
	}
	for _, name := range slices.Backward(below) { // parents need the sums of their children
		if k := tr.byName[name]; k != nil {
			tr.listChildren(k)
			tr.sumQuota(k)
			tr.slots.Touch(k.slot)
		}
	}
	for _, k := range above {
		for tr.sumQuotas(k); k != nil; k = tr.Parent(k) {
			tr.slots.Touch(k.slot)
		}
	}
	return above
}

// below returns the names of the queue and of all queues below it, whether the queue itself
// is known or not. Parents are listed before their children.
func (tr *tree) below(name string) []string {
	out := []string{name}
	if len(tr.byParent[name]) == 0 {
		return out
	}
	seen := map[string]bool{name: true}
	for i := 0; i < len(out); i++ {
		for _, child := range tr.byParent[out[i]] {
			if !seen[child] {
				seen[child] = true
				out = append(out, child)
			}
		}
	}
	return out
}

// listByParent adds the queue to the list of queues with its parent, or removes it.
func (tr *tree) listByParent(q *Queue, add bool) {
	if q.Parent == "" {
		return
	}
	list := tr.byParent[q.Parent]
	if add {
		list = insert(list, q.Name, strings.Compare)
	} else {
		list = remove(list, q.Name, strings.Compare)
	}
	keepIf(len(list) > 0, tr.byParent, q.Parent, list)
}

// listChildren sets the children of the queue: all queues that name it as their parent, or
// none if the queue is loose.
func (tr *tree) listChildren(q *Queue) {
	if q.children = nil; !q.loose {
		q.children = slices.Clone(tr.byParent[q.Name])
	}
}

// build computes the whole tree of queues. It is called before any job is added.
func (tr *tree) build() {
	for _, q := range tr.byName {
		q.loose = tr.isLoose(q)
		tr.slots.Touch(q.slot)
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

// isLoose reports whether the parents of the queue do not lead to the top of the tree,
// because one is not known or they form a cycle.
func (tr *tree) isLoose(q *Queue) bool {
	for steps := 0; q.Parent != ""; steps++ {
		if q = tr.byName[q.Parent]; q == nil || steps > len(tr.byName) {
			return true
		}
	}
	return false
}

// Weakest implements View.Weakest.
func (tr *tree) Weakest() int {
	for rank := len(tr.tierCounts) - 1; rank > 0; rank-- {
		if tr.tierCounts[rank] > 0 {
			return rank
		}
	}
	return 0
}

// enter adds q to the table, in the slot of the queue old that it replaces. Either may be
// nil: without old, q gets a new slot; without q, old is removed and its slot is freed.
func (tr *tree) enter(q, old *Queue) {
	slot := 0
	if old != nil {
		slot = old.slot
		tr.slots.table.Set(slot, q)
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
	tr.slots.Touch(slot)
}

func (tr *tree) clone(l *journal) tree {
	c := *tr
	c.journal, c.byName, c.slots, c.byParent = l, make(map[string]*Queue, len(tr.byName)), tr.slots.clone(), make(map[string][]string, len(tr.byParent))
	c.terms, c.products, c.budgets = maps.Clone(tr.terms), slices.Clone(tr.products), slices.Clone(tr.budgets)
	for name, q := range tr.byName {
		copied := *q
		copied.Used, copied.Past = slices.Clone(q.Used), slices.Clone(q.Past)
		copied.UsedByFirm = slices.Clone(q.UsedByFirm)
		copied.children = slices.Clone(q.children)
		c.byName[name] = &copied
		c.slots.table.Set(q.slot, &copied)
	}
	for name, queues := range tr.byParent {
		c.byParent[name] = slices.Clone(queues)
	}
	return c
}

// chargePlaced is charge for a task that may be nil, unplaced or releasing; nothing is
// charged for these.
func (tr *tree) chargePlaced(t *Task, sign int64) {
	if t != nil && t.Node != nil && !t.releasesRoom() {
		tr.charge(t, sign)
	}
}
