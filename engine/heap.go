package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// heap keeps nodes by what it would cost to make room on them for tasks of one
// shape. A node enters with a rough bound, which the classes of the tasks on it give.
// When it comes to the top, its tasks are asked about, which gives a closer bound;
// when it comes there again, it is looked at closely. What was found is kept until
// the node changes; before it is used, the victims are asked about again.
type heap struct {
	entries []*entryPlan
	current map[int]*entryPlan // by slot: the one that counts
	known   uint64             // version of the State it is up to date with
	in      *scope
}

type entryPlan struct {
	slot   int
	cost   cost
	rough  bool // only the classes of its tasks are known
	looked bool
	seen   uint64 // the version at which the plan was last found to be allowed
	plan   []*Victim
}

// heapKey is who asks: the same question has the same answer.
type heapKey struct {
	way      way
	last     bool
	queue    string
	priority int32
	shape    *cluster.Shape
	in       *scope
	// What the whole job asks for: who may go depends on it.
	devices, cores int64
	// Nobody else asks the same where something about the job itself decides.
	job *cluster.Job
}

func newHeap(in *scope) *heap { return &heap{in: in, current: map[int]*entryPlan{}} }

// heap returns the nodes for the task. Jobs that ask alike share it within a session.
func (r *room) heap(t *cluster.Task, in *scope) *heap {
	key := heapKey{way: r.way, last: r.last, queue: r.job.Queue, priority: r.job.Priority, shape: t.Shape, in: in,
		devices: r.Asks(r.lacks, r.devicesOf(t.Shape).Name), cores: r.Asks(r.lacks, cluster.CPU)}
	filters, _, _ := r.taskHooks(t)
	if len(filters) > 0 {
		return newHeap(in) // what it costs depends on where the others of the gang are
	}
	if in != nil && in.group != nil || len(r.job.Displaced) > 0 || r.job.Running() {
		key.job = r.job
	}
	h := r.heaps[key]
	if h == nil {
		h = newHeap(in)
		if r.heaps == nil {
			r.heaps = map[heapKey]*heap{}
		}
		r.heaps[key] = h
	}
	return h
}

// verdict says whether a node is rejected as it is, and whether that may pass.
type verdict func(*cluster.Node) (rejected, transient bool)

// refresh takes in the nodes that changed; at first, those that might have victims.
func (h *heap) refresh(r *room, t *cluster.Task, ask verdict) {
	if h.known > 0 || r.class == nil {
		r.State.Changed(h.known, func(slot int) { h.refine(r, t, slot, ask) })
	} else {
		h.enter(r, r.devicesOf(t.Shape).Least)
		if r.options.Search == Twin {
			h.check(r, t, ask)
		}
	}
	h.known = r.State.Version()
}

// refine gives the node the bound that the tasks on it give.
func (h *heap) refine(r *room, t *cluster.Task, slot int, ask verdict) {
	delete(h.current, slot)
	if e := h.bound(r, t, slot, ask); e != nil {
		h.current[slot] = e
		h.push(r, e)
	}
}

// enter adds the nodes that have tasks of classes which might have victims, each with
// what one task of these costs at least.
func (h *heap) enter(r *room, need int64) {
	r.State.Classes(func(c cluster.Class, on func(func(slot int, k cluster.OnNode))) bool {
		if !r.class(c) {
			return true
		}
		least := cost{tier: strength(tierOf(r.State, c.Queue)), priority: c.Priority, tasks: 1}
		on(func(slot int, k cluster.OnNode) {
			if h.in != nil && !h.in.has(r.State.At(slot)) {
				return
			}
			bound := least
			bound.tasks, bound.beyond = int32(k.Tasks), max(0, k.Freed-need)
			if bound.young = -k.Newest; k.Whole {
				bound.jobs = 1
			}
			if e := h.current[slot]; e != nil {
				e.cost.lower(&bound)
			} else {
				h.current[slot] = &entryPlan{slot: slot, rough: true, cost: bound}
			}
		})
		return true
	})
	h.entries = slices.Grow(h.entries, len(h.current))
	for _, e := range h.current { // in any order: the heap has its own
		h.entries = append(h.entries, e)
	}
	for i := len(h.entries)/2 - 1; i >= 0; i-- {
		h.down(r, i)
	}
}

// lower makes the cost a bound of both.
func (c *cost) lower(o *cost) {
	if o.compareEvicted(c) < 0 {
		c.tier, c.priority = o.tier, o.priority
	}
	c.beyond, c.tasks, c.jobs, c.young = min(c.beyond, o.beyond), min(c.tasks, o.tasks), min(c.jobs, o.jobs), min(c.young, o.young)
}

// mights says which classes might have victims that leave in the way; nil where that is
// not known.
func (r *room) mights(w way) func(cluster.Class) bool {
	var all []func(cluster.Class) bool
	for p := range purposes {
		if r.may[p] == nil || p == Move && w&moving == 0 || p != Move && w&evicting == 0 {
			continue
		}
		if r.might[p] == nil {
			return nil
		}
		all = append(all, r.might[p])
	}
	return func(c cluster.Class) bool {
		return slices.ContainsFunc(all, func(might func(cluster.Class) bool) bool { return might(c) })
	}
}

