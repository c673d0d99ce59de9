package defrag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fragmentation"
	"github.com/berth-project/berth/internal/heap"
)

// maxTogether is how many tasks a candidate has at most.
const maxTogether = 64

// gain is what the moves of a candidate gain. The first number that differs per move decides.
type gain struct {
	first, second int64
	moves         int
}

// compare returns a positive number if g is more than o, per move.
func (g gain) compare(o gain) int {
	return cmp.Or(
		cmp.Compare(g.first*int64(o.moves), o.first*int64(g.moves)),
		cmp.Compare(g.second*int64(o.moves), o.second*int64(g.moves)),
	)
}

// isGain reports whether something is gained and nothing is lost of what counts more.
func (g gain) isGain() bool { return g.first > 0 || g.first == 0 && g.second > 0 }

// worth returns the gain of a difference of gauges.
func (g Goal) worth(d gauge, moves int) gain {
	switch g {
	case Devices:
		return gain{d.freeDevices, -d.unusable, moves}
	case Nodes:
		return gain{d.freeNodeDevices, -d.unusable, moves}
	}
	return gain{-d.unusable, 0, moves}
}

// candidate is tasks of one node that may be moved one after the other.
type candidate struct {
	tasks      []*cluster.Task
	node       *cluster.Node
	generation int  // of the node when the candidate was made
	bound      gain // the most that the moves may gain, or what they gained when they were tried
	priority   int32
	youngest   int64
	number     int // decides between equals
}

// before orders candidates: those that gain most per move first, then those of the lowest priority,
// then those that have run for the shortest time.
func (c *candidate) before(o *candidate) bool {
	return cmp.Or(o.bound.compare(c.bound), cmp.Compare(c.priority, o.priority), cmp.Compare(o.youngest, c.youngest), cmp.Compare(c.number, o.number)) < 0
}

// search is a search for moves that serve the goals Devices, Nodes and Room.
type search struct {
	*planner
	goal       Goal
	candidates heap.Heap[*candidate]
	known      []int // by slot: the generation of the node whose candidates were added; -1: none
	number     int
}

func (p *planner) newSearch(g Goal) *search {
	s := &search{planner: p, goal: g, known: make([]int, len(p.gauges))}
	for i := range s.known {
		s.known[i] = -1
	}
	s.candidates.Before = (*candidate).before
	return s
}

// run moves tasks as long as that gains something, and at most the number of tasks. The candidate that
// may gain most per move is tried first. If it gains less than the next one may, it is put back with
// what it gained. The search ends after the number of failures in a row: candidates of which nothing
// was gained.
func (s *search) run(most, failures int) error {
	for _, n := range s.view.Nodes() {
		s.add(n)
	}
	failed := 0
	for from := len(s.plan.Moves); len(s.candidates.Items) > 0 && s.steps < maxSteps && failed < failures; {
		left := most - (len(s.plan.Moves) - from)
		if left <= 0 {
			return nil
		}
		c := s.candidates.Pop()
		if c.generation != s.generations[c.node.Slot()] || len(c.tasks) > left {
			continue
		}
		if s.options.Progress != nil && s.steps%64 == 0 {
			s.options.Progress(len(s.plan.Moves), s.steps)
		}
		gains, err := s.try(c)
		if err != nil {
			return err
		}
		if failed++; gains {
			failed = 0
		}
	}
	return nil
}

// try carries the candidate out. It keeps the moves if no other candidate may gain more. It reports
// whether the candidate gains something.
func (s *search) try(c *candidate) (gains bool, err error) {
	mark := s.state.Mark()
	moves, err := s.carryOut(c.tasks, c.node)
	if err != nil {
		return false, err
	}
	keep := false
	if moves != nil {
		var change gauge
		for _, n := range touched(s.state, moves...) {
			change.add(s.measure(n), 1)
			change.add(s.gauges[n.Slot()], -1)
		}
		c.bound = s.goal.worth(change, len(moves))
		gains = c.bound.isGain()
		keep = gains && (len(s.candidates.Items) == 0 || c.bound.compare(s.candidates.Items[0].bound) >= 0)
		if gains && !keep {
			s.candidates.Push(c)
		}
	}
	if !keep || len(moves) > 1 {
		s.state.Undo(mark)
	}
	s.state.Release(mark)
	switch {
	case !keep:
		return gains, nil
	case len(moves) == 1:
		s.accept(&moves[0])
	default: // again, so that each move is measured
		if ok, err := s.repeat(moves); !ok || err != nil {
			return false, errors.Join(err, fmt.Errorf("defrag: the moves from node %s were made once and cannot be made again", c.node.Name))
		}
	}
	for _, n := range touched(s.state, moves...) {
		s.add(n)
	}
	return true, nil
}

