package oracle

import (
	"slices"
	"strings"
)

// planChecker checks the plans of turns, before the turns are applied.
type planChecker struct {
	kind      Kind
	objects   *objects
	placement *placement
	planner   *planner
	findings  *findings
}

// turnPlan is the plan of a turn.
type turnPlan struct {
	plan       plan
	form       *form // the form that was placed, or the first one
	evictedBy  map[*task]Kind
	lastResort bool // whether only the last resort allows the plan
}

// check reads the plan of the turn and checks it against the rules. It returns nil if the
// turn cannot be applied.
func (c *planChecker) check(t *turn) *turnPlan {
	c.planner.placements.reset()
	p := &turnPlan{form: c.objects.find(t.job)}
	if p.form == nil {
		c.findings.add("evictions for no job", t.job)
		return nil
	}
	if len(t.placed) > 0 {
		p.form = c.objects.findTask(t.placed[0].Task).form
	}
	if !c.readVictims(t, p) {
		return nil
	}
	if p.plan.victims() != 0 {
		p.lastResort = c.checkRules(t, p)
	}
	p.plan.cost = c.planner.costs.of(p.form, p.plan.evicted, p.plan.moved)
	p.plan.cost.beyond = c.beyond(t, &p.plan)
	return p
}

// readVictims reads from the turn which tasks are evicted by which plugin, and which tasks
// move. It returns false if one of the tasks does not run.
func (c *planChecker) readVictims(t *turn, p *turnPlan) bool {
	p.evictedBy = map[*task]Kind{}
	for _, d := range t.evicted {
		v := c.objects.findTask(d.Task)
		if !c.placement.isBound(v) {
			c.findings.add("evicted, but it does not run", v.task.ID)
			return false
		}
		for plugin, reason := range reasons {
			if d.Reason == reason && c.kind.has(plugin) {
				p.evictedBy[v] = plugin
			}
		}
		switch p.evictedBy[v] {
		case Consolidate:
			p.plan.moved |= v.bit()
		case "":
			c.findings.add("evicted with a reason of another plugin", v.task.ID)
			fallthrough
		default:
			p.plan.evicted |= v.bit()
		}
	}
	return true
}

// checkRules checks the plan against the rules. They must allow it for a minimum among the
// tasks that were placed. It reports whether only the last resort allows the plan.
func (c *planChecker) checkRules(t *turn, of *turnPlan) bool {
	p, f := &of.plan, of.form
	var placed []*task
	for _, d := range t.placed {
		placed = append(placed, c.objects.findTask(d.Task))
	}
	why := "its minimum was not placed"
	for _, lastResort := range []bool{false, true} {
		for _, minimum := range c.placement.minima(f) {
			if c.placement.hasMinimum(f) && !c.placement.queues.allowsSurplus(f, sum(minimum)) {
				why = "tasks are evicted for surplus beyond the quota"
				continue
			}
			if !covers(placed, minimum) {
				continue
			}
			p.request = newRequest(c.kind, f, minimum, lastResort)
			rule := c.planner.rules.violation(p, of.evictedBy)
			if rule == "" && lastResort {
				rule = c.lastResortViolation(t, p)
			}
			if rule == "" {
				c.checkNeeded(p)
				return lastResort
			}
			if why = rule; lastResort && strings.HasPrefix(rule, "last resort") && !c.placement.hasMinimum(f) {
				break
			}
		}
	}
	c.findings.add(why, f.job.ID)
	return false
}

// covers reports whether the tasks contain an equal task for each task of the minimum.
func covers(tasks, minimum []*task) bool {
	var taken taskSet
	for _, m := range minimum {
		i := slices.IndexFunc(tasks, func(t *task) bool { return !taken.has(t) && t.isEqual(m) })
		if i < 0 {
			return false
		}
		taken |= tasks[i].bit()
	}
	return true
}

// lastResortViolation returns the rule that forbids the last resort for the plan, or "" if
// it is allowed or too large to check.
func (c *planChecker) lastResortViolation(t *turn, p *plan) string {
	f := c.objects.find(t.job)
	found, err := false, error(nil)
	if c.placement.hasAnyMinimum(f) { // the turn is for this surplus task only
		_, found, err = c.planner.cheapestFor(p.request)
	} else {
		_, found, err = c.planner.cheapest(c.kind, f, nil, false)
	}
	if found {
		return "last resort: another plan follows the rules"
	}
	if err != nil {
		c.findings.unchecked++
	}
	return ""
}

// checkNeeded checks that all victims of the plan are needed. There is one exception: if
// tasks move, and a form has a topology or requests whole nodes, a plan with an unneeded
// victim is only not minimal, because the engine does not search all placements of such
// forms.
func (c *planChecker) checkNeeded(p *plan) {
	needed, found, err := c.planner.cheapestOf(c.kind, p.request.form, *p, nil, p.request.lastResort)
	isPartlySearched := func(t *task) bool { return t.form.alt.Topology.Required != "" || t.form.alt.Whole != nil }
	if needed.moved != 0 && slices.ContainsFunc(append(c.objects.members(needed.moved), p.request.minimum...), isPartlySearched) {
		return
	}
	if err == nil && found && needed.victims() != p.victims() {
		c.findings.add("not all of its victims are needed", list(c.objects.members(needed.victims())))
	}
}

// beyond returns what the plan frees beyond what is needed. Only the evicted tasks count: if
// another placement, another minimum of the job or other moves use more of the room that the
// same evictions free, the smaller value is returned.
func (c *planChecker) beyond(t *turn, p *plan) int64 {
	changes := c.planner.costs.changes(p.evicted, p.moved)
	for _, d := range slices.Concat(t.placed, t.landings) {
		if n := c.objects.findNode(d.Node); n >= 0 {
			changes.place(c.objects.findTask(d.Task), n, +1)
		}
	}
	beyond := changes.beyond()
	if least, ok := c.planner.leastBeyond(c.kind, p); ok {
		beyond = min(beyond, least)
	}
	return beyond
}
