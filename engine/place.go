package engine

import (
	"errors"
	"fmt"
	"iter"

	"github.com/berth-project/berth/cluster"
)

// aim says what a statement tries to place.
type aim struct {
	minimumOnly bool         // place the minimum and no surplus, which has turns of its own
	growing     *cluster.Job // the job of which one surplus task is placed; nil: a minimum is placed
	target      int          // how many tasks of growing are placed if the turn succeeds
	quiet       bool         // failures are not explained: the attempt is one of many in a search
	// deferMissesAt is a version of the nodes. While the nodes have this version, a failure is
	// explained without the nearest misses, because collecting them is expensive; tellNearest
	// collects them later if the job stays refused. 0 means that they are collected at once.
	deferMissesAt uint64
}

// placer places jobs in a statement.
type placer struct {
	finder    *finder
	explainer *explainer
	shortage  shortage
	fault     *fault
	stmt      *Statement
	aim       aim
	searched  *int // steps that exact searches have used in this session
	sketches  bool // all placements will be undone, so that their decisions need no scores
}

// placer returns a placer that works in the statement, with the aim of the statement.
func (s *Session) placer(stmt *Statement) placer {
	return placer{finder: &s.finder, explainer: &s.explainer, shortage: s.shortage(stmt.aim.growing), fault: s.fault, stmt: stmt, aim: stmt.aim, searched: &s.searched}
}

// place implements Session.Place.
func (p *placer) place(job *cluster.Job) *Refusal {
	return p.placeChoices(job, func(int) bool { return true })
}

// explain sums up why no node in the scope accepts the task. A quiet placer returns an
// attempt without reasons.
func (p *placer) explain(alt *cluster.Alternative, t *cluster.Task, in *scope) *Attempt {
	if p.aim.quiet {
		return &Attempt{Task: unplaced(t)}
	}
	return p.explainer.explain(alt, t, in, p.aim.deferMissesAt)
}

// placeChoices is place, restricted to the choices for which may returns true. Its argument
// is the index of the first alternative of the choice.
func (p *placer) placeChoices(job *cluster.Job, may func(from int) bool) *Refusal {
	var attempts []Attempt
	for from, forms := range choices(job) {
		if !may(from) {
			continue
		}
		mark := p.stmt.Checkpoint()
		alt := &forms[0]
		var missing, surplus *Attempt
		if alt.Whole != nil {
			alt, missing = p.placeWhole(job, forms)
		} else {
			missing, surplus = p.placeAlternative(alt)
		}
		if missing == nil {
			if !canStart(alt) {
				p.stmt.hold(job, mark)
			}
			if surplus != nil {
				surplus.from, surplus.to = from, from+len(forms)
				return newRefusal(job, []Attempt{*surplus}, true)
			}
			return nil
		}
		p.stmt.Rollback(mark)
		missing.from, missing.to = from, from+len(forms)
		attempts = append(attempts, *missing)
		if p.fault.err != nil {
			break
		}
	}
	return newRefusal(job, attempts, false)
}

// choices yields the alternatives that Place tries in order, with the index of the first.
// Consecutive alternatives that each name a node group form one choice. If a job has placed
// tasks, the only choice is the alternative that these tasks have. An alternative that is
// marked Running is yielded only in that case.
func choices(job *cluster.Job) iter.Seq2[int, []cluster.Alternative] {
	return func(yield func(int, []cluster.Alternative) bool) {
		if c := job.Chosen; c >= 0 {
			yield(c, job.Alternatives[c:c+1])
			return
		}
		for from := 0; from < len(job.Alternatives) && !job.Alternatives[from].Running; {
			to := from + 1
			for namesGroup(&job.Alternatives[from]) && to < len(job.Alternatives) && namesGroup(&job.Alternatives[to]) {
				to++
			}
			if !yield(from, job.Alternatives[from:to]) {
				return
			}
			from = to
		}
	}
}

func namesGroup(alt *cluster.Alternative) bool { return alt.Whole != nil && alt.Whole.Only != nil }

