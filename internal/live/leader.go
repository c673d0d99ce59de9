package live

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Log keeps changes for good. Append returns when they are safe; the first has the
// given position, and the others follow it.
type Log interface {
	Append(position uint64, changes []cluster.Change) error
}

// Options are what a leader begins with.
type Options struct {
	State    *cluster.State // the leader's from now on
	Position uint64         // of the State; 0: nothing was logged before
	Engine   *engine.Engine // the leader's from now on
	Log      Log            // nil: changes are not kept
	Ring     int            // how many entries readers may be behind; 0 means 65,536
}

const defaultRing = 1 << 16

// Leader changes the State, and is the only one to do so. Its methods are for one
// goroutine at a time; readers use its Follower from any.
//
// A change is made, then logged, then published. Where the log fails, the State is
// ahead of what would survive a restart, so the leader is broken from then on: the
// change is not published, its decisions are not returned, and every later call
// returns the same error. The way out is to start again from the log.
type Leader struct {
	state    *cluster.State
	engine   *engine.Engine
	log      Log
	follower *Follower
	position uint64
	broken   error
	unheard  error // of observers that panicked since the last Run
}

// Lead makes a leader. It copies the State once, for the follower.
func Lead(o Options) *Leader {
	if o.Ring <= 0 {
		o.Ring = defaultRing
	}
	f := &Follower{
		ring: newRing(o.Ring, o.Position), another: o.Engine.Another,
		state: o.State.Clone(), position: o.Position,
	}
	f.tables.begin(f.state)
	return &Leader{state: o.State, engine: o.Engine, log: o.Log, follower: f, position: o.Position}
}

// Follower serves the readers.
func (l *Leader) Follower() *Follower { return l.follower }

// State is the leader's, for its own goroutine to look at.
func (l *Leader) State() *cluster.State { return l.state }

// Position is that of the latest change.
func (l *Leader) Position() uint64 { return l.position }

// Apply makes a change that was reported from outside. One that State rejects
// changes nothing and is not logged.
func (l *Leader) Apply(c cluster.Change) error {
	if l.broken != nil {
		return l.broken
	}
	told := l.engine.Watch(l.state, c)
	if err := l.state.Apply(c); err != nil {
		return err
	}
	if err := l.publish([]cluster.Change{c}, nil); err != nil {
		return err
	}
	l.unheard = errors.Join(l.unheard, told())
	return nil
}

// Run makes one pass over the pending jobs. The session is patient, and records.
// Where a plugin breaks its contract, what was decided before that stands, is
// logged, and is in the outcome beside the error. The same holds for observers that
// panicked since the last Run. Readers share the refusals of the outcome: the caller
// leaves them as they are.
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
	err = errors.Join(err, l.unheard, l.engine.Committed(&out))
	l.unheard = nil
	return out, err
}

// publish logs the changes and shows them to readers, with what the session said
// that made them.
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
