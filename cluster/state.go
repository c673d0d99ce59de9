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

// Intern returns the one Shape that spells like this one and counts the use.
func (s *State) Intern(shape Shape) *Shape { return s.shapes.intern(&shape) }

// Drop takes back one use of an interned shape. Shapes without a use are
// forgotten when there are many.
func (s *State) Drop(shape *Shape) { s.shapes.drop(shape) }
