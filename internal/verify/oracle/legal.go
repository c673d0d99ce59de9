package oracle

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// game follows a session turn by turn: what was promised, and what is there.
type game struct {
	kind     Kind
	now      int64
	before   *cluster.State
	promised *board
	physical *board // what was evicted is still there
	broken   []Violation
	// unchecked counts what was too large to be judged.
	unchecked int
}

// Violation is a rule that was broken, and for which task or job.
type Violation struct{ Rule, Of string }

func newGame(k Kind, before *cluster.State, now int64) *game {
	w := newTable(before.View(), now)
	w.divide(before.View())
	return &game{kind: k, now: now, before: before, promised: newBoard(w), physical: newBoard(w)}
}

// Legal names the rules that the session broke. Before is the State as it found it.
func Legal(k Kind, before *cluster.State, now int64, out engine.Outcome) []Violation {
	g := newGame(k, before, now)
	for _, t := range turns(out) {
		g.play(t)
	}
	return g.broken
}

func (g *game) breaks(rule, of string) { g.broken = append(g.broken, Violation{rule, of}) }

// task is the table's own of the decision's.
func (g *game) task(d *engine.Decision) *task {
	for _, t := range g.promised.tasks {
		if t.Ref() == d.Task {
			return t
		}
	}
	return nil
}

// played is what a turn came to.
type played struct {
	plan   plan
	form   *job // that it was placed in, or the first
	given  map[*task]Kind
	stands bool
	last   bool // only the last resort allows the plan
}

// play checks the turn and makes its moves.
func (g *game) play(t *turn) {
	if p := g.judge(t); p != nil {
		g.carryOut(t, p)
	}
}

// judge reads the plan of the turn and holds it against the rules; nil where it cannot
// be carried out.
func (g *game) judge(t *turn) *played {
	b := g.promised
	b.steps = maxSteps
	p := &played{form: b.find(t.job)}
	if p.form == nil {
		g.breaks("evictions for no job", t.job)
		return nil
	}
	if len(t.placed) > 0 {
		p.form = g.task(t.placed[0]).job
	}
	if !g.victims(t, p) {
		return nil
	}
	if p.plan.victims() != 0 {
		p.last = g.allowed(t, p)
	}
	p.plan.cost = b.costOf(p.form, p.plan.evicted, p.plan.moved)
	p.plan.cost.beyond = g.beyond(t, &p.plan)
	return p
}

// beyond is what the plan frees beyond what is needed. What is evicted decides: if other
// seats, other tasks of the job or other moves use more of what the evicted tasks leave,
// that counts.
func (g *game) beyond(t *turn, p *plan) int64 {
	b := g.promised
	flows := b.flows(p.evicted, p.moved)
	for _, d := range append(slices.Clone(t.placed), t.landed...) {
		if n := b.nodeNamed(d.Node); n >= 0 {
			flows[n].placed += g.task(d).asks[gpu]
		}
	}
	spent := beyond(flows)
	if least, ok := b.least(g.kind, p); ok {
		spent = min(spent, least)
	}
	return spent
}

// carryOut makes the moves of the turn and checks what was placed.
func (g *game) carryOut(t *turn, p *played) {
	b := g.promised
	origins := map[uint64]seat{}
	for _, v := range b.members(p.plan.victims()) {
		origins[v.bit()] = b.rise(v)
		b.displaced[p.form.ID] = append(b.displaced[p.form.ID], v.job.ID)
	}
	b.gone |= p.plan.evicted
	g.seat(t.placed)
	if p.stands = b.stands(p.form, 0); len(t.placed) > 0 && !p.stands {
		g.breaks("placed below its minimum", p.form.ID)
	}
	g.startsTogether(t, p.form)
	g.land(t, p.plan.moved, origins)
	if p.plan.victims() == 0 {
		return
	}
	if b.served[p.form.ID] = true; len(t.placed) == 0 {
		g.breaks("evictions for a job that is not placed", p.form.ID)
	}
}

