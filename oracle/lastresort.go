package oracle

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// quotaFirst is rule 4: the job's queues end within their quotas, and the victim's were
// beyond theirs before the plan.
func (b *board) quotaFirst(e *ending, own, others []*queue, held vector) bool {
	if !b.withinQuota(e, own) {
		return false
	}
	for r := range e.asks {
		if b.concerns(e, held, r) && !slices.ContainsFunc(others, func(q *queue) bool { return e.before[q.index][r] <= max(0, q.quota(r)) }) {
			return true
		}
	}
	return false
}

// withinQuota reports whether the queues hold no more than their quotas with the job. A
// queue without a quota holds more with whatever it holds.
func (b *board) withinQuota(e *ending, queues []*queue) bool {
	for _, q := range queues {
		for r := range e.asks {
			if b.divided[r] && e.asks[r] > 0 && b.used[q.index][r]+e.asks[r] > max(0, q.quota(r)) {
				return false
			}
		}
	}
	return true
}

// moreEven is the part of rule 5 that concerns one victim: the job's queue ends lower than
// the victim's stood, quotas are kept, and below the fork the highest lose first.
func (b *board) moreEven(e *ending, own, others []*queue, held vector) bool {
	if b.ratioOf(own[0], b.used[own[0].index].plus(e.asks, +1)).compare(b.ratioOf(others[0], e.before[others[0].index])) >= 0 {
		return false
	}
	deserved := b.withinQuota(e, own)
	for r := range e.asks {
		if b.concerns(e, held, r) && (deserved || b.keep(others, r, func(q *queue) int64 { return q.quota(r) })) && b.highest(e, others[1:], r) {
			return true
		}
	}
	return false
}

// highest reports whether no sibling of the queues that has victims left ends higher than
// they stood.
func (b *board) highest(e *ending, queues []*queue, r int) bool {
	for _, q := range queues {
		stood := b.ratioOf(q, e.before[q.index])
		for _, o := range q.parent.children {
			if o != q && b.used[o.index][r] > b.firm[o.index][r] && b.ratioOf(o, b.used[o.index]).compare(stood) > 0 {
				return false
			}
		}
	}
	return true
}

// ratio is how much a queue holds of what it deserves.
type ratio struct{ held, deserved, total int64 }

// ratioOf is that of the resource in which it is most.
func (w *table) ratioOf(q *queue, used vector) ratio {
	top := ratio{total: 1}
	for r := range used {
		if one := (ratio{used[r], q.share[r], w.total[r]}); w.divided[r] && used[r] > 0 && one.compare(top) > 0 {
			top = one
		}
	}
	return top
}

// compare orders ratios. A queue that holds something of which it deserves nothing stands
// above all others.
func (a ratio) compare(o ratio) int {
	none := func(r ratio) bool { return r.held > 0 && r.deserved <= 0 }
	switch {
	case none(a) && none(o):
		return compareProducts(a.held, o.total, o.held, a.total)
	case none(a):
		return 1
	case none(o):
		return -1
	}
	return compareProducts(a.held, max(1, o.deserved), o.held, max(1, a.deserved))
}

// compareProducts compares a times b with c times d.
func compareProducts(a, b, c, d int64) int {
	x, y := bits.Mul64(uint64(a), uint64(b))
	z, w := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(x, z), cmp.Compare(y, w))
}

// resort names the rule of the last resort that forbids the plan; "" where it is allowed,
// or where it is too large to be judged.
func (g *game) resort(t *turn, p *plan) string {
	b := g.promised
	if _, found, err := b.cheapest(g.kind, b.find(t.job), nil); found {
		return "last resort: another plan follows the rules"
	} else if err != nil {
		g.unchecked++
	}
	levels := g.uneven(p)
	if levels == nil {
		return ""
	}
	if b.gone|b.flying != 0 { // evictions of earlier turns: what is idle is not known
		g.unchecked++
		return ""
	}
	without, err := g.handOut(nil, nil)
	if err != nil {
		return err.Error()
	}
	with, err := g.handOut(b.members(p.victims()), append(slices.Clone(t.placed), t.landed...))
	if err != nil {
		return err.Error()
	}
	for level, lower := range levels {
		q := p.request.job.branch[level]
		c := slices.CompareFunc(b.standings(q, with), b.standings(q, without), ratio.compare)
		if c > 0 || c == 0 && lower {
			return "reclaim 5: the queues would be less even"
		}
	}
	return ""
}

// uneven are the levels of the job's branch at which the siblings must not stand higher
// with the plan: all down to the last at which only rule 5 lets a victim leave. There they
// must stand lower. Nil where rule 5 is not needed.
func (g *game) uneven(p *plan) []bool {
	b := g.promised
	before := slices.Clone(b.used)
	seats := b.evict(p.evicted)
	defer b.restore(p.evicted, seats)
	e := &ending{p.request, p, nil, before}
	lower := make([]bool, len(p.request.job.branch))
	deepest := -1
	for _, v := range b.members(p.evicted) {
		own, others := fork(p.request.job, v.job)
		fair := func(u unit) bool {
			return b.sparesPreempt(e, &u) == "" || b.shares(e, own, others, held(&u)) == "" || b.quotaFirst(e, own, others, held(&u))
		}
		if len(own) == 0 || fair(unit{job: v.job, tasks: []*task{v}}) || b.bound(v.job) == 0 && fair(unit{job: v.job, tasks: b.members(p.evicted & v.job.set())}) {
			continue
		}
		level := len(lower) - len(own)
		lower[level], deepest = true, max(deepest, level)
	}
	if deepest < 0 {
		return nil
	}
	return lower[:deepest+1]
}

// standings are the ratios of the siblings of the queue, the highest first.
func (w *table) standings(q *queue, used []vector) (out []ratio) {
	for _, o := range w.queues {
		if o.parent == q.parent {
			out = append(out, w.ratioOf(o, used[o.index]))
		}
	}
	slices.SortFunc(out, func(a, b ratio) int { return b.compare(a) })
	return out
}

// handOut gives the room that is idle once the tasks have left and others are placed to
// pending jobs, and returns what queues hold then. An engine without means to make room
// does it, so that the order of turns is that of the profile.
func (g *game) handOut(leaving []*task, placed []*engine.Decision) ([]vector, error) {
	b := g.promised
	s := g.before.Clone()
	for _, t := range leaving {
		if err := s.Apply(cluster.TaskSeen{Task: t.Ref()}); err != nil {
			return nil, err
		}
	}
	for _, t := range b.members(b.fresh) {
		at := b.at[t.index]
		if err := s.Apply(cluster.SeenOn(t.Task, b.nodes[at.node], at.claims, g.now)); err != nil {
			return nil, err
		}
	}
	for _, d := range placed {
		t := g.task(d)
		if err := s.Apply(cluster.SeenOn(t.Task, b.nodes[b.nodeNamed(d.Node)], d.Claims, g.now)); err != nil {
			return nil, err
		}
	}
	e, err := Engine(Allocate)
	if err != nil {
		return nil, err
	}
	session := e.Open(s, engine.Options{Now: g.now})
	defer session.Close()
	if _, err := session.Run(); err != nil {
		return nil, err
	}
	used := make([]vector, len(b.queues))
	for i, q := range b.queues {
		used[i] = vectorOf(s.Queue(q.name).Used, 0)
	}
	return used, nil
}