// bound is what room costs at least in the slot; nil where there can be none.
func (h *heap) bound(r *room, t *cluster.Task, slot int, ask verdict) *entryPlan {
	n := r.State.At(slot)
	if n == nil || !h.in.has(n) {
		return nil
	}
	if rejected, transient := ask(n); rejected && !transient {
		return nil
	}
	return r.bound(t.Shape, n)
}

// check fails the session where a node was left out that has victims.
func (h *heap) check(r *room, t *cluster.Task, ask verdict) {
	class := r.class
	r.class = nil // every task is asked about
	defer func() { r.class = class }()
	r.State.Changed(0, func(slot int) {
		if h.current[slot] == nil && h.bound(r, t, slot, ask) != nil {
			r.fail("engine", "node %s has room for task %s if others go, and none of their classes may", r.State.At(slot).Name, t.ID)
		}
	})
}

// cheapest is the node on which it costs least to make room; nil if there is none.
func (h *heap) cheapest(r *room, t *cluster.Task) *entryPlan {
	ask := r.verdicts(t)
	h.refresh(r, t, ask)
	for len(h.entries) > 0 && r.looks < r.mostLooks() && r.err == nil {
		e := h.entries[0]
		switch {
		case h.current[e.slot] != e:
			h.pop(r)
		case e.rough:
			h.pop(r)
			h.refine(r, t, e.slot, ask)
		case e.looked && h.still(r, e):
			return e
		default:
			h.pop(r)
			h.look(r, t, e)
		}
	}
	return nil
}

// mostLooks is how many nodes without a plan are looked at.
func (r *room) mostLooks() int {
	if r.way == evicting|moving {
		return maxMixed
	}
	return maxLooks
}

// look finds out what the node really costs; it comes back in its place, if at all.
func (h *heap) look(r *room, t *cluster.Task, e *entryPlan) {
	e.plan, e.cost = r.look(t, r.State.At(e.slot))
	h.known = r.State.Version() // looking leaves everything as it was
	e.seen = h.known
	if e.plan == nil {
		r.looks++
		delete(h.current, e.slot)
		return
	}
	e.looked = true
	h.push(r, e)
}

// still reports whether those who would go still may, one after the other:
// meanwhile others have gone.
func (h *heap) still(r *room, e *entryPlan) bool {
	if e.seen == r.State.Version() {
		return true
	}
	mark := r.stmt.Checkpoint()
	ok := true
	for _, v := range e.plan {
		ok = ok && r.mayLeave(v.Tasks[0], r.job) && r.leave(v)
	}
	r.stmt.Rollback(mark)
	h.known, e.seen = r.State.Version(), r.State.Version()
	return ok
}

// others are further nodes that would do, best first.
func (h *heap) others(r *room, t *cluster.Task, most int) []*entryPlan {
	var out []*entryPlan
	var aside []*entryPlan
	for len(out) < most {
		e := h.cheapest(r, t)
		if e == nil {
			break
		}
		h.pop(r)
		aside = append(aside, e)
		if len(aside) > 1 { // the first is the one chosen
			out = append(out, e)
		}
	}
	for _, e := range aside {
		h.push(r, e)
	}
	return out
}

func (h *heap) less(r *room, a, b *entryPlan) bool {
	ranks := r.State.Ranks()
	return cmp.Or(a.cost.compare(&b.cost), cmp.Compare(ranks[a.slot], ranks[b.slot])) < 0
}

func (h *heap) push(r *room, e *entryPlan) {
	h.entries = append(h.entries, e)
	for i := len(h.entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(r, h.entries[i], h.entries[up]) {
			return
		}
		h.entries[i], h.entries[up] = h.entries[up], h.entries[i]
		i = up
	}
}

func (h *heap) pop(r *room) {
	n := len(h.entries) - 1
	h.entries[0], h.entries[n] = h.entries[n], nil
	h.entries = h.entries[:n]
	h.down(r, 0)
}

// down moves the i-th entry to its place among those below it.
func (h *heap) down(r *room, i int) {
	for {
		best := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(h.entries) && h.less(r, h.entries[c], h.entries[best]) {
				best = c
			}
		}
		if best == i {
			return
		}
		h.entries[i], h.entries[best] = h.entries[best], h.entries[i]
		i = best
	}
}

