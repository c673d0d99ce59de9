package live

import (
	"fmt"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// maxWaiting is how many entries may wait before a goroutine is started that applies them.
const maxWaiting = 1024

// Follower applies the changes of the leader to a State of its own. It makes Views of that
// State, and copies of it for labs that are new or fell behind, so that the leader spends
// no time on readers. Its methods are safe for concurrent use.
type Follower struct {
	ring      *Ring
	newEngine func() (*engine.Engine, error)

	inbox    sync.Mutex // guards waiting and applying; never held while entries are applied
	waiting  []*Entry   // entries that are not applied yet
	applying bool       // a goroutine was started that will apply them

	mutex    sync.Mutex // guards the rest; the leader never takes it
	state    *cluster.State
	position uint64
	tables   tables
	engine   *engine.Engine // for QueueShares; nil: not made yet
	err      error          // why a change could not be applied; permanent
}

// Ring returns the ring with the latest changes.
func (f *Follower) Ring() *Ring { return f.ring }

// Lab returns a new lab. Its State is copied when it answers its first question.
func (f *Follower) Lab() (*Lab, error) {
	e, err := f.newEngine()
	if err != nil {
		return nil, err
	}
	return &Lab{follower: f, engine: e}, nil
}

// add is called by the leader with new entries. It waits for no reader. If many entries
// wait, it starts a goroutine that applies them, so that they do not accumulate while
// nothing is read.
func (f *Follower) add(entries []*Entry) {
	f.ring.add(entries) // first, so that the follower is never ahead of the ring
	f.inbox.Lock()
	f.waiting = append(f.waiting, entries...)
	wake := len(f.waiting) > maxWaiting && !f.applying
	f.applying = f.applying || wake
	f.inbox.Unlock()
	if wake {
		go func() {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			f.follow()
		}()
	}
}

// take removes and returns the entries that wait.
func (f *Follower) take() []*Entry {
	f.inbox.Lock()
	defer f.inbox.Unlock()
	out := f.waiting
	f.waiting, f.applying = nil, false
	return out
}

// follow applies the entries that wait. The caller holds the mutex.
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
		f.tables.record(f.state, e.Refusals)
	}
}

// copy returns a copy of the State, and its position.
func (f *Follower) copy() (*cluster.State, uint64, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.follow(); f.err != nil {
		return nil, 0, f.err
	}
	return f.state.Clone(), f.position, nil
}

// View returns the tables of the newest position. It returns the same value until the next
// change.
func (f *Follower) View() (*View, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.follow(); f.err != nil {
		return nil, f.err
	}
	return f.tables.view(f.state, f.position), nil
}
