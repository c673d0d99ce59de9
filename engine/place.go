package engine

import (
	"errors"
	"fmt"
	"iter"

	"github.com/berth-project/berth/cluster"
)

// aim is what jobs are placed for.
type aim struct {
	minimumOnly   bool         // jobs get their minimum: what is beyond it has turns of its own
	growing       *cluster.Job // whose turn is for a task beyond its minimum; nil: it is for a minimum
	target        int          // how many of its tasks are placed then
	quiet         bool         // what fails is only tried, and needs no explanation
	deferMissesAt uint64       // at this version of the nodes, nearest misses are put off; 0: they are not
}

// placer places jobs in a statement.
type placer struct {
	finder    *finder
	explainer *explainer
	shortage  shortage
	fault     *fault
	stmt      *Statement
	aim       aim
	searched  *int // steps that exact searches took in this session
}

// placer places jobs in the statement, for what the statement is for.
func (s *Session) placer(stmt *Statement) *placer {
	return &placer{finder: s.finder, explainer: s.explainer, shortage: s.shortage(stmt.aim.growing), fault: s.fault, stmt: stmt, aim: stmt.aim, searched: &s.searched}
}

// place is Session.Place.
func (p *placer) place(job *cluster.Job) *Refusal {
	return p.placeChoices(job, func(int) bool { return true })
}

// explain sums up why no node would take the task, if that is of interest.
func (p *placer) explain(alt *cluster.Alternative, t *cluster.Task, in *scope) *Attempt {
	if p.aim.quiet {
		return &Attempt{Task: unplaced(t)}
	}
	return p.explainer.explain(alt, t, in, p.aim.deferMissesAt)
}

// placeAs is Place with some of the choices, which begin with these alternatives.
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
			if !startable(alt) {
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

// choices yields what is tried one after the other: alternatives, but those next
// to each other that each name their group are one choice. Of a job that runs in
// part the rest follows in the same form, and a form that only runs is no choice.
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

// startable reports whether the tasks that can start at once or run already make the minimum.
func startable(alt *cluster.Alternative) bool {
	return alt.Enough(func(t *cluster.Task) bool { return t.Runs() })
}

// placeAlternative returns what kept the minimum from being placed, or else what
// kept the surplus.
func (p *placer) placeAlternative(alt *cluster.Alternative) (missing, surplus *Attempt) {
	g := p.gang(alt, nil)
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
			g = p.gang(alt, nil) // the minimum is placed: find out where the rest may go
			missing = g.arrange()
		} else if again.unsure && missing == g.alone {
			missing.Never = false // perhaps it is only badly arranged
		}
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

// placeTask finds the task the best of all nodes, or of the scope, and allocates it there.
func (p *placer) placeTask(alt *cluster.Alternative, t *cluster.Task, in *scope) bool {
	// 1. What needs no node is asked first: it is the cheapest no.
	if p.finder.before(t) != nil {
		return false
	}
	for {
		// 2. The best node, by filter and score.
		node := p.finder.best(t, in)
		if node == nil || p.fault.err != nil {
			return false
		}
		// 3. Devices on it.
		d := p.decision(alt, t, node, in)
		claims, ok := p.finder.devices(t.Shape, node)
		if p.fault.err != nil {
			return false
		}
		if !ok {
			p.fault.unguarded(fmt.Errorf("the devices of node %s cannot hold task %s", node.Name, t.ID))
			return false
		}
		// 4. The task is allocated there. Where a Reserver turns the node down, the next
		// best one follows.
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
	d := Decision{Node: n.Name, Alternative: alt.Name, Score: p.finder.score(t, n)}
	if p.explainer.all {
		d.Candidates = p.finder.candidates(t, in)
	}
	return d
}

// allocate allocates the task where the filters let it pass. It reports false where a
// Reserver turns the node down, which is not tried again then, and where the session is void.
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
