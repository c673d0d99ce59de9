package cluster

// State is what is known of a cluster. It changes by Apply or in a Transaction, and
// every change gives the nodes, jobs and queues that it touches a new version. It is
// not safe for concurrent use.
type State struct {
	journal journal
	fleet   fleet
	roster  roster
	tree    tree
	classes classes
	sets    sets
	shapes  shapes

	// What changes several tables.
	workload  workload
	booking   booking
	accounts  accounts
	standings standings
	specs     specs
	sightings sightings
	inventory inventory
}

// NewState returns an empty State with the default queue.
func NewState() *State {
	s := &State{}
	l := &s.journal
	s.fleet, s.roster, s.tree = newFleet(l), newRoster(l), newTree(l)
	s.classes = classes{byQueue: map[string][]*class{}}
	s.sets = sets{l, map[string]*replicas{}, map[string]bool{}}
	s.shapes = shapes{journal: l, known: map[string]*interned{}}
	s.connect()
	s.tree.seat(&Queue{Name: DefaultQueue, Tier: TierStandard, Weight: 1}, nil)
	return s
}

// connect gives what changes several tables the tables that it works on.
func (s *State) connect() {
	s.workload = workload{&s.journal, &s.roster, &s.tree, &s.sets, &s.shapes}
	s.booking = booking{&s.fleet, &s.tree, &s.classes}
	s.accounts = accounts{&s.journal, &s.roster, &s.tree, &s.workload, &s.booking}
	s.standings = standings{&s.journal, &s.fleet, &s.roster, &s.shapes, &s.classes, &s.workload, &s.booking, &s.specs, nil}
	s.specs = specs{&s.journal, &s.fleet, &s.roster, &s.sets, &s.shapes, &s.classes, &s.workload, &s.booking, &s.standings, &s.sightings}
	s.sightings = sightings{&s.fleet, &s.roster, &s.standings, &s.specs}
	s.inventory = inventory{&s.journal, &s.fleet, &s.booking, &s.standings}
}

// Version is the version of the most recent change.
func (s *State) Version() uint64 { return s.fleet.slots.version }

// Revision grows whenever a queue or a budget is given new terms.
func (s *State) Revision() uint64 { return s.tree.revision }

// Preemptible is how many tasks of preemptible jobs are on nodes, at whatever stage.
func (s *State) Preemptible() int { return s.classes.preemptible }

// Unified is how many nodes have unified memory.
func (s *State) Unified() int { return s.fleet.unified }

// Slots is one more than the highest slot ever used.
func (s *State) Slots() int { return len(s.fleet.slots.at) }

// At is the node in the slot, nil if there is none.
func (s *State) At(slot int) *Node { return s.fleet.slots.at[slot] }

// Rank orders slots by node name. Adding and removing nodes keeps the order of the others.
func (s *State) Rank(slot int) int64 { return s.fleet.ranks[slot] }

// Born is the version with which the slot's present node came.
func (s *State) Born(slot int) uint64 { return s.fleet.born[slot] }

// Ranks is Rank for every slot, for callers that compare many.
func (s *State) Ranks() []int64 { return s.fleet.ranks }

// Nodes are all nodes, by name.
func (s *State) Nodes() []*Node { return s.fleet.sorted }

// Node finds a node by name, nil if there is none.
func (s *State) Node(name string) *Node { return s.fleet.byName[name] }

// Changed visits the slots that changed after the version, most recent first,
// each once. A slot whose node was removed is visited too.
func (s *State) Changed(since uint64, visit func(slot int)) { s.fleet.slots.since(since, visit) }

// Groups are all groups, in key order.
func (s *State) Groups() []*Group { return s.fleet.Groups() }

// Intern returns the one Shape that spells like this one and counts the use.
func (s *State) Intern(shape Shape) *Shape { return s.shapes.intern(&shape) }

// Drop takes back one use of an interned shape. Shapes without a use are
// forgotten when there are many.
func (s *State) Drop(shape *Shape) { s.shapes.drop(shape) }
