package oracle

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// game follows a session turn by turn: what was promised, and what is there.
type game struct {
	kind     Kind
	promised *board
	physical *board // those who were evicted are still there
	broken   []Violation
}

// Violation is a rule that was broken, and by what was done to whom.
type Violation struct{ Rule, Whom string }

func newGame(k Kind, before *cluster.State, now int64) *game {
	w := newTable(before, now)
	w.divide(before)
	return &game{kind: k, promised: newBoard(w), physical: newBoard(w)}
}

// Legal names the rules that the session broke. Before is the books as it found them.
func Legal(k Kind, before *cluster.State, now int64, out engine.Outcome) []Violation {
	g := newGame(k, before, now)
	for _, t := range turns(out) {
		g.play(t)
	}
	return g.broken
}

func (g *game) breaks(rule, whom string) { g.broken = append(g.broken, Violation{rule, whom}) }

// task is the table's own of the decision's.
func (g *game) task(d *engine.Decision) *task {
	id := d.Task.ID()
	for _, t := range g.promised.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// played is what a legal turn came to.
type played struct {
	victims uint64
	cost    cost
	stands  bool
}

// play checks the turn and makes its moves.
func (g *game) play(t *turn) played {
	b := g.promised
	b.steps = maxSteps
	j := b.find(t.job)
	if j == nil {
		g.breaks("evictions for nobody", t.job)
		return played{}
	}
	var p played
	for _, d := range t.evicted {
		v := g.task(d)
		if d.Reason != g.kind.reason() {
			g.breaks("evicted with another reason", v.ID)
		}
		if !b.at[v.index].bound {
			g.breaks("evicted, but it does not run", v.ID)
			return p
		}
		p.victims |= v.bit()
	}
	p.cost = g.judgeVictims(t, j, p.victims)
	b.evict(p.victims)
	b.gone |= p.victims
	g.seat(t.placed, true)
	if p.stands = b.stands(j, 0); len(t.placed) > 0 && !p.stands {
		g.breaks("placed below its minimum", j.ID)
	}
	g.startsTogether(t, j)
	if g.kind == Consolidate {
		g.land(t, p.victims)
	}
	if p.victims != 0 && len(t.placed) == 0 {
		g.breaks("evictions for a job that is not placed", j.ID)
	}
	return p
}

// judgeVictims holds the victims against the rules. They must be allowed for some
// minimum among the tasks that were placed, in some order.
func (g *game) judgeVictims(t *turn, j *job, victims uint64) cost {
	if victims == 0 {
		return cost{}
	}
	b := g.promised
	placed := uint64(0)
	for _, d := range t.placed {
		placed |= g.task(d).bit()
	}
	why := "its minimum was not placed"
	for _, minimum := range b.minima(j) {
		if b.stands(j, 0) && !b.insideQuota(j, asked(minimum)) {
			why = "surplus beyond the quota has others go"
			continue
		}
		if !covers(b.members(placed), minimum) {
			continue
		}
		spent, ok, rule := b.reaches(&request{g.kind, j, asked(minimum)}, victims)
		if !ok {
			why = rule
			continue
		}
		if smaller, found, err := b.cheapest(g.kind, j, victims); err == nil && found && smaller.victims != victims {
			g.breaks("fewer of its victims would have been enough", list(b.members(smaller.victims)))
		}
		return spent
	}
	g.breaks(why, j.ID)
	return cost{}
}

// covers reports whether the tasks have one for each of the minimum, equals being equal.
func covers(tasks, minimum []*task) bool {
	taken := uint64(0)
	for _, m := range minimum {
		found := false
		for _, t := range tasks {
			if !found && taken&t.bit() == 0 && t.like(m) {
				taken |= t.bit()
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// seat checks and makes placements.
func (g *game) seat(placed []*engine.Decision, fresh bool) {
	b := g.promised
	for _, d := range placed {
		t := g.task(d)
		if fresh && !b.pending(t) {
			g.breaks("placed, but it was not pending", t.ID)
			continue
		}
		n := b.nodeNamed(d.Node)
		if n < 0 {
			g.breaks("placed on a node that is not there", t.ID)
			continue
		}
		if why := b.allows(t.job, t.asks); why != "" {
			g.breaks(why, t.ID)
		}
		if why := b.takes(t, n, d.Claims); why != "" {
			g.breaks(why, t.ID)
		}
		b.sit(t, seat{node: n, claims: d.Claims, bound: d.Action == engine.Bind, fresh: d.Action == engine.Bind})
		if d.Action != engine.Bind {
			continue
		}
		if why := g.physical.takes(t, n, d.Claims); why != "" {
			g.breaks("bound before there is room", t.ID+": "+why)
		}
		g.physical.sit(t, seat{node: n, claims: d.Claims})
	}
}

// startsTogether makes sure that a gang binds as a whole or waits as a whole.
func (g *game) startsTogether(t *turn, j *job) {
	b := g.promised
	for _, d := range t.placed {
		if d.Action == engine.Bind && !enough(j, func(o *task) bool { return b.at[o.index].bound }) {
			g.breaks("a part of it starts below the minimum", j.ID)
			return
		}
	}
}

// land makes sure that all who moved have a new place.
func (g *game) land(t *turn, victims uint64) {
	landed := uint64(0)
	for _, d := range t.landed {
		if d.Action == engine.Bind {
			g.breaks("bound elsewhere before it has left", d.Task.ID())
		}
		landed |= g.task(d).bit()
	}
	if landed != victims {
		g.breaks("moved, but it has no new place", list(g.promised.members(victims&^landed)))
	}
	for _, d := range t.extra {
		g.breaks("surplus is placed with a job that moves", d.Task.ID())
	}
	g.seat(t.extra, true)
	g.seat(t.landed, false)
}

func (w *table) nodeNamed(name string) int {
	for i, n := range w.nodes {
		if n.Name == name {
			return i
		}
	}
	return -1
}

func list(tasks []*task) string {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return strings.Join(ids, ", ")
}
