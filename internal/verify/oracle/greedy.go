package oracle

import "github.com/berth-project/berth/cluster"

// greedy places one task after the other and never undoes a choice. Cases of Allocate are
// relevant if that does not find the placement that the job needs.
type greedy struct {
	placement *placement
}

// findsMinimum reports whether first fit or best fit finds a placement of the form's minimum.
// The placement is not changed.
func (g *greedy) findsMinimum(f *form) bool {
	return g.placesMinimum(f, false) || g.placesMinimum(f, true)
}

// placesMinimum reports whether placing the pending tasks of the form, in order, makes its
// minimum. The placement is not changed.
func (g *greedy) placesMinimum(f *form, tightest bool) bool {
	var placed taskSet
	for _, t := range f.tasks {
		if g.placement.isPending(t) && g.place(t, tightest) {
			placed |= t.bit()
		}
	}
	found := g.placement.hasMinimum(f)
	g.placement.removeSet(placed)
	return found
}

// place places the task on the first node with room or, if tightest is set, on the node with
// the least room and on its fullest devices. It reports whether there is such a node.
func (g *greedy) place(t *task, tightest bool) bool {
	room := g.placement.room
	if g.placement.queues.violation(t.form, t.amounts) != "" {
		return false
	}
	best := location{node: -1}
	for n := range room.nodes {
		if !g.placement.inDomain(t, n) || best.node >= 0 && (!tightest || room.freeOfDevices(n) >= room.freeOfDevices(best.node)) {
			continue
		}
		room.choices(t, n, func(claims []cluster.Claim) bool {
			if best.node != n || room.isFuller(n, claims, best.claims) {
				best = location{node: n, claims: claims}
			}
			return tightest
		})
	}
	if best.node < 0 {
		return false
	}
	g.placement.place(t, best)
	return true
}
