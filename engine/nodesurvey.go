package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/heap"
)

// A nodeHeap begins with one entry per class and adds the nodes of a class one by one. That
// is fast if the first nodes have a plan that costs as little as the bound of the class. It is
// not if a plan needs several victims, since the bound of a class is that of one victim: then
// all nodes of all classes would be added. Therefore, once many nodes were added, a survey
// replaces the entries of classes. It computes from summaries how many victims each node
// needs, and lists the nodes with the lowest bounds. If the search examines all of these, a
// further survey lists more. A class lists its nodes by the age of their tasks. If
// that is not the order of their costs, as with moves, or if the scope is limited, the survey
// is made at once.

// maxOpened returns how many nodes are added one by one before a survey. Adding that number
// takes about as long as the survey.
func maxOpened(slots int) int { return 16 + slots/512 }

// surveyedNode is a node with a lower bound of the cost of making room on it. It has some fields
// of cost, in less memory.
type surveyedNode struct {
	grade  int64 // tier and priority
	beyond int64
	young  int64
	tasks  int32
	jobs   int32
	moved  int32 // cost.moved.tasks
	slot   int32
}

// grade returns a number by which tiers and then priorities are compared.
func grade(tier int8, priority int32) int64 { return int64(tier)<<32 + int64(priority) }

// cost returns the bound as a cost.
func (n *surveyedNode) cost() cost {
	priority := int32(n.grade)
	c := cost{tier: int8((n.grade - int64(priority)) >> 32), priority: priority, beyond: n.beyond, tasks: n.tasks, jobs: n.jobs, young: n.young}
	c.moved.tasks = n.moved
	return c
}

// compare compares the bounds as cost.compare does, and then the ranks of the nodes. Most
// nodes differ in one of the first figures.
func (n *surveyedNode) compare(o *surveyedNode, ranks []int64) int {
	switch {
	case n.grade != o.grade:
		return cmp.Compare(n.grade, o.grade)
	case n.beyond != o.beyond:
		return cmp.Compare(n.beyond, o.beyond)
	case n.tasks != o.tasks:
		return cmp.Compare(n.tasks, o.tasks)
	case n.jobs != o.jobs:
		return cmp.Compare(n.jobs, o.jobs)
	case n.young != o.young:
		return cmp.Compare(n.young, o.young)
	case n.moved != o.moved:
		return cmp.Compare(n.moved, o.moved)
	}
	return cmp.Compare(ranks[n.slot], ranks[o.slot])
}

// survey is a list of the nodes on which room costs least, by their bounds.
type survey struct {
	nodes []surveyedNode // that are not in the nodeHeap yet, the cheapest first
	most  int            // how many nodes are listed at most
	more  bool           // nodes that cost more were left out; perhaps all of these are in the nodeHeap by now
	// evictedFor is set if it is a further survey, and victims were evicted when it was made.
	// Fewer classes may have victims then, so that other searches need another survey.
	evictedFor *want
}

// maxListed returns how many nodes the first survey of a nodeHeap lists. If the search examines
// all of them, the next survey lists listedFactor times as many.
func maxListed(slots int) int { return 32 + slots/256 }

const listedFactor = 8

// survey replaces all entries of classes by one entry. It represents all nodes that have
// possible victims and no entry of their own: those that the survey lists, and those that it
// leaves out. Only nodes with tasks of the classes that are entered are among them. The bounds
// are those of the State at this time.
func (h *nodeHeap) survey(w *nodewise, t *cluster.Task) {
	if w.evicted && h.surveyed == nil {
		h.enteredFor = w.want
	}
	h.entries.Items = slices.DeleteFunc(h.entries.Items, func(e *heapNode) bool { return e.ofClass || e.surveyed })
	h.entries.Init()
	known, ranks := w.heaps.occupancies, w.view.Recent().Ranks()
	known.refresh(w.view)
	out := &survey{most: max(maxListed(len(known.bySlot)), len(w.want.lacks))} // each task that is lacking may need a node of its own
	if w.finder.search == Twin {
		out.most = 2 // so that further surveys are checked too
	}
	if h.surveyed != nil {
		out.most = max(out.most, h.surveyed.most)
		if w.evicted {
			out.evictedFor = w.want
		}
		if len(h.surveyed.nodes) == 0 && h.surveyed.more {
			out.most *= listedFactor
		}
	}
	costliest := heap.Heap[surveyedNode]{Before: func(a, b surveyedNode) bool { return a.compare(&b, ranks) > 0 }}
	bound := newSummaryBound(w, t.Shape, h.need, h.classes(w))
	clerk := w.evictor.victims.clerk
	add := func(slot int) {
		if !known.bySlot[slot].known && known.freeable(slot) < h.need { // reading the node takes longer than this test
			return
		}
		at := known.of(slot)
		if clerk.allBound(slot, at.tasks()) {
			return
		}
		n, possible := bound.of(at)
		if n.slot = int32(slot); !possible {
			return
		}
		switch full := len(costliest.Items) == out.most; {
		case full && n.compare(&costliest.Items[0], ranks) > 0:
			out.more = true
		case h.seen(slot):
		case full:
			out.more, costliest.Items[0] = true, n
			costliest.Fix(0)
		default:
			costliest.Push(n)
		}
	}
	if h.in == nil {
		for slot := range known.bySlot {
			add(slot)
		}
	} else {
		for _, n := range w.finder.members(h.in) {
			add(n.Slot())
		}
	}
	out.nodes = costliest.Items
	slices.SortFunc(out.nodes, func(a, b surveyedNode) int { return a.compare(&b, ranks) })
	h.surveyed = out
	w.heaps.surveyed += len(out.nodes)
	e := w.heaps.node()
	e.surveyed = true
	h.representSurveyed(w, t, e)
}