// bound is what it costs at least to make room for the shape on the node; nil
// where it would not fit even if all left that may.
func (r *room) bound(s *cluster.Shape, n *cluster.Node) *entryPlan {
	leaving, prices := r.scratch[:0], r.prices[:0]
	moves := false
	for _, t := range n.Tasks {
		if !r.mayLeave(t, r.job) || r.class != nil && !r.class(t.Job.Class()) {
			continue
		}
		if i := slices.IndexFunc(prices, func(p price) bool { return p.whole == t.Job }); i >= 0 {
			prices[i].here++
			leaving = append(leaving, t)
			continue
		}
		p := price{here: 1, all: 1}
		if r.way&moving != 0 && r.mightMove(t) {
			moves = true
		} else if v := VictimOf(t); r.way&evicting != 0 && r.mightBeEvicted(v) {
			if p.all, p.freed = len(v.Tasks), freed(v.Tasks); v.Whole {
				p.whole = v.Job
			}
		} else {
			continue
		}
		prices = append(prices, p)
		leaving = append(leaving, t)
	}
	r.scratch, r.prices = leaving, prices
	if len(leaving) == 0 {
		return nil
	}
	count, possible := fewest(s, n, leaving)
	if !possible {
		return nil
	}
	e := &entryPlan{slot: n.Slot()}
	if moves { // perhaps nothing is evicted
		e.cost = noCost()
		if e.cost.moved.tasks = 1; r.way == moving {
			e.cost.moved.tasks = int32(count)
		}
		return e
	}
	e.cost = r.cheapestOf(leaving, count)
	e.cost.tasks = int32(total(prices, count, func(p *price) int64 { return int64(p.all) }))
	e.cost.beyond = max(0, total(prices, count, func(p *price) int64 { return p.freed })-r.devicesOf(s).Least)
	if !slices.ContainsFunc(prices, func(p price) bool { return p.whole == nil }) {
		e.cost.jobs = int32(max(1, total(prices, count, func(*price) int64 { return 1 }))) // each victim is a whole job
	}
	return e
}

// price is a victim seen from one node: how many of its tasks are there, how many
// leave with them in all, and how much of devices they free.
type price struct {
	whole     *cluster.Job // nil: the task leaves alone
	here, all int
	freed     int64
}

// total is how much is paid at least if so many of the node's tasks have to leave:
// victims that cost least for what they give first, the last one in part, and no less
// than one victim costs.
func total(prices []price, count int, pays func(*price) int64) int64 {
	slices.SortStableFunc(prices, func(a, b price) int {
		return cmp.Compare(pays(&a)*int64(b.here), pays(&b)*int64(a.here))
	})
	sum, one := int64(0), pays(&prices[0])
	for i := range prices {
		one = min(one, pays(&prices[i]))
	}
	for i := range prices {
		p := &prices[i]
		if count <= p.here {
			return max(one, sum+pays(p)*int64(count)/int64(p.here))
		}
		sum += pays(p)
		count -= p.here
	}
	return max(one, sum)
}

// cheapestOf is the least that so many of the tasks cost: it takes one of them that is
// not among the cheapest of that number less one.
func (r *room) cheapestOf(tasks []*cluster.Task, count int) cost {
	each := make([]cost, len(tasks))
	young := int64(0)
	for i, t := range tasks {
		each[i] = cost{tier: strength(tierOf(r.State, t.Job.Queue)), priority: t.Job.Priority}
		young = min(young, -t.Started)
	}
	slices.SortFunc(each, func(a, b cost) int { return a.compareEvicted(&b) })
	c := each[min(max(count, 1), len(each))-1]
	c.young = young
	return c
}

// fewest bounds from below how many tasks must leave for the shape to fit the node;
// false where it would not fit even if all of them left.
func fewest(s *cluster.Shape, n *cluster.Node, leaving []*cluster.Task) (int, bool) {
	widest := 0
	for _, t := range leaving {
		widest = max(widest, len(t.Claims))
	}
	for _, want := range s.Resources {
		l := n.Ledger(want.Name)
		if want.Value <= 0 || l != nil && l.Free() >= want.Value {
			continue
		}
		if l == nil || l.Capacity < want.Value {
			return 0, false
		}
		free := l.Free()
		for _, t := range leaving {
			free += t.Holds(want.Name)
		}
		if free < want.Value {
			return 0, false
		}
	}
	need := &s.Need
	if need.Devices == 0 || need.Layers != nil || need.SumAtLeast > 0 || widest == 0 || n.TimeSliced() {
		return 1, true
	}
	takes, free := 0, 0
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Takes(d) {
			takes++
		} else if d.Use.Milli == 0 {
			free++ // it is idle, and will not do for other reasons
		}
	}
	if takes >= need.Devices {
		return 1, true
	}
	if need.Share == 0 && need.Memory == 0 || s.Isolation.Exclusive() {
		emptied := 0 // devices that nobody would hold any more
		for i := range n.Devices {
			held := n.Devices[i].Use.Milli
			for _, t := range leaving {
				for _, c := range t.Claims {
					if c.Device == i {
						held -= c.Milli
					}
				}
			}
			if held <= 0 {
				emptied++
			}
		}
		if emptied-free < need.Devices {
			return 0, false
		}
	}
	return (need.Devices - takes + widest - 1) / widest, true
}
