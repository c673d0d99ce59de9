package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// greedy makes room task by task: where a node takes the task as things are it
// goes there, else where it costs least. For jobs that must stay within a group or
// a domain the cheapest of them counts. It returns the victims, or nil.
func (r *room) greedy() []*Victim {
	var best []*Victim
	var least cost
	for i, in := range r.scopes() {
		if i == maxScopes || r.err != nil {
			break
		}
		mark := r.stmt.Checkpoint()
		plan := r.within(in)
		r.stmt.Rollback(mark)
		if plan == nil {
			continue
		}
		if c := costOf(r.State, plan, r.purpose); best == nil || c.compare(&least) < 0 {
			best, least = plan, c
		}
	}
	return best
}

// scopes are where the job may go as a whole: one group, or one domain.
func (r *room) scopes() []*scope {
	alt := r.alt()
	var out []*scope
	switch {
	case alt.Whole != nil:
		home := r.home(r.job, alt)
		for _, g := range r.State.Groups() {
			if (home == nil || g.Key == *home) && (!named(alt) || g.Key == *alt.Whole.Only) {
				out = append(out, &scope{group: g})
			}
		}
	case alt.Topology.Required != "":
		for _, in := range r.split(nil, alt.Topology.Required) {
			if !slices.ContainsFunc(alt.Tasks, func(t *cluster.Task) bool { return t.Placed() && !in.has(t.At()) }) {
				out = append(out, in)
			}
		}
	default:
		out = everywhere
	}
	return out
}

func (r *room) within(in *scope) []*Victim {
	var plan []*Victim
	r.weighed = nil // what was weighed elsewhere came to nothing
	for _, t := range r.lacks {
		if r.best(t, in) == nil {
			h := r.heap(t, in)
			e := h.cheapest(r, t)
			if e == nil || r.err != nil {
				return nil
			}
			r.weigh(h, t, e)
			for _, v := range e.plan {
				if !r.evict(v) {
					return nil
				}
			}
			plan = append(plan, e.plan...)
		}
		if !r.placeTask(r.stmt, r.alt(), t, in) {
			return nil
		}
		if r.purpose == Move && len(plan) > 0 && !r.landed(plan) {
			return nil
		}
	}
	return plan
}

// landed reports whether everybody in the plan would find room now.
func (r *room) landed(plan []*Victim) bool {
	mark := r.stmt.Checkpoint()
	ok := r.land(plan)
	r.stmt.Rollback(mark)
	return ok
}

// look finds out who would have to go for the task to fit the node. Two orders are
// tried: that of rivals, and with the largest first where fewer of them would do.
func (r *room) look(t *cluster.Task, n *cluster.Node) []*Victim {
	var line []rival
	for _, o := range n.Tasks {
		if r.mayLeave(o, r.job) && (r.purpose != Move || len(VictimOf(o).Tasks) <= maxMoved) {
			line = append(line, r.rival(o))
		}
	}
	slices.SortFunc(line, func(a, b rival) int { return a.before(&b) })
	plan := r.lookIn(t, n, line)
	if len(plan) < 2 || !slices.ContainsFunc(line, func(c rival) bool { return size(line[0].task) != size(c.task) }) {
		return plan
	}
	slices.SortStableFunc(line, func(a, b rival) int {
		return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(size(b.task), size(a.task)))
	})
	other := r.lookIn(t, n, line)
	if x, y := costOf(r.State, plan, r.purpose), costOf(r.State, other, r.purpose); other != nil && y.compare(&x) < 0 {
		return other
	}
	return plan
}

