package cluster

import (
	"slices"
)

// State is what is known of a cluster. It changes by Apply or in a Transaction, and
// every change gives the nodes, jobs and queues that it touches a new version. It is
// not safe for concurrent use.
type State struct {
	nodes  []*Node // by slot; nil where a node was removed
	free   []int   // slots to reuse
	byName map[string]*Node
	sorted []*Node  // by name
	ranks  []int64  // by slot: in the order of names, with gaps
	born   []uint64 // by slot: the version its present node came with
	recent recency  // of nodes, by slot: also after a node is gone

	jobSlots     []*Job // by slot; nil where a job was removed
	freeJobs     []int  // slots to reuse
	recentJobs   recency
	queueSlots   []*Queue
	freeQueues   []int
	recentQueues recency

	groups   map[Key]*Group
	queues   map[string]*Queue
	jobs     map[string]*Job
	revision uint64 // grows when queues or budgets change
	// preemptible counts the tasks of preemptible jobs that are on a node, however they stand there.
	preemptible int
	classes     map[string][]*class // of these, by queue and the lowest priority first: what runs
	unified     int                 // nodes with unified memory
	tiers       [4]int              // queues, by rank of their tier
	// budgets are sorted by namespace and name.
	budgets []*Budget
	// pending are the jobs with tasks that are nowhere yet.
	pending   map[string]*Job
	sets      map[string]*replicas // by name
	excess    map[string]bool      // of these, those with more jobs than they should have
	retired   map[string]*Job
	torn      map[string]*Job // that run below their minimum
	nominated map[*Task]bool
	moving    map[*Task]bool       // that have a landing
	releasing []*Task              // in any order
	absent    map[string]*Node     // that are gone, or not known yet, and have tasks on them
	unseen    map[TaskRef]TaskSeen // of tasks that are not known yet
	jobsIn    map[string][]*Job    // by queue, known or not: the jobs that name it, in any order
	heirs     map[string][]string  // by queue, known or not: the queues that name it as their parent, by name
	passed    uint64               // version of queues when the clock was last moved
	avoiding  map[string]bool      // nodes that avoid shapes
	now       int64                // when the last session was opened
	shapes    map[string]*interned
	spelling  []byte // of the shape that was interned last: the room is used again
	idle      int    // shapes without a use

	unsettled []*Node // of which devices have to be chosen again for tasks that are counted
	journal   []record
	undoing   bool
	marks     int // that are held; without any, nothing is recorded

	terms    map[string]int // by product that queues have terms for: how many terms
	products []string       // of these, sorted
	kinds    map[kind]int   // devices that are not lost
	samples  []Device       // one of each kind, in order
}

// NewState returns an empty State with the default queue.
func NewState() *State {
	s := &State{
		byName:    map[string]*Node{},
		groups:    map[Key]*Group{},
		queues:    map[string]*Queue{},
		jobs:      map[string]*Job{},
		pending:   map[string]*Job{},
		sets:      map[string]*replicas{},
		excess:    map[string]bool{},
		retired:   map[string]*Job{},
		torn:      map[string]*Job{},
		classes:   map[string][]*class{},
		nominated: map[*Task]bool{},
		moving:    map[*Task]bool{},
		absent:    map[string]*Node{},
		jobsIn:    map[string][]*Job{},
		avoiding:  map[string]bool{},
		heirs:     map[string][]string{},
		unseen:    map[TaskRef]TaskSeen{},
		shapes:    map[string]*interned{},
		terms:     map[string]int{},
		kinds:     map[kind]int{},
	}
	s.seatQueue(&Queue{Name: DefaultQueue, Tier: TierStandard, Weight: 1}, nil)
	return s
}

// Version is the version of the most recent change.
func (s *State) Version() uint64 { return s.recent.version }

// Revision grows whenever a queue or a budget is given new terms.
func (s *State) Revision() uint64 { return s.revision }

// Preemptible is how many tasks of preemptible jobs are on nodes, at whatever stage.
func (s *State) Preemptible() int { return s.preemptible }

// Unified is how many nodes have unified memory.
func (s *State) Unified() int { return s.unified }

// Slots is one more than the highest slot ever used.
func (s *State) Slots() int { return len(s.nodes) }

// At is the node in the slot, nil if there is none.
func (s *State) At(slot int) *Node { return s.nodes[slot] }

// Rank orders slots by node name. Adding and removing nodes keeps the order of the others.
func (s *State) Rank(slot int) int64 { return s.ranks[slot] }

// Born is the version with which the slot's present node came.
func (s *State) Born(slot int) uint64 { return s.born[slot] }

// Ranks is Rank for every slot, for callers that compare many.
func (s *State) Ranks() []int64 { return s.ranks }