// carryOut moves the tasks away from the node, one after the other. It returns nil if one of them
// cannot move.
func (s *search) carryOut(tasks []*cluster.Task, from *cluster.Node) ([]Move, error) {
	var out []Move
	for _, t := range tasks {
		m, err := s.move(t, s.accepts(from))
		if m == nil || err != nil {
			return nil, err
		}
		out = append(out, *m)
	}
	return out, nil
}

// accepts returns which nodes may take the tasks: for the goal Nodes, those that are not free.
func (s *search) accepts(from *cluster.Node) func(*cluster.Node) bool {
	return func(n *cluster.Node) bool {
		return n != from && (s.goal != Nodes || s.gauges[n.Slot()].freeNodes == 0)
	}
}

// add adds the candidates of the node, if the node has changed since they were added last.
func (s *search) add(n *cluster.Node) {
	if s.known[n.Slot()] == s.generations[n.Slot()] || n.Closed() || len(n.Devices) == 0 {
		return
	}
	s.known[n.Slot()] = s.generations[n.Slot()]
	var single, holders []*cluster.Task // those that may move, and those that hold devices
	stuck := false
	for _, t := range n.Tasks {
		movable := t.Runs() && t.Job.Preemptible && !s.moved[t]
		if movable {
			single = append(single, t)
		}
		if len(t.Claims) > 0 {
			holders, stuck = append(holders, t), stuck || !movable
		}
	}
	if s.goal == Nodes {
		if !stuck {
			s.propose(n, holders)
		}
		return
	}
	if s.goal == Room {
		for _, t := range single {
			s.propose(n, []*cluster.Task{t})
		}
		if !stuck && len(holders) > 1 {
			s.propose(n, holders)
		}
	}
	for i := range n.Devices {
		parts := slices.DeleteFunc(slices.Clone(single), func(t *cluster.Task) bool {
			return !slices.ContainsFunc(t.Claims, func(c cluster.Claim) bool { return c.Device == i && c.Milli < cluster.Whole })
		})
		if len(parts) > 1 || s.goal == Devices {
			s.propose(n, parts)
		}
	}
}

// propose adds the tasks as a candidate if moving them may gain something.
func (s *search) propose(n *cluster.Node, tasks []*cluster.Task) {
	if len(tasks) == 0 || len(tasks) > maxTogether {
		return
	}
	c := &candidate{tasks: tasks, node: n, generation: s.generations[n.Slot()], bound: s.bound(n, tasks), number: s.number}
	s.number++
	for _, t := range tasks {
		c.priority, c.youngest = max(c.priority, t.Job.Priority), max(c.youngest, t.Started)
	}
	if c.bound.isGain() {
		s.candidates.Push(c)
	}
}

// bound returns the most that it may gain to move the tasks: what the node gains, and the best case
// for the nodes that take them, in which they fill room that is of no use to any other task.
func (s *search) bound(n *cluster.Node, tasks []*cluster.Task) gain {
	x := &s.room
	x.Read(n)
	free := make([]bool, len(n.Devices))
	for i := range n.Devices {
		free[i] = n.Devices[i].Idle()
	}
	var after gauge
	for _, t := range tasks {
		x.CPU += t.Held().Resources.Of(cluster.CPU)
		for _, c := range t.Claims {
			x.Devices[c.Device].Free += c.Milli
			free[c.Device] = x.Devices[c.Device].Free == cluster.Whole
			after.unusable -= int64(c.Milli) * fragmentation.Unit
		}
	}
	for _, f := range free {
		if f {
			after.freeDevices++
		}
	}
	if int(after.freeDevices) == len(n.Devices) {
		after.freeNodeDevices = after.freeDevices
	}
	after.unusable += s.workload.Of(x)
	after.add(s.gauges[n.Slot()], -1)
	return s.goal.worth(after, len(tasks))
}