// canStart reports whether the tasks that run, or can start at once, make up the minimum.
func canStart(alt *cluster.Alternative) bool {
	return alt.Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// placeAlternative places the alternative. It returns why the minimum could not be placed
// or, if the minimum is placed, why the surplus could not.
func (p *placer) placeAlternative(alt *cluster.Alternative) (missing, surplus *Attempt) {
	g := p.gang(alt, nil)
	missing, surplus = p.placeGang(alt, g)
	p.release(g)
	return missing, surplus
}

// release gives back the memory of a gang that is not used any more.
func (p *placer) release(g *gang) {
	if spare := p.stmt.clerk.spare; p.fault.err == nil && len(spare.gangs) < 2 { // after a failure, it is not sure what still refers to it
		*g = gang{}
		spare.gangs = append(spare.gangs, g)
	}
}

// placeGang is placeAlternative with the gang that was made for the alternative.
func (p *placer) placeGang(alt *cluster.Alternative, g *gang) (missing, surplus *Attempt) {
	if a := g.depleted(); a != nil {
		return a, nil
	}
	mark := p.stmt.Checkpoint()
	missing = g.arrange()
	for next := g; missing != nil && p.fault.err == nil && next.wanted != nil; {
		p.stmt.Rollback(mark)
		if next = next.withOtherSubgroups(); next == nil {
			break
		}
		if next.arrange() == nil {
			g, missing = next, nil
		}
	}
	if missing != nil && p.fault.err == nil {
		p.stmt.Rollback(mark)
		again := p.gang(alt, nil)
		if again.exact() {
			g = p.gang(alt, nil) // the minimum is placed: find out where surplus tasks may be placed
			missing = g.arrange()
		} else if again.unsure && missing == g.alone {
			missing.Never = false // another arrangement of the gang's own tasks might work
		}
		p.release(again)
	}
	if missing != nil {
		return missing, nil
	}
	switch {
	case p.aim.growing != nil && len(alt.Tasks) > 0 && alt.Tasks[0].Job == p.aim.growing:
		return nil, g.surplus(p.aim.target - p.aim.growing.Placed())
	case p.aim.minimumOnly:
		return nil, nil
	}
	return nil, g.surplus(len(g.left))
}

// placeTask finds the best node of the scope for the task and allocates the task there. It
// reports whether it did.
func (p *placer) placeTask(alt *cluster.Alternative, t *cluster.Task, in *scope) bool {
	// 1. Ask the hooks that need no node. They are the cheapest way to reject a task.
	if p.finder.before(t) != nil {
		return false
	}
	for {
		// 2. Find the best node: filters reject nodes, scores rank the rest.
		node := p.finder.best(t, in)
		if node == nil || p.fault.err != nil {
			return false
		}
		// 3. Choose devices of the node.
		d := p.decision(alt, t, node, in)
		claims, ok := p.finder.devices(t.Shape, node)
		if p.fault.err != nil {
			return false
		}
		if !ok {
			p.fault.unguarded(fmt.Errorf("the devices of node %s cannot hold task %s", node.Name, t.ID))
			return false
		}
		// 4. Allocate the task. If a Reserver rejects the node, try the next best node.
		d.Claims = claims
		if p.allocate(t, d, node) {
			return true
		}
		if p.fault.err != nil {
			return false
		}
	}
}

func (p *placer) decision(alt *cluster.Alternative, t *cluster.Task, n *cluster.Node, in *scope) Decision {
	if p.sketches {
		return Decision{Node: n.Name}
	}
	d := Decision{Node: n.Name, Alternative: alt.Name, Score: p.finder.score(t, n)}
	if p.explainer.all {
		d.Candidates = p.finder.candidates(t, in)
	}
	return d
}

// allocate allocates the task on a node that passed the filters. It reports false if a
// Reserver rejects the node, which is then excluded until the statement changes, or if the
// session has failed.
func (p *placer) allocate(t *cluster.Task, d Decision, n *cluster.Node) bool {
	err := p.stmt.allocate(t, d, n)
	if err == nil {
		return true
	}
	var why *unreserved
	if errors.As(err, &why) {
		p.finder.barred.bar(p.stmt, t, n, why)
	} else {
		p.fault.unguarded(err)
	}
	return false
}
