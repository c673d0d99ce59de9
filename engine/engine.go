package engine

import "github.com/berth-project/berth/cluster"

// Engine is a profile made ready: its plugins, and what it remembers of shapes
// from session to session. It serves one State at a time and is not safe for
// concurrent use.
type Engine struct {
	registry *Registry
	profile  Profile
	plugins  []weighted
	index    *index
	backlog  *backlog // of patient sessions; nil before the first
	idle     idleDevices
	swept    swept
	events   int // of the last session that had any
	// observers are those of the last session.
	observers []hook[Observer]
	unasked   []Unasked
}

// swept is up to where gangs were looked at that may be below their minimum.
type swept struct {
	view cluster.View
	jobs uint64
}

// New builds the profile's plugins.
func New(r *Registry, p Profile) (*Engine, error) {
	plugins, err := r.build(p)
	if err != nil {
		return nil, err
	}
	return &Engine{registry: r, profile: p, plugins: plugins, index: newIndex()}, nil
}

// Unasked lists the hooks of the last session that can never be asked; see Hooks.Unasked.
func (e *Engine) Unasked() []Unasked { return e.unasked }

// Another builds an engine of the same profile that remembers nothing, for another State.
func (e *Engine) Another() (*Engine, error) { return New(e.registry, e.profile) }

// Options are what a session gets from outside, beside the State.
type Options struct {
	// Now is the time, in nanoseconds. It decides when holds and back-offs end, since
	// when a gang is torn, and what hooks make of time; nothing else knows a clock.
	Now    int64
	Search Search // how nodes are found; tests use Twin
	// Hold is how long room is held for a nominated task or a landing, in
	// nanoseconds; 0: for as long as its node can keep it.
	Hold int64
	// Patient leaves jobs alone that were refused before, until waiting is over or
	// something changed that may help them.
	Patient bool
	// Record lists in the outcome what the session did to the State, as changes.
	Record bool
	// Timings, where given, measures how long hooks take.
	Timings *Timings
	// Explain keeps every candidate of every decision, and every miss of every refusal.
	Explain bool
}

// Search is how the best node is found. All ways give the same answer.
type Search uint8

// The ways to search.
const (
	Indexed Search = iota // remember rankings, look again only at what changed
	Scan                  // judge every node every time: slow, and too simple to be wrong
	Twin                  // do both, and fail the session where they differ
)

// Open starts a session: plugins register their hooks.
func (e *Engine) Open(state *cluster.State, o Options) *Session {
	view := state.View()
	s := &Session{View: view, Now: o.Now, engine: e, options: o, fault: &fault{}}
	s.Hooks = &Hooks{fault: s.fault, publish: e.index.publish, makeRoom: s.MakeRoom}
	s.finder = &finder{view: view, hooks: s.Hooks, index: e.index, search: o.Search, fault: s.fault}
	s.accounts = &accounts{view: view, idle: &e.idle}
	s.explainer = &explainer{finder: s.finder, all: o.Explain}
	s.clerk = &clerk{state: state, view: view, now: o.Now, hooks: s.Hooks, accounts: s.accounts, fault: s.fault, recording: o.Record, explain: o.Explain, lastEvents: &e.events}
	s.order = &order{view: view, hooks: s.Hooks, search: o.Search, fault: s.fault}
	s.promises = promises{clerk: s.clerk, hold: o.Hold}
	s.sweeping = sweeping{clerk: s.clerk, swept: &e.swept}
	s.retirement = retirement{clerk: s.clerk, finder: s.finder}
	s.victims, s.heaps = &victims{view: view, hooks: s.Hooks, clerk: s.clerk}, &nodeHeaps{}
	e.register(s)
	staticFirst(s.Hooks.shapeFilters)
	if o.Timings != nil {
		o.Timings.measure(s.Hooks)
	}
	e.index.open(view, s.Hooks, s.fault, o.Search == Twin)
	e.observers, e.unasked = s.Hooks.observers, s.Hooks.Unasked()
	return s
}

// register lets the plugins register their hooks.
func (e *Engine) register(s *Session) {
	defer s.contain()
	defer func() { s.Hooks.opening = nil }()
	for i := range e.plugins {
		s.Hooks.opening = &e.plugins[i]
		if m := s.options.Timings; m != nil {
			t := m.timer(e.plugins[i].Name(), "OnSessionOpen")
			start := t.start()
			e.plugins[i].OnSessionOpen(s)
			t.stop(start)
			continue
		}
		e.plugins[i].OnSessionOpen(s)
	}
}