// victims reads which tasks are evicted for which plugin, and which move.
func (g *game) victims(t *turn, p *played) bool {
	p.given = map[*task]Kind{}
	for _, d := range t.evicted {
		v := g.task(d)
		if !g.promised.at[v.index].bound {
			g.breaks("evicted, but it does not run", v.ID)
			return false
		}
		for plugin, reason := range reasons {
			if d.Reason == reason && g.kind.has(plugin) {
				p.given[v] = plugin
			}
		}
		switch p.given[v] {
		case Consolidate:
			p.plan.moved |= v.bit()
		case "":
			g.breaks("evicted with another reason", v.ID)
			fallthrough
		default:
			p.plan.evicted |= v.bit()
		}
	}
	return true
}

// allowed holds the plan against the rules. It must be allowed for some minimum among
// the tasks that were placed. It reports whether only the last resort allows it.
func (g *game) allowed(t *turn, turn *played) bool {
	b, p, form := g.promised, &turn.plan, turn.form
	placed := uint64(0)
	for _, d := range t.placed {
		placed |= g.task(d).bit()
	}
	why := "its minimum was not placed"
	for _, last := range []bool{false, true} {
		for _, minimum := range b.minima(form) {
			if b.stands(form, 0) && !b.insideQuota(form, asked(minimum)) {
				why = "surplus beyond the quota evicts others"
				continue
			}
			if !covers(b.members(placed), minimum) {
				continue
			}
			p.request = newRequest(g.kind, form, minimum)
			p.request.last = last
			rule := b.objects(p, turn.given)
			if rule == "" && last {
				rule = g.resort(t, p)
			}
			if rule == "" {
				g.thin(p)
				return last
			}
			if why = rule; last && strings.HasPrefix(rule, "last resort") && !b.stands(form, 0) {
				break
			}
		}
	}
	g.breaks(why, form.ID)
	return false
}

// thin makes sure that no victim of a plan could have stayed. Where tasks move beside a
// form with a topology or of whole nodes, such a plan is only not minimal: the engine
// searches all arrangements of the job and what moves together, but not of such forms.
func (g *game) thin(p *plan) {
	b := g.promised
	part, found, err := b.cheapestOf(g.kind, p.request.job, *p, nil, p.request.last)
	if slices.ContainsFunc(append(b.members(part.moved), p.request.minimum...), func(t *task) bool { return t.job.alt.Topology.Required != "" || t.job.alt.Whole != nil }) && part.moved != 0 {
		return
	}
	if err == nil && found && part.victims() != p.victims() {
		g.breaks("fewer of its victims would have been enough", list(b.members(part.victims())))
	}
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
func (g *game) seat(placed []*engine.Decision) {
	b := g.promised
	for _, d := range placed {
		t := g.task(d)
		if !b.pending(t) {
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
		if !b.near(t, n) {
			g.breaks("placed too far from the others of its job", t.ID)
		}
		b.sit(t, seat{node: n, claims: d.Claims, bound: d.Action == engine.Bind})
		b.fresh |= t.bit()
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

// land makes sure that all that moved have a new place, which is another than before.
func (g *game) land(t *turn, moved uint64, origins map[uint64]seat) {
	b := g.promised
	landed := uint64(0)
	for _, d := range t.landed {
		v := g.task(d)
		if d.Action == engine.Bind {
			g.breaks("bound elsewhere before it has left", v.ID)
		}
		if o := origins[v.bit()]; b.nodes[o.node].Name == d.Node && slices.Equal(o.claims, d.Claims) {
			g.breaks("moved to where it is", v.ID)
		}
		landed |= v.bit()
	}
	if landed != moved {
		g.breaks("moved, but it has no new place", list(b.members(moved&^landed)))
	}
	for _, d := range t.extra {
		g.breaks("surplus is placed with a job that moves", d.Task.ID())
	}
	g.seat(t.extra)
	g.seat(t.landed)
	b.flying |= moved
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