// lookIn has rivals go in the order given until the task fits the node, and then
// whoever can stay, stays, the last first.
func (r *room) lookIn(t *cluster.Task, n *cluster.Node, line []rival) []*Victim {
	filters, _, _ := r.taskHooks(t)
	if rejection, _ := r.rejectAt(filters, t, n); rejection != nil && rejection.Cure&Evict == 0 {
		return nil
	}
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
	var plan []*Victim
	fits := false
	for i := 0; i < len(line) && !fits; i++ {
		if !line[i].task.Runs() {
			continue // its job is gone already
		}
		v, before := VictimOf(line[i].task), r.stmt.Checkpoint()
		if !r.evict(v) {
			continue
		}
		rejection, _ := r.rejectAt(filters, t, n)
		if rejection != nil && rejection.Cure&Evict == 0 { // without the victim it is not allowed there: it must be near it
			r.stmt.Rollback(before)
			continue
		}
		plan = append(plan, v)
		fits = rejection == nil
	}
	if !fits {
		return nil
	}
	if len(plan) > 1 {
		plan = r.keep(plan, func(rest []*Victim) bool {
			r.stmt.Rollback(mark)
			for _, v := range rest {
				if !r.evict(v) {
					return false
				}
			}
			rejection, _ := r.rejectAt(filters, t, n)
			return rejection == nil
		})
	}
	if r.purpose != Move {
		return plan
	}
	r.stmt.Rollback(mark)
	for _, v := range plan {
		r.evict(v)
	}
	if r.placeOn(t, n) && r.land(plan) {
		return plan
	}
	return nil
}

// placeOn allocates the task on the node, to see what is left for others.
func (r *room) placeOn(t *cluster.Task, n *cluster.Node) bool {
	claims, ok := n.Choose(t.Shape, r.deviceScore(t.Shape, n))
	return ok && r.stmt.Allocate(t, n, claims) == nil
}

// keep lets those stay without whom the rest is enough, the dearest first. Who
// are spared one by one may not go in another order, so order is kept.
func (r *room) keep(plan []*Victim, enough func([]*Victim) bool) []*Victim {
	for i := len(plan) - 1; i >= 0 && len(plan) > 1; i-- {
		rest := slices.Delete(slices.Clone(plan), i, i+1)
		if enough(rest) {
			plan = rest
		}
	}
	return plan
}

// inLine has rivals of the whole cluster go one after the other until the
// job is placed, and then lets stay whom it can. It is for what no node can be
// blamed for, such as the limit of a queue.
func (r *room) inLine() []*Victim {
	line := r.line(maxInLine, true)
	if line == nil { // of too many, those that it must be away from, wherever they are
		line = r.rivals(r.job, maxInLine, func(t *cluster.Task) bool { return t.Job.Repels(r.job) && r.mayGo(t) })
	}
	if len(line) == 0 {
		return nil
	}
	var plan []*Victim
	for size := 1; ; size *= 2 {
		plan = r.first(line, min(size, len(line)))
		if len(plan) > 0 && r.works(plan) {
			break
		}
		if size >= len(line) || r.tries >= maxTries || r.err != nil {
			return nil
		}
	}
	return r.keep(plan, func(rest []*Victim) bool { return r.tries < maxTries && r.works(rest) })
}

// first are the victims that go if the first rivals have to.
func (r *room) first(line []rival, size int) []*Victim {
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
	var plan []*Victim
	for _, c := range line[:size] {
		if !c.task.Runs() {
			continue
		}
		if v := VictimOf(c.task); r.evict(v) {
			plan = append(plan, v)
		}
	}
	return plan
}

// line are all rivals in order, or only those who may go as things are; nil where
// there are more than most.
func (r *room) line(most int, free bool) []rival {
	if free {
		return r.rivals(r.job, most, r.mayGo)
	}
	return r.rivals(r.job, most, nil)
}

// weigh remembers what else would have done, to be told.
func (r *room) weigh(h *heap, t *cluster.Task, chosen *entryPlan) {
	if len(r.weighed) >= mostNamed {
		return
	}
	add := func(e *entryPlan) {
		o := Option{Task: t.Name, Node: r.State.At(e.slot).Name, Chosen: e == chosen, Cost: e.cost.told()}
		for _, v := range e.plan {
			for _, t := range v.Tasks {
				o.Go = append(o.Go, t.ID)
			}
		}
		r.weighed = append(r.weighed, o)
	}
	add(chosen)
	if r.options.Explain {
		looks := r.looks
		for _, e := range h.others(r, t, 3) {
			add(e)
		}
		r.looks = looks // what is only told uses up nothing
	}
}
