package live

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Log stores changes permanently. Append returns once they are stored. The first change has
// the given position, and each further one the next.
type Log interface {
	Append(position uint64, changes []cluster.Change) error
}

// Options of a leader.
type Options struct {
	State    *cluster.State // used by the leader alone from now on
	Position uint64         // of the last change that is in the State; 0: none was logged
	Engine   *engine.Engine // used by the leader alone from now on
	// NewEngine makes the engines of readers, which run in other goroutines. Nil means that they
	// have the plugins of Engine, which then must not share anything.
	NewEngine func() (*engine.Engine, error)
	Log       Log // nil: changes are not stored
	Ring      int // how many entries a reader may be behind before it needs a copy; 0 means 65,536
}

const defaultRing = 1 << 16

// Leader is the only part that changes the State. Its methods must be called by one
// goroutine at a time. Readers use its Follower, from any goroutine.
//
// A change is made, then logged, then published. If the log fails, the State is ahead of
// what would survive a restart. The leader is then broken: the change is not published, its
// decisions are not returned, and every later call returns the same error. To recover,
// start a new leader from the log.
type Leader struct {
	state       *cluster.State
	engine      *engine.Engine
	log         Log
	follower    *Follower
	position    uint64
	broken      error
	observerErr error // from observers that panicked since the last Run
}

// NewLeader returns a leader. It copies the State once, for the follower.
func NewLeader(o Options) *Leader {
	if o.Ring <= 0 {
		o.Ring = defaultRing
	}
	if o.NewEngine == nil {
		o.NewEngine = o.Engine.Another
	}
	f := &Follower{
		ring: newRing(o.Ring, o.Position), newEngine: o.NewEngine,
		state: o.State.Clone(), position: o.Position,
	}
	f.tables.start(f.state)
	return &Leader{state: o.State, engine: o.Engine, log: o.Log, follower: f, position: o.Position}
}

// Follower returns the follower, which serves readers.
func (l *Leader) Follower() *Follower { return l.follower }

// State returns the State of the leader. Only the goroutine that calls the leader may read
// it.
func (l *Leader) State() *cluster.State { return l.state }

// Position returns the position of the latest change.
func (l *Leader) Position() uint64 { return l.position }

// Apply makes a change that was reported from outside. A change that State rejects changes
// nothing and is not logged.
func (l *Leader) Apply(c cluster.Change) error {
	if l.broken != nil {
		return l.broken
	}
	observe := l.engine.ObserveFact(l.state, c)
	if err := l.state.Apply(c); err != nil {
		return err
	}
	if err := l.publish([]cluster.Change{c}, nil); err != nil {
		return err
	}
	l.observerErr = errors.Join(l.observerErr, observe())
	return nil
}

// Run runs one session over the pending jobs, with Patient and Record set. If a plugin
// breaks its contract, the decisions before that are valid and logged, and are returned
// with the error. Errors of observers that panicked since the last Run are returned as
// well. Readers share the refusals of the outcome, so the caller must not change them.
func (l *Leader) Run(o engine.Options) (engine.Outcome, error) {
	if l.broken != nil {
		return engine.Outcome{}, l.broken
	}
	o.Patient, o.Record = true, true
	s := l.engine.Open(l.state, o)
	out, err := s.Run()
	err = errors.Join(err, s.Close())
	if broken := l.publish(out.Changes, out.Refusals); broken != nil {
		return engine.Outcome{}, broken
	}
	err = errors.Join(err, l.observerErr, l.engine.Committed(&out))
	l.observerErr = nil
	return out, err
}

// publish logs the changes and then passes them to the follower, with the refusals of the
// session that made them.
func (l *Leader) publish(changes []cluster.Change, refusals []*engine.Refusal) error {
	if len(changes) == 0 {
		return nil
	}
	if l.log != nil {
		if err := l.log.Append(l.position+1, changes); err != nil {
			l.broken = fmt.Errorf("the log failed at position %d, and nothing is decided any more: %w", l.position+1, err)
			return l.broken
		}
	}
	entries := make([]*Entry, len(changes))
	for i, c := range changes {
		l.position++
		entries[i] = &Entry{Position: l.position, Change: c}
	}
	entries[len(entries)-1].Refusals = refusals
	l.follower.add(entries)
	return nil
}