// openSurveyed adds the next node of the survey that has no entry yet.
func (h *nodeHeap) openSurveyed(w *nodewise, t *cluster.Task, e *heapNode, ask verdict) {
	h.surveyed.nodes = h.surveyed.nodes[1:]
	if !h.seen(e.slot) {
		h.refine(w, t, e.slot, ask)
	}
	h.representSurveyed(w, t, e)
}

// representSurveyed makes the entry represent the nodes that remain in the survey, and adds it
// to the heap if there are any. If only nodes remain that the survey left out, it makes another
// survey.
func (h *nodeHeap) representSurveyed(w *nodewise, t *cluster.Task, e *heapNode) {
	switch {
	case len(h.surveyed.nodes) > 0:
		next := &h.surveyed.nodes[0]
		e.slot, e.cost = int(next.slot), next.cost()
		h.entries.Push(e)
	case h.surveyed.more:
		h.survey(w, t)
	}
}

// summaryBound computes lower bounds of the cost of room from summaries of nodes. The bounds
// are not above those of nodewise.bound.
type summaryBound struct {
	w       *nodewise
	shape   *cluster.Shape
	need    int64 // as nodeHeap.need
	known   *occupancies
	verdict []classVerdict // by the number of the class
	from    *narrowed
	queues  map[string]bool // the queues of from; nil means all
	moves   *narrowed       // the classes of tasks that may move; nil means any
	// grouped is memory that is used again for each node.
	grouped [3][]group
}

// classVerdict is what is known of a class in one survey.
type classVerdict struct {
	grade  int64
	judged bool
	might  bool // it might have victims
	enters bool // nodes with running tasks of the class are considered
	moves  bool // its tasks might move
}

func newSummaryBound(w *nodewise, s *cluster.Shape, need int64, from *narrowed) *summaryBound {
	b := &summaryBound{w: w, shape: s, need: need, known: w.heaps.occupancies, from: from}
	if b.moves = w.ways.might; w.ways.way&evicting != 0 {
		b.moves = w.evictor.mights(moving, false)
	}
	if from == nil {
		return b
	}
	if queues, all := from.queues(); !all {
		b.queues = make(map[string]bool, len(queues))
		for _, q := range queues {
			b.queues[q] = true
		}
	}
	return b
}

// of returns a bound for the node. It returns false if no class on the node enters, or if the
// shape would not fit even if all possible victims were evicted or moved.
func (b *summaryBound) of(o *occupancy) (surveyedNode, bool) {
	held, widest, enters, moves := 0, 0, false, false
	all := alikeJobs{alike: len(o.parts) == 0}
	for i := range o.jobs {
		j := &o.jobs[i]
		if int(j.class) >= len(b.verdict) { // the node was read just now, and is the first with the class
			b.verdict = append(b.verdict, make([]classVerdict, len(b.known.classes)-len(b.verdict))...)
		}
		v := &b.verdict[j.class]
		if !v.judged {
			b.judge(b.known.classes[j.class], v)
		}
		if v.might {
			held, widest, enters, moves = held+int(j.devices), max(widest, int(j.widest)), enters || v.enters, moves || v.moves
			all.add(j, v.grade)
		}
	}
	if !enters {
		return surveyedNode{}, false
	}
	count, possible := b.shape.FewestBySummary(int(o.unfilled), held, widest)
	if !possible {
		return surveyedNode{}, false
	}
	if !moves {
		if count < 1 || count > all.count || !all.alike {
			return b.leastCost(o, int32(count)), true
		}
		fast := all.leastCost(int32(count), b.need)
		if b.w.finder.search == Twin && fast != b.leastCost(o, int32(count)) {
			b.w.fault.fail("engine", "a survey gives the bound %+v if jobs are alike, and %+v otherwise", fast, b.leastCost(o, int32(count)))
		}
		return fast, true
	}
	out := surveyedNode{grade: grade(0, math.MinInt32), moved: 1} // a plan may consist of moves alone
	if b.w.ways.way == moving {
		out.moved = int32(count)
	}
	return out, true
}

