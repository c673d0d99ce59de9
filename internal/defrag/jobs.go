package defrag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/sim"
)

// placePending makes room for pending jobs, in the order of their turns. A job that fits holds its
// room from then on.
func (p *planner) placePending() error {
	var jobs []*cluster.Job
	if j := p.view.Job(p.options.Job); j != nil {
		jobs = append(jobs, j)
	} else if err := p.session(func(s *engine.Session, stmt *engine.Statement) error {
		defer stmt.Discard()
		jobs = s.Order(p.view.Pending())
		return nil
	}); err != nil {
		return err
	}
	refused := map[string]int{} // the index in Refused, by kind of job, since the State changed last
	for _, j := range jobs {
		if p.steps >= maxSteps {
			return nil
		}
		if !p.view.IsPending(j) {
			continue
		}
		kind := kindOf(j)
		if i, known := refused[kind]; known {
			p.plan.Refused[i].Alike = append(p.plan.Refused[i].Alike, j.ID)
			continue
		}
		why, err := p.placeJob(j)
		switch {
		case err != nil:
			return err
		case why != nil:
			refused[kind] = len(p.plan.Refused)
			p.plan.Refused = append(p.plan.Refused, *why)
		default:
			clear(refused)
		}
		if p.options.Progress != nil {
			p.options.Progress(len(p.plan.Moves), p.steps)
		}
	}
	return nil
}

// kindOf returns a text that is equal for jobs for which the same moves make room.
func kindOf(j *cluster.Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %d %v %v %q", j.Queue, j.Namespace, j.Priority, j.Labels, j.Affinity, j.Set.Name)
	for i := range j.Alternatives {
		a := &j.Alternatives[i]
		fmt.Fprintf(&b, "|%d %+v %+v %v", a.Min, a.Topology, a.Subgroups, a.Whole)
		for _, t := range a.Tasks {
			fmt.Fprintf(&b, " %p %d", t.Shape, t.Status)
		}
	}
	return b.String()
}

// placeJob places the job if it fits, or else makes room for it by moves. It returns why it cannot;
// the State is then as before.
func (p *planner) placeJob(j *cluster.Job) (*Refused, error) {
	mark := p.state.Mark()
	defer p.state.Release(mark)
	refusal, err := p.place(j)
	if refusal == nil || err != nil {
		return nil, err
	}
	targets, err := p.targets(j, refusal)
	if err != nil {
		return nil, err
	}
	why := &Refused{Job: j.ID, Refusal: refusal}
	if len(targets) == 0 {
		return why, nil
	}
	if len(targets) > p.options.MostMoves-len(p.plan.Moves) {
		why.Moves = len(targets)
		return why, nil
	}
	from := len(p.plan.Moves)
	made, err := p.inOrder(j, targets)
	if err != nil {
		return nil, err
	}
	if made {
		refusal, err = p.place(j)
	}
	if !made || refusal != nil || err != nil {
		p.state.Undo(mark)
		p.forget(from)
		why.Unordered = true
		return why, err
	}
	return nil, nil
}

// place places the job on free room, if it fits there, and reports that it runs. It returns why it does
// not fit.
func (p *planner) place(j *cluster.Job) (*engine.Refusal, error) {
	var refusal *engine.Refusal
	var decisions []engine.Decision
	err := p.session(func(s *engine.Session, stmt *engine.Statement) error {
		p.steps++
		if refusal = s.Place(stmt, j); refusal != nil && !refusal.Surplus {
			stmt.Discard()
			return nil
		}
		refusal, decisions = nil, stmt.Commit()
		return nil
	})
	if err != nil || refusal != nil {
		return refusal, err
	}
	p.plan.Starts = append(p.plan.Starts, Start{Job: j.ID, After: len(p.plan.Moves)})
	if err := sim.ConfirmBindings(p.state, decisions); err != nil {
		return nil, err
	}
	for _, d := range decisions {
		p.remeasure(p.state.Node(d.Node))
	}
	if n := len(p.plan.Moves); n > 0 {
		p.plan.Moves[n-1].After = p.sums()
	}
	return nil, nil
}

// target is a task that the engine would move, and the node to which it would move.
type target struct {
	task *cluster.Task
	to   *cluster.Node
}

// targets returns the cheapest moves that make room for the job, as a session of the engine would make
// them all at once. It changes nothing.
func (p *planner) targets(j *cluster.Job, refusal *engine.Refusal) (out []target, err error) {
	mark := p.state.Mark()
	defer p.state.Release(mark)
	defer p.state.Undo(mark)
	before := p.view.Moving() // tasks that move already
	return out, p.session(func(s *engine.Session, stmt *engine.Statement) error {
		p.steps += 60 // about as long as so many moves
		if left := s.MakeRoom(stmt, j, refusal); left == nil || left.Surplus {
			for _, t := range p.view.Moving() {
				if !slices.Contains(before, t) {
					out = append(out, target{t, t.Landing().Node})
				}
			}
			if slices.ContainsFunc(out, func(t target) bool { return p.moved[t.task] }) {
				out = nil
			}
		}
		stmt.Discard()
		return nil
	})
}

// inOrder carries the moves out one after the other, each when its room is free. If the node that the
// engine chose has no room yet, another node may take the task, but none that a task leaves. It
// reports whether all moves were carried out.
func (p *planner) inOrder(j *cluster.Job, targets []target) (bool, error) {
	leaves := map[*cluster.Node]bool{}
	for _, t := range targets {
		leaves[t.task.Node] = true
	}
	for _, exact := range [...]bool{true, false} {
		for progress := true; progress && len(targets) > 0; {
			var rest []target
			for _, t := range targets {
				may := only(t.to)
				if !exact {
					may = func(n *cluster.Node) bool { return !leaves[n] }
				}
				m, err := p.move(t.task, may)
				switch {
				case err != nil:
					return false, err
				case m == nil:
					rest = append(rest, t)
				default:
					m.For = j.ID
					p.accept(m)
				}
			}
			progress = len(rest) < len(targets)
			targets = rest
		}
	}
	return len(targets) == 0, nil
}
