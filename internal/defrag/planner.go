package defrag

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fragmentation"
)

// planner makes one plan. It changes the State as the moves do that it tries and accepts.
type planner struct {
	engine   *engine.Engine
	state    *cluster.State
	view     cluster.View
	options  Options
	plan     *Plan
	workload fragmentation.Workload
	gauges   []gauge // by slot of the node
	total    gauge   // their sum
	room     fragmentation.Node
	// generations counts by slot how often accepted moves have changed the node.
	generations []int
	moved       map[*cluster.Task]bool // tasks of accepted moves; no task moves twice
	homeless    map[*cluster.Task]bool // tasks that no other node could take when they were tried last
	steps       int
}

// gauge measures one node, or several.
type gauge struct {
	freeDevices, freeNodes int64
	freeNodeDevices        int64 // devices of free nodes
	unusable               int64 // in the unit of fragmentation.Workload.Of
}

func (g *gauge) add(o gauge, by int64) {
	g.freeDevices += by * o.freeDevices
	g.freeNodes += by * o.freeNodes
	g.freeNodeDevices += by * o.freeNodeDevices
	g.unusable += by * o.unusable
}

// measure returns the gauge of a node. A node that takes no tasks has nothing free.
func (p *planner) measure(n *cluster.Node) (g gauge) {
	if n.Closed() || len(n.Devices) == 0 {
		return gauge{}
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && d.Idle() && d.Use.Milli == 0 {
			g.freeDevices++
		}
	}
	if int(g.freeDevices) == len(n.Devices) {
		g.freeNodes, g.freeNodeDevices = 1, g.freeDevices
	}
	p.room.Read(n)
	g.unusable = p.workload.Of(&p.room)
	return g
}

// measureAll measures all nodes.
func (p *planner) measureAll() {
	p.total = gauge{}
	for _, n := range p.view.Nodes() {
		for n.Slot() >= len(p.gauges) {
			p.gauges, p.generations = append(p.gauges, gauge{}), append(p.generations, 0)
		}
		p.gauges[n.Slot()] = p.measure(n)
		p.total.add(p.gauges[n.Slot()], 1)
	}
}

// remeasure measures the node again.
func (p *planner) remeasure(n *cluster.Node) {
	p.total.add(p.gauges[n.Slot()], -1)
	p.gauges[n.Slot()] = p.measure(n)
	p.total.add(p.gauges[n.Slot()], 1)
}

func (p *planner) sums() Sums {
	return Sums{
		FreeDevices: int(p.total.freeDevices), FreeNodes: int(p.total.freeNodes),
		Pending: len(p.view.Pending()), Unusable: p.total.unusable / fragmentation.Unit,
	}
}

// session opens a session in which room is made only by moves, calls do, and closes it.
func (p *planner) session(do func(*engine.Session, *engine.Statement) error) error {
	s := p.engine.Open(p.state, engine.Options{Now: p.options.Now, MovesOnly: true, Record: true})
	err := do(s, s.Begin())
	return errors.Join(err, engine.NewMover(s).Err(), s.Close())
}

// move moves the task in the State to the best node of those for which may returns true, as if it had
// stopped and started again. It returns nil if the task cannot move.
func (p *planner) move(t *cluster.Task, may func(*cluster.Node) bool) (*Move, error) {
	p.steps++
	m := &Move{Task: t.Ref(), From: t.Node.Name, FromClaims: slices.Clone(t.Claims)}
	if t.Started > 0 && t.Started < p.options.Now {
		m.Ran = p.options.Now - t.Started
	}
	var to *cluster.Node
	var claims []cluster.Claim
	err := p.session(func(s *engine.Session, stmt *engine.Statement) error {
		if p.moved[t] {
			stmt.Discard()
			return nil
		}
		var kept *engine.Protector
		if to, kept = engine.NewMover(s).Move(stmt, t, func(n *cluster.Node) bool { return !isReleasing(n) && (may == nil || may(n)) }); to == nil {
			p.homeless[t] = kept == nil
			stmt.Discard()
			return nil
		}
		claims = slices.Clone(t.Landing().Claims)
		stmt.Commit()
		m.Changes = slices.Clone(s.Changes())
		return nil
	})
	if err != nil || to == nil {
		return nil, err
	}
	m.To, m.Claims = to.Name, claims
	facts := []cluster.Change{cluster.TaskSeen{Task: m.Task}, cluster.SeenOn(t, to, claims, p.options.Now)}
	m.Changes = append(m.Changes, facts...)
	return m, cmp.Or(p.state.Apply(facts[0]), p.state.Apply(facts[1]))
}

// only returns a function that returns true for the node.
func only(node *cluster.Node) func(*cluster.Node) bool {
	return func(n *cluster.Node) bool { return n == node }
}

// isReleasing reports whether a task on the node has been evicted or deleted and still holds its room.
func isReleasing(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return t.Status == cluster.Releasing })
}

// touched returns the nodes of the moves, each once.
func touched(s *cluster.State, moves ...Move) []*cluster.Node {
	var out []*cluster.Node
	for i := range moves {
		for _, name := range [...]string{moves[i].From, moves[i].To} {
			if n := s.Node(name); n != nil && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// accept adds the move, which was carried out in the State, to the plan.
func (p *planner) accept(m *Move) {
	for _, n := range touched(p.state, *m) {
		p.remeasure(n)
		p.generations[n.Slot()]++
	}
	m.After = p.sums()
	p.moved[p.state.Task(m.Task)] = true
	p.plan.Moves = append(p.plan.Moves, *m)
}

// repeat makes the moves again, each to the same node, and adds them to the plan. It reports whether
// all of them can be made.
func (p *planner) repeat(moves []Move) (bool, error) {
	for i := range moves {
		m, err := p.move(p.state.Task(moves[i].Task), only(p.state.Node(moves[i].To)))
		if m == nil || err != nil {
			return false, err
		}
		m.For = moves[i].For
		p.accept(m)
	}
	return true, nil
}

// forget removes the moves from the index on, which are undone in the State, from the plan.
func (p *planner) forget(from int) {
	undone := p.plan.Moves[from:]
	for _, n := range touched(p.state, undone...) {
		p.remeasure(n)
		p.generations[n.Slot()]++
	}
	for i := range undone {
		delete(p.moved, p.state.Task(undone[i].Task))
	}
	p.plan.Moves = p.plan.Moves[:from]
}

// countStays counts the tasks that ran before and did not move, by the reason for which they cannot.
func (p *planner) countStays() error {
	started := map[string]bool{}
	for _, s := range p.plan.Starts {
		started[s.Job] = true
	}
	return p.session(func(s *engine.Session, stmt *engine.Statement) error {
		defer stmt.Discard()
		mover := engine.NewMover(s)
		for _, n := range p.view.Nodes() {
			for _, t := range n.Tasks {
				if !t.Runs() || started[t.Job.ID] {
					continue
				}
				p.plan.Tasks++
				kept := mover.Protects(t)
				switch {
				case p.moved[t]:
				case kept != nil:
					p.plan.stays(kept.Reason, t)
				case p.homeless[t]:
					p.plan.stays(NoOtherPlace, t)
				}
			}
		}
		return nil
	})
}

// stays counts a task that stays.
func (p *Plan) stays(why engine.Reason, t *cluster.Task) {
	i := slices.IndexFunc(p.Stays, func(s Stay) bool { return s.Reason == why })
	if i < 0 {
		i = len(p.Stays)
		p.Stays = append(p.Stays, Stay{Reason: why, First: t.Ref()})
	}
	p.Stays[i].Tasks++
}
