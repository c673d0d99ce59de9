package oracle

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// checker follows a session turn by turn. It has two boards: booked has bound and nominated
// tasks, and physical has bound and releasing tasks.
type checker struct {
	kind     Kind
	now      int64
	before   *cluster.State
	booked   *board
	physical *board // what was evicted is still there
	broken   []Violation
	// unchecked counts the rules that were too large to check.
	unchecked int
}

// Violation is a rule that was broken, and the task or job of which.
type Violation struct{ Rule, Of string }

func newChecker(k Kind, before *cluster.State, now int64) *checker {
	w := newTable(before.View(), now)
	w.divide(before.View())
	return &checker{kind: k, now: now, before: before, booked: newBoard(w), physical: newBoard(w)}
}

// Legal returns the rules that the session broke. before is State before the session.
func Legal(k Kind, before *cluster.State, now int64, out engine.Outcome) []Violation {
	g := newChecker(k, before, now)
	for _, t := range turns(out) {
		g.play(t)
	}
	return g.broken
}

func (g *checker) addViolation(rule, of string) { g.broken = append(g.broken, Violation{rule, of}) }

// task returns the task of the decision.
func (g *checker) task(d *engine.Decision) *task {
	for _, t := range g.booked.tasks {
		if t.Ref() == d.Task {
			return t
		}
	}
	return nil
}

// turnResult is the plan of a turn.
type turnResult struct {
	plan   plan
	form   *job // the form that was placed, or the first one
	given  map[*task]Kind
	stands bool
	last   bool // only the last resort allows the plan
}

// play checks the turn and applies it to the boards.
func (g *checker) play(t *turn) {
	if p := g.judge(t); p != nil {
		g.carryOut(t, p)
	}
}

