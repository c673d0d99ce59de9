package cluster

// State is what the scheduler knows: nodes, queues, jobs, tasks, and which task holds
// what. It is changed by Apply or in a Transaction. Every change gives the nodes, jobs and
// queues that it affects a new version. A State is not safe for concurrent use.
type State struct {
	journal journal
	fleet   fleet
	roster  roster
	tree    tree
	classes classes
	sets    sets
	shapes  shapes
	demand  demand

	parameters parameters

	// Types that change several tables together.
	workload   workload
	booking    booking
	accounts   accounts
	taskStates taskStates
	specs      specs
	sightings  sightings
	inventory  inventory
}

// NewState returns an empty State with the default queue.
func NewState() *State {
	s := &State{}
	l := &s.journal
	s.fleet, s.roster, s.tree = newFleet(l), newRoster(l), newTree(l)
	s.classes = classes{byQueue: map[string][]*class{}}
	s.sets = sets{l, map[string]*replicas{}, map[string]bool{}}
	s.shapes = shapes{journal: l, known: map[string]*interned{}}
	s.demand, s.parameters = newDemand(l), parameters{l, map[string][]int64{}}
	s.connect()
	s.tree.enter(&Queue{Name: DefaultQueue, Tier: TierStandard, Weight: 1}, nil)
	return s
}

// connect gives the types that change several tables pointers to these tables.
func (s *State) connect() {
	s.workload = workload{&s.journal, &s.roster, &s.tree, &s.sets, &s.shapes, &s.fleet, nil}
	s.booking = booking{&s.fleet, &s.tree, &s.classes}
	s.accounts = accounts{&s.journal, &s.roster, &s.tree, &s.workload, &s.booking}
	s.taskStates = taskStates{&s.journal, &s.fleet, &s.roster, &s.shapes, &s.classes, &s.workload, &s.booking, &s.specs, nil}
	s.specs = specs{&s.journal, &s.fleet, &s.roster, &s.sets, &s.shapes, &s.classes, &s.workload, &s.booking, &s.taskStates, &s.sightings, &s.demand}
	s.sightings = sightings{&s.fleet, &s.roster, &s.taskStates, &s.specs}
	s.inventory = inventory{&s.journal, &s.fleet, &s.booking, &s.taskStates}
}

// Intern returns the one Shape of the State that equals the given one, and counts a use
// of it. A caller that does not need the Shape any more calls Drop.
func (s *State) Intern(shape Shape) *Shape { return s.shapes.intern(&shape) }

// Drop removes one use of an interned shape. A shape without a use may be removed from
// the State.
func (s *State) Drop(shape *Shape) { s.shapes.drop(shape) }