// judge calls the hooks for the class.
func (b *summaryBound) judge(c cluster.Class, v *classVerdict) {
	ways := b.w.ways
	v.judged, v.grade = true, grade(strength(tierOf(b.w.view, c.Queue)), c.Priority)
	v.might = ways.might == nil || ways.might.class(c)
	v.enters = b.from == nil || (b.queues == nil || b.queues[c.Queue]) && b.from.class(c)
	v.moves = ways.way&moving != 0 && (b.moves == nil || b.moves.class(c))
}

// checkSummaries fails the session if the bound that follows from the summary of a node is
// above the bound that follows from its tasks. Twin sessions use it.
func (h *nodeHeap) checkSummaries(w *nodewise, t *cluster.Task, ask verdict) {
	known := w.heaps.occupancies
	known.refresh(w.view)
	bound := newSummaryBound(w, t.Shape, h.need, nil)
	for slot := range known.bySlot {
		exact := h.bound(w, t, slot, ask)
		if exact == nil {
			continue
		}
		summary, possible := bound.of(known.of(slot))
		if rough := summary.cost(); !possible || rough.compare(&exact.cost) > 0 {
			w.fault.fail("engine", "node %s: the summary of its tasks gives the bound %+v for task %s (possible: %t), which is above %+v", w.view.At(slot).Name, rough, t.ID, possible, exact.cost)
		}
	}
}

// alikeJobs sums up the jobs on a node that might be victims. As long as they are alike, the
// bound follows from a few figures. That is so on most nodes.
type alikeJobs struct {
	alike  bool // each has one task and no surplus, and all are of one grade and hold the same amount
	count  int
	grade  int64
	each   int32
	newest int64
}

// add adds a job of the grade.
func (a *alikeJobs) add(j *jobOnNode, grade int64) {
	if a.count == 0 {
		a.grade, a.each, a.newest = grade, j.each, j.newest
	}
	a.count++
	a.alike, a.newest = a.alike && grade == a.grade && j.each == a.each, max(a.newest, j.newest)
}

// leastCost returns what summaryBound.leastCost returns, if the jobs are alike.
func (a *alikeJobs) leastCost(count int32, need int64) surveyedNode {
	return surveyedNode{grade: a.grade, beyond: max(0, int64(count)*int64(a.each)-need), tasks: count, jobs: count, young: min(0, -a.newest)}
}

// leastCost returns a lower bound of the cost of evicting count tasks from the node. The
// tasks of the plan are at least count, and at least those of the smallest victim. They free
// at least what the count smallest tasks hold, and at least what the smallest victim frees.
func (b *summaryBound) leastCost(o *occupancy, count int32) surveyedNode {
	least, newest := partOnNode{whole: true}, int64(0) // the lowest of each figure, and the highest newest
	grades, each, here := b.grouped[0][:0], b.grouped[1][:0], b.grouped[2][:0]
	for i := range o.jobs {
		j, part := &o.jobs[i], o.part(i)
		if !b.verdict[j.class].might {
			continue
		}
		if len(grades) == 0 {
			least.tasks, least.freed, newest = part.tasks, part.freed, j.newest
		}
		least.tasks, least.freed, least.whole, newest = min(least.tasks, part.tasks), min(least.freed, part.freed), least.whole && part.whole, max(newest, j.newest)
		grades, each, here = append(grades, group{b.verdict[j.class].grade, part.count}), append(each, group{int64(j.each), part.count}), append(here, group{int64(-part.count), 1})
	}
	b.grouped = [3][]group{grades, each, here}
	highest, _ := smallest(grades, count)
	_, held := smallest(each, count)
	out := surveyedNode{grade: highest, beyond: max(0, max(int64(least.freed), held)-b.need), tasks: max(least.tasks, count), young: min(0, -newest)}
	if least.whole {
		out.jobs = fewestJobs(here, count)
	}
	return out
}

// group is a figure that count tasks have.
type group struct {
	figure int64
	count  int32
}

// smallest returns the count-th smallest figure, and the sum of the count smallest figures.
// If there are fewer, it returns the largest figure and the sum of all.
func smallest(groups []group, count int32) (last, sum int64) {
	sortGroups(groups)
	for _, g := range groups {
		some := min(g.count, count)
		if count -= some; some > 0 {
			last, sum = g.figure, sum+g.figure*int64(some)
		}
	}
	return last, sum
}

// fewestJobs returns a lower bound of how many jobs have count tasks together. The figure of
// a group is the negated number of tasks that a job has on the node.
func fewestJobs(jobs []group, count int32) int32 {
	sortGroups(jobs)
	out := int32(0)
	for _, j := range jobs {
		if count < int32(-j.figure) {
			break
		}
		count += int32(j.figure)
		if out++; count == 0 {
			break
		}
	}
	return max(1, out)
}

// sortGroups sorts by the figure. The groups are few, and most often all figures are equal.
func sortGroups(groups []group) {
	for i := 1; i < len(groups); i++ {
		for k := i; k > 0 && groups[k].figure < groups[k-1].figure; k-- {
			groups[k], groups[k-1] = groups[k-1], groups[k]
		}
	}
}