// judge reads the plan of the turn and checks it against the rules. It returns nil if the
// plan cannot be applied.
func (g *checker) judge(t *turn) *turnResult {
	b := g.booked
	b.steps = maxSteps
	p := &turnResult{form: b.find(t.job)}
	if p.form == nil {
		g.addViolation("evictions for no job", t.job)
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

// beyond returns what the plan frees beyond what is needed. Only the evicted tasks count:
// if another placement, other tasks of the job or other moves use more of the room that is
// freed, the smaller value is returned.
func (g *checker) beyond(t *turn, p *plan) int64 {
	b := g.booked
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

// carryOut applies the turn to the boards and checks what was placed.
func (g *checker) carryOut(t *turn, p *turnResult) {
	b := g.booked
	origins := map[uint64]location{}
	for _, v := range b.members(p.plan.victims()) {
		origins[v.bit()] = b.remove(v)
		b.displaced[p.form.ID] = append(b.displaced[p.form.ID], v.job.ID)
	}
	b.gone |= p.plan.evicted
	g.placeTasks(t.placed)
	if p.stands = b.hasMinimum(p.form, 0); len(t.placed) > 0 && !p.stands {
		g.addViolation("placed below its minimum", p.form.ID)
	}
	g.startsTogether(t, p.form)
	g.checkMoves(t, p.plan.moved, origins)
	if p.plan.victims() == 0 {
		return
	}
	if b.evictedFor[p.form.ID] = true; len(t.placed) == 0 {
		g.addViolation("evictions for a job that is not placed", p.form.ID)
	}
}

// victims reads from the turn which tasks are evicted by which plugin, and which move. It
// returns false if a task does not run.
func (g *checker) victims(t *turn, p *turnResult) bool {
	p.given = map[*task]Kind{}
	for _, d := range t.evicted {
		v := g.task(d)
		if !g.booked.at[v.index].bound {
			g.addViolation("evicted, but it does not run", v.ID)
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
			g.addViolation("evicted with a reason of another plugin", v.ID)
			fallthrough
		default:
			p.plan.evicted |= v.bit()
		}
	}
	return true
}

// allowed checks the plan against the rules. They must allow it for a minimum among the
// tasks that were placed. It reports whether only the last resort allows it.
func (g *checker) allowed(t *turn, turn *turnResult) bool {
	b, p, form := g.booked, &turn.plan, turn.form
	placed := uint64(0)
	for _, d := range t.placed {
		placed |= g.task(d).bit()
	}
	why := "its minimum was not placed"
	for _, last := range []bool{false, true} {
		for _, minimum := range b.minima(form) {
			if b.hasMinimum(form, 0) && !b.insideQuota(form, asked(minimum)) {
				why = "tasks are evicted for surplus beyond the quota"
				continue
			}
			if !covers(b.members(placed), minimum) {
				continue
			}
			p.request = newRequest(g.kind, form, minimum)
			p.request.last = last
			rule := b.violation(p, turn.given)
			if rule == "" && last {
				rule = g.lastResortViolation(t, p)
			}
			if rule == "" {
				g.checkNeeded(p)
				return last
			}
			if why = rule; last && strings.HasPrefix(rule, "last resort") && !b.hasMinimum(form, 0) {
				break
			}
		}
	}
	g.addViolation(why, form.ID)
	return false
}

// checkNeeded checks that all victims of the plan are needed. There is one exception: if
// tasks move, and a form has a topology or uses whole nodes, an unneeded victim only makes
// the plan not minimal, because the engine does not search all placements of such forms.
func (g *checker) checkNeeded(p *plan) {
	b := g.booked
	part, found, err := b.cheapestOf(g.kind, p.request.job, *p, nil, p.request.last)
	if slices.ContainsFunc(append(b.members(part.moved), p.request.minimum...), func(t *task) bool { return t.job.alt.Topology.Required != "" || t.job.alt.Whole != nil }) && part.moved != 0 {
		return
	}
	if err == nil && found && part.victims() != p.victims() {
		g.addViolation("not all of its victims are needed", list(b.members(part.victims())))
	}
}

// covers reports whether the tasks contain an equal task for each task of the minimum.
func covers(tasks, minimum []*task) bool {
	taken := uint64(0)
	for _, m := range minimum {
		found := false
		for _, t := range tasks {
			if !found && taken&t.bit() == 0 && t.isEqual(m) {
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

// placeTasks checks the placements and applies them to the boards.
func (g *checker) placeTasks(placed []*engine.Decision) {
	b := g.booked
	for _, d := range placed {
		t := g.task(d)
		if !b.pending(t) {
			g.addViolation("placed, but it was not pending", t.ID)
			continue
		}
		n := b.nodeNamed(d.Node)
		if n < 0 {
			g.addViolation("placed on a node that does not exist", t.ID)
			continue
		}
		if why := b.queueViolation(t.job, t.asks); why != "" {
			g.addViolation(why, t.ID)
		}
		if why := b.nodeViolation(t, n, d.Claims); why != "" {
			g.addViolation(why, t.ID)
		}
		if !b.inDomain(t, n) {
			g.addViolation("placed outside the domain of its job", t.ID)
		}
		b.place(t, location{node: n, claims: d.Claims, bound: d.Action == engine.Bind})
		b.placedNow |= t.bit()
		if d.Action != engine.Bind {
			continue
		}
		if why := g.physical.nodeViolation(t, n, d.Claims); why != "" {
			g.addViolation("bound before its room is free", t.ID+": "+why)
		}
		g.physical.place(t, location{node: n, claims: d.Claims})
	}
}

// startsTogether checks that the tasks of a gang are bound only if its minimum is bound.
func (g *checker) startsTogether(t *turn, j *job) {
	b := g.booked
	for _, d := range t.placed {
		if d.Action == engine.Bind && !enough(j, func(o *task) bool { return b.at[o.index].bound }) {
			g.addViolation("tasks of it start below the minimum", j.ID)
			return
		}
	}
}

// checkMoves checks that every task that moves has a new location, which differs from the
// former one.
func (g *checker) checkMoves(t *turn, moved uint64, origins map[uint64]location) {
	b := g.booked
	landed := uint64(0)
	for _, d := range t.landed {
		v := g.task(d)
		if d.Action == engine.Bind {
			g.addViolation("bound to another location before it has stopped", v.ID)
		}
		if o := origins[v.bit()]; b.nodes[o.node].Name == d.Node && slices.Equal(o.claims, d.Claims) {
			g.addViolation("moved to its former location", v.ID)
		}
		landed |= v.bit()
	}
	if landed != moved {
		g.addViolation("moved, but it has no new location", list(b.members(moved&^landed)))
	}
	for _, d := range t.extra {
		g.addViolation("surplus is placed together with a job that moves", d.Task.ID())
	}
	g.placeTasks(t.extra)
	g.placeTasks(t.landed)
	b.moving |= moved
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