// Nodes are all nodes, by name.
func (s *State) Nodes() []*Node { return s.sorted }

// Node finds a node by name, nil if there is none.
func (s *State) Node(name string) *Node { return s.byName[name] }

// Changed visits the slots that changed after the version, most recent first,
// each once. A slot whose node was removed is visited too.
func (s *State) Changed(since uint64, visit func(slot int)) { s.recent.since(since, visit) }

func (s *State) insertNode(n *Node) {
	s.seat(n)
	s.insert(n)
	if g := s.join(n); g != nil {
		g.insert(n)
	}
	s.arise(n)
}

// seat gives the node a slot.
func (s *State) seat(n *Node) {
	if k := len(s.free); k > 0 {
		n.slot = s.free[k-1]
		s.free = s.free[:k-1]
		s.nodes[n.slot] = n
	} else {
		n.slot = len(s.nodes)
		s.nodes = append(s.nodes, n)
		s.ranks = append(s.ranks, 0)
		s.born = append(s.born, 0)
		s.recent.grow()
	}
	s.byName[n.Name] = n
	if len(n.Avoids) > 0 {
		s.avoiding[n.Name] = true
	}
}

// arise gives the new node its first version.
func (s *State) arise(n *Node) {
	s.touch(n)
	n.spec = n.version
	s.born[n.slot] = n.version
}

// deleteNode takes the node out of the tables.
func (s *State) deleteNode(n *Node) {
	s.leave(n)
	s.touch(n) // caches learn that the slot changed
	delete(s.byName, n.Name)
	delete(s.avoiding, n.Name)
	i, _ := slices.BinarySearchFunc(s.sorted, n.Name, byName)
	s.sorted = slices.Delete(s.sorted, i, i+1)
	s.nodes[n.slot] = nil
	s.free = append(s.free, n.slot)
}

// join counts what the node has and returns its group, which does not list it
// yet; nil without devices.
func (s *State) join(n *Node) *Group {
	s.countKinds(n, +1)
	if n.Unified {
		s.unified++
	}
	n.group = nil
	if k, ok := n.groupKey(); ok {
		if n.group = s.groups[k]; n.group == nil {
			n.group = &Group{Key: k}
			s.groups[k] = n.group
		}
	}
	return n.group
}

func (s *State) leave(n *Node) {
	s.countKinds(n, -1)
	if n.Unified {
		s.unified--
	}
	g := n.group
	if g == nil {
		return
	}
	g.remove(n)
	if len(g.Nodes) == 0 {
		delete(s.groups, g.Key)
	}
	n.group = nil
}

// Groups are all groups, in key order.
func (s *State) Groups() []*Group {
	out := make([]*Group, 0, len(s.groups))
	for _, g := range s.groups {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *Group) int { return a.Key.Compare(b.Key) })
	return out
}

// touch gives the node a new version. An absent node has no slot, and nothing
// looks at its version.
func (s *State) touch(n *Node) {
	if n.absent {
		return
	}
	s.recent.touch(n.slot)
	n.version = s.recent.version
}

// maxIdleShapes is how many shapes are remembered that no task has: what comes
// back finds its ranking again.
const maxIdleShapes = 1024

type interned struct {
	shape *Shape
	uses  int
}

// Intern returns the one Shape that spells like this one and counts the use.
func (s *State) Intern(shape Shape) *Shape { return s.intern(&shape) }

// intern is Intern; the shape given is copied where it is new.
func (s *State) intern(shape *Shape) *Shape {
	key := shape.appendKey(s.spelling[:0])
	s.spelling = key
	e := s.shapes[string(key)]
	switch {
	case e == nil:
		copied := *shape
		n := &copied.Need
		n.Products, n.Types, n.Selected = trim(n.Products), trim(n.Types), trim(n.Selected)
		copied.key = string(key)
		copied.ways = waysOf(&copied)
		e = &interned{shape: &copied}
		s.shapes[copied.key] = e
	case e.uses == 0:
		s.idle--
	}
	e.uses++
	return e.shape
}

// Drop takes back one use of an interned shape. Shapes without a use are
// forgotten when there are many.
func (s *State) Drop(shape *Shape) {
	e := s.shapes[shape.key]
	if e == nil || e.uses == 0 {
		return
	}
	if e.uses--; e.uses > 0 {
		return
	}
	if s.idle++; s.idle <= maxIdleShapes || s.marks > 0 || s.undoing { // an undo finds the shapes that it had
		return
	}
	for key, e := range s.shapes {
		if e.uses == 0 {
			delete(s.shapes, key)
		}
	}
	s.idle = 0
}
