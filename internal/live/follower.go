package live

import (
	"fmt"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// mostWaiting is how many entries may wait for the follower before it is woken.
const mostWaiting = 1024

// Follower applies the leader's changes to a State of its own. It makes Views of it,
// and copies for labs that begin or fell behind, so that the leader makes neither.
// Its methods are safe for concurrent use.
type Follower struct {
	ring    *Ring
	another func() (*engine.Engine, error)

	inbox   sync.Mutex // held for as long as it takes to append or to take
	waiting []*Entry   // that are not applied yet
	awake   bool       // a goroutine applies them

	mutex    sync.Mutex // held by readers only
	state    *cluster.State
	position uint64
	tables   tables
	err      error // the State could not follow
}

// Ring holds the latest changes.
func (f *Follower) Ring() *Ring { return f.ring }

// Lab makes a lab. It gets its State when it is first asked.
func (f *Follower) Lab() (*Lab, error) {
	e, err := f.another()
	if err != nil {
		return nil, err
	}
	return &Lab{follower: f, engine: e}, nil
}

// add takes the leader's entries. It waits for no reader; where many entries wait,
// a goroutine applies them, so that they do not pile up while nothing is read.
func (f *Follower) add(entries []*Entry) {
	f.ring.add(entries) // first, so that the follower is never ahead of it
	f.inbox.Lock()
	f.waiting = append(f.waiting, entries...)
	wake := len(f.waiting) > mostWaiting && !f.awake
	f.awake = f.awake || wake
	f.inbox.Unlock()
	if wake {
		go func() {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.follow()
		}()
	}
}

// take returns the entries that wait.
func (f *Follower) take() []*Entry {
	f.inbox.Lock()
	defer f.inbox.Unlock()
	out := f.waiting
	f.waiting, f.awake = nil, false
	return out
}

// follow applies what waits. The caller holds the mutex.
func (f *Follower) follow() {
	entries := f.take()
	if f.err != nil {
		return
	}
	for _, e := range entries {
		if err := f.state.Apply(e.Change); err != nil {
			f.err = fmt.Errorf("the follower cannot apply position %d: %w", e.Position, err)
			return
		}
		f.position = e.Position
		f.tables.note(f.state, e.Refusals)
	}
}

// copy returns a State of the caller's own, and its position.
func (f *Follower) copy() (*cluster.State, uint64, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.follow(); f.err != nil {
		return nil, 0, f.err
	}
	return f.state.Clone(), f.position, nil
}

// View returns the tables of the newest position. Between two changes it is the
// same value for every reader.
func (f *Follower) View() (*View, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.follow(); f.err != nil {
		return nil, f.err
	}
	return f.tables.view(f.state, f.position), nil
}
