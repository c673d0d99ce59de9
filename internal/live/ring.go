package live

import (
	"sync/atomic"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Entry is one change of the leader's State. It is immutable.
type Entry struct {
	Position uint64 // counted from 1
	Change   cluster.Change
	// Refusals are those of the session of which this is the last change.
	Refusals []*engine.Refusal
}

// Ring holds the latest entries. One goroutine writes and any number of goroutines read.
// The writer never waits: it overwrites the oldest entries, and Since reports to a reader
// that it is too slow.
type Ring struct {
	slots []atomic.Pointer[Entry] // an entry is in slot position modulo length
	last  atomic.Uint64
}

func newRing(size int, last uint64) *Ring {
	r := &Ring{slots: make([]atomic.Pointer[Entry], size)}
	r.last.Store(last)
	return r
}

// Last returns the position of the newest entry.
func (r *Ring) Last() uint64 { return r.last.Load() }

// Since returns the entries after the position, oldest first. It reports false if the ring
// does not hold all of them any more. The reader must then begin again with a copy of the
// State.
func (r *Ring) Since(position uint64) ([]*Entry, bool) {
	last := r.last.Load()
	if position > last || last-position > uint64(len(r.slots)) {
		return nil, false
	}
	out := make([]*Entry, 0, last-position)
	for p := position + 1; p <= last; p++ {
		e := r.slots[p%uint64(len(r.slots))].Load()
		if e == nil || e.Position != p {
			return nil, false // the entry was overwritten while this loop runs
		}
		out = append(out, e)
	}
	return out, true
}

// add publishes the entries together: a reader sees all of them or none.
func (r *Ring) add(entries []*Entry) {
	for _, e := range entries {
		r.slots[e.Position%uint64(len(r.slots))].Store(e)
	}
	r.last.Store(entries[len(entries)-1].Position)
}
