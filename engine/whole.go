package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// placeWhole puts the tasks onto whole nodes of one group. Node filters thin out
// the nodes; group filters then see what is left of each group. What could ever
// fit is kept apart from what fits now, and groups that fit now are tried, best
// score first, until one places.
func (s *Session) placeWhole(stmt *Statement, job *cluster.Job, alt *cluster.Alternative, tasks []*cluster.Task) *Attempt {
	if len(tasks) == 0 {
		return nil
	}
	if a := s.before(tasks[0]); a != nil {
		a.Alternative, a.Min = alt.Name, alt.Min
		return a
	}
	var choices []groupChoice
	var groups []GroupMiss
	for _, g := range s.State.Groups() {
		now, ever := s.survivors(tasks[0], g)
		if home := groupOf(alt); home != nil {
			// Some of it runs already: the rest joins them, and the group is not judged again.
			if g == home {
				choices = append(choices, groupChoice{g, 0})
				groups = append(groups, GroupMiss{g.Key, len(ever), nil})
			}
			continue
		}
		if r := s.rejectGroup(job, alt.Whole, g, ever); r != nil {
			groups = append(groups, GroupMiss{g.Key, len(ever), r})
			continue
		}
		groups = append(groups, GroupMiss{g.Key, len(ever), nil})
		if s.rejectGroup(job, alt.Whole, g, now) == nil {
			choices = append(choices, groupChoice{g, s.scoreGroup(job, alt.Whole, g, now)})
		}
	}
	// Groups come in key order, so equal scores keep it.
	slices.SortStableFunc(choices, func(a, b groupChoice) int { return cmp.Compare(b.score, a.score) })
	var last *Attempt
	for _, c := range choices {
		mark := stmt.Checkpoint()
		g := s.gang(stmt, alt, &scope{group: c.group})
		g.least = g.placed + len(tasks) // whole nodes come all or none
		if last = g.arrange(); last == nil {
			return nil
		}
		stmt.Rollback(mark)
		if s.err != nil {
			return last
		}
	}
	if last == nil {
		last = s.explain(alt, tasks[0], nil)
		last.Groups = groups
	}
	last.Alternative = alt.Name
	if last.Subgroup == "" && last.Level == "" {
		last.Min = alt.Min
	}
	return last
}

// groupOf is the group that tasks of the alternative run on already.
func groupOf(alt *cluster.Alternative) *cluster.Group {
	for _, t := range alt.Tasks {
		if t.Node != nil {
			return t.At().Group()
		}
	}
	return nil
}

type groupChoice struct {
	group *cluster.Group
	score int64
}

// survivors are the group's nodes that take the task now, and those that would
// if everybody else were gone.
func (s *Session) survivors(t *cluster.Task, g *cluster.Group) (now, ever []*cluster.Node) {
	ask := s.verdicts(t)
	filters, _, _ := s.taskHooks(t)
	for _, n := range g.Nodes {
		rejected, transient := ask(n)
		if rejected && !transient {
			continue
		}
		r := s.rejectTask(filters, t, n)
		if !rejected && r == nil {
			now = append(now, n)
		}
		if (r == nil || r.Cure.Transient()) && (!rejected || s.onlyHeld(t, n)) {
			ever = append(ever, n)
		}
	}
	return now, ever
}

// onlyHeld reports whether every shape-form filter that turns the node down does
// so for what others hold.
func (s *Session) onlyHeld(t *cluster.Task, n *cluster.Node) bool {
	for _, h := range s.hooks.shapePredicates {
		if h.shapes == nil || h.shapes(t.Shape) {
			if r := h.fn(t.Shape, n); r != nil && !r.Cure.Transient() {
				return false
			}
		}
	}
	return true
}

func (s *Session) rejectGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) *Rejection {
	for _, h := range s.hooks.groupPredicates {
		if r := h.fn(job, want, g, nodes); r != nil {
			r.Plugin = h.plugin
			return r
		}
	}
	return nil
}

func (s *Session) scoreGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) int64 {
	total := int64(0)
	for _, h := range s.hooks.groupOrders {
		total += s.points(h.plugin, h.weight, h.fn(job, want, g, nodes))
	}
	return total
}
