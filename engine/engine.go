package engine

import "github.com/berth-project/berth/cluster"

// Engine holds the plugins of a profile, or of several profiles, and what is remembered from
// session to session: ranked nodes for each shape, and the backlog of patient sessions. It
// serves one State at a time and is not safe for concurrent use.
type Engine struct {
	registry *Registry
	profiles []NamedProfile
	plugins  []weighted
	closers  []Closer // the plugins that are called when a session is closed
	// reopeners has all plugins, or is shorter if not all of them are Reopeners.
	reopeners []Reopener
	index     *index
	backlog   *backlog // of patient sessions; nil before the first one
	idle      idleDevices
	occupied  occupancies
	swept     swept
	publish   func(plugin string, parameters uint64) // of index; a method value is allocated each time that it is made
	events    int                                    // how many events the last session with any had
	hooks     spareHooks
	parts     *sessionParts // of a session that is closed; nil if there is none
	spare     spareMemory
	// observers holds the hooks that the last session registered.
	observers     []hook[Observer]
	uncalledHooks []UncalledHook
}

// swept says up to which version of jobs the gangs that run below their minimum were marked.
type swept struct {
	view cluster.View
	jobs uint64
}

// New builds the plugins of the profile and returns an engine for them. The error says which
// plugin is unknown or has wrong arguments.
func New(r *Registry, p Profile) (*Engine, error) {
	return newEngine(r, []NamedProfile{{Plugins: p}})
}

// UncalledHooks returns the hooks of the last session that are never called; see
// Hooks.UncalledHooks.
func (e *Engine) UncalledHooks() []UncalledHook { return e.uncalledHooks }

// Another builds a new engine of the same profiles, for use with another State. It remembers
// nothing.
func (e *Engine) Another() (*Engine, error) { return newEngine(e.registry, e.profiles) }

// Options are the inputs of a session beside State.
type Options struct {
	// Now is the time in nanoseconds since 1970. Reservations and back-offs end by it, and
	// hooks may use it. The engine reads no other clock.
	Now    int64
	Search Search // how nodes are found; tests use Twin
	// Hold is how long room is reserved for a nominated task or for a task that moves, in
	// nanoseconds. 0 means as long as its node has the room.
	Hold int64
	// Patient makes the session try refused jobs again only when their back-off has ended
	// or something has changed that may help them.
	Patient bool
	// Turns, if not nil, are the IDs of the jobs that have a turn in a session that is not
	// patient, in this order; see Outcome.Tried. It is for a patient session that is run again:
	// which parked jobs such a session tries, and when, depends on what earlier sessions found.
	Turns []string
	// Until, if not empty, is the ID of a job. A session that is not patient ends when it has
	// refused this job: the jobs that come after it have no turn.
	Until string
	// MovesOnly makes MakeRoom consider only plans that move tasks.
	MovesOnly bool
	// Record adds the changes that the session makes to State to its outcome.
	Record bool
	// Timings, if not nil, measures how long hooks take.
	Timings *Timings
	// LookFurther makes a refusal say why no node could ever take the job, even if the job was
	// rejected before any node was considered, such as by the limit of its queue.
	LookFurther bool
	// Explain adds all feasible nodes to each decision, and all rejected nodes to each
	// refusal.
	Explain bool
}

// Search is how the best node for a task is found. All ways find the same node.
type Search uint8

// The ways to search.
const (
	Indexed Search = iota // keep nodes ranked for each shape, and judge only nodes that changed
	Scan                  // judge every node every time, which is slow and simple
	Twin                  // do both, and fail the session if they differ
)

// Open starts a session: it calls OnSessionOpen of each plugin, in which hooks are
// registered, or Reopen (see Reopener). A plugin that fails makes Session.Run return the error.
// Plugins prepare for the new session, so a session that is still open must not be run any more.
func (e *Engine) Open(state *cluster.State, o Options) *Session {
	view, b := state.View(), e.takeParts()
	own := &struct { // what a closed session keeps
		session Session
		fault   fault
	}{}
	s := &own.session
	hooks, valid := e.hooks.take(view)
	*s = Session{View: view, Now: o.Now, engine: e, fault: &own.fault, Hooks: hooks, sessionParts: b}
	s.Earmarks = Earmarks{s}
	hooks.fault, hooks.publish = s.fault, e.publish
	b.options, b.denied, b.refused = o, denied{}, nil
	b.finder = finder{view: view, hooks: s.Hooks, index: e.index, search: o.Search, fault: s.fault, spare: &e.spare, scorers: b.finder.scorers}
	b.accounts = accounts{view: view, idle: &e.idle, asks: b.accounts.emptied()}
	b.explainer = explainer{finder: &b.finder, all: o.Explain}
	b.clerk = clerk{session: s, state: state, view: view, now: o.Now, hooks: s.Hooks, accounts: &b.accounts, fault: s.fault, recording: o.Record, explain: o.Explain, lastEvents: &e.events, spare: &e.spare, open: b.open[:0]}
	b.order = order{view: view, hooks: s.Hooks, search: o.Search, fault: s.fault}
	b.victims, b.heaps = victims{view: view, hooks: s.Hooks, clerk: &b.clerk}, nodeHeaps{occupancies: &e.occupied}
	b.reservations = reservations{clerk: &b.clerk, hold: o.Hold}
	b.sweeping = sweeping{clerk: &b.clerk, swept: &e.swept}
	b.retirement = retirement{clerk: &b.clerk, finder: &b.finder}
	b.learning = learning{clerk: &b.clerk, index: e.index}
	same := valid && o.Timings == nil && e.reopen(s)
	if !same {
		e.register(s)
		if o.Timings != nil {
			o.Timings.measure(s.Hooks)
		}
		e.observers, e.uncalledHooks = s.Hooks.observers, uncalledHooks(s.Hooks)
	}
	e.index.open(view, s.Hooks, s.fault, same, o.Search == Twin)
	func() {
		defer s.contain()
		s.learning.open()
	}()
	b.accounts.free() // here, so that no decision takes long because all nodes are read
	return s
}

// takeParts returns the memory for the parts of a session.
func (e *Engine) takeParts() *sessionParts {
	b := e.parts
	if e.parts = nil; b == nil {
		b = &sessionParts{}
	}
	return b
}

// register calls OnSessionOpen of each plugin.
func (e *Engine) register(s *Session) {
	removeAll(s.Hooks)
	defer staticFirst(s.Hooks)
	if e.hooks.latest = s.Hooks; s.fault.err != nil {
		return // a plugin broke its contract in Reopen
	}
	defer s.contain()
	defer func() { s.Hooks.opening = nil }()
	for i := range e.plugins {
		s.Hooks.opening = &e.plugins[i]
		if m := s.options.Timings; m != nil {
			t := m.timer(e.plugins[i].Name(), "OnSessionOpen")
			start := t.start()
			e.openPlugin(s, &e.plugins[i])
			t.stop(start)
			continue
		}
		e.openPlugin(s, &e.plugins[i])
	}
}
