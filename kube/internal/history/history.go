package history

import (
	"fmt"
	"slices"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/intree"
)

// The limits of what is kept.
const (
	MaxSessions = 20
	// MaxChanges is how many changes of State and of objects are kept. If the last sessions had
	// more, fewer sessions are kept.
	MaxChanges = 1 << 15
	// maxWaiting is how many changes may wait before a goroutine is started that applies them.
	maxWaiting = 1 << 10
)

// History keeps the last sessions. Append, Put, Open and Close must be called by one goroutine
// at a time, that of the scheduler; all other methods are safe for concurrent use.
type History struct {
	inbox    sync.Mutex // guards the fields below; never held while changes are applied
	waiting  []entry
	applying bool // a goroutine was started that will apply what waits

	// The fields below are used by the goroutine of the scheduler alone.
	number uint64   // of the last session
	open   *Session // the session that is open; nil: none
	made   []entry  // what the open session has changed

	mutex   sync.Mutex // guards the fields below; the scheduler never takes it
	state   *cluster.State
	objects *intree.Contents
	entries []entry // in order; the first one, if there is any, is a session
	kept    int     // how many of the entries are sessions
	err     error   // why a change could not be applied; permanent
}

// entry is one of: a change of State, a change of an object, a session.
type entry struct {
	change  cluster.Change
	object  *intree.Update
	session *Session
}

// Session is one session. It is immutable after Close.
type Session struct {
	Number  uint64 // counted from 1, since the process started
	Options engine.Options
	// Parameters are the parameters that plugins had published.
	Parameters map[string]uint64
	Assumed    intree.Assumed
	Took       int64 // nanoseconds
	Outcome    engine.Outcome
	Err        error // of the session; the decisions before it are in Outcome
}

// Input is what a session decided about.
type Input struct {
	*Session
	State   *cluster.State // a copy
	Objects *intree.Contents
}

// New returns a History of a scheduler with an empty State and an empty Store.
func New() *History {
	return &History{state: cluster.NewState(), objects: intree.NewContents()}
}

// Append notes changes of State. It implements live.Log and returns no error.
func (h *History) Append(_ uint64, changes []cluster.Change) error {
	list := make([]entry, len(changes))
	for i, c := range changes {
		list[i].change = c
	}
	if h.open != nil {
		h.made = append(h.made, list...)
	} else {
		h.add(list...)
	}
	return nil
}

// Put notes a change of an object that the filters of Kubernetes read.
func (h *History) Put(u intree.Update) { h.add(entry{object: &u}) }

// Open notes that a session is about to run. Close must follow.
func (h *History) Open(s Session) {
	h.number++
	s.Number = h.number
	h.open = &s
}

// Close notes what the session that is open has decided. A session that tried no job and decided
// nothing is not kept.
func (h *History) Close(out *engine.Outcome, took int64, err error) {
	s := h.open
	s.Outcome, s.Took, s.Err = *out, took, err
	s.Outcome.Changes, s.Outcome.Events = nil, nil // they are among the entries
	list := h.made
	if len(out.Tried) > 0 || len(out.Decisions) > 0 || err != nil {
		list = slices.Insert(list, 0, entry{session: s})
	}
	h.open, h.made = nil, nil
	h.add(list...)
}

// add adds entries. If many wait, it starts a goroutine that applies them.
func (h *History) add(list ...entry) {
	h.inbox.Lock()
	h.waiting = append(h.waiting, list...)
	wake := len(h.waiting) > maxWaiting && !h.applying
	h.applying = h.applying || wake
	h.inbox.Unlock()
	if wake {
		go func() {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			h.follow()
		}()
	}
}

// take removes and returns the entries that wait.
func (h *History) take() []entry {
	h.inbox.Lock()
	defer h.inbox.Unlock()
	out := h.waiting
	h.waiting, h.applying = nil, false
	return out
}

// follow takes the entries that wait, and drops the sessions beyond the limits. The caller holds
// the mutex.
func (h *History) follow() {
	list := h.take()
	if h.err != nil {
		return
	}
	for _, e := range list {
		if e.session != nil {
			h.kept++
		}
		h.entries = append(h.entries, e)
	}
	n := 0 // how many entries no kept session needs
	for n < len(h.entries) && h.err == nil {
		e := &h.entries[n]
		if e.session != nil {
			if h.kept <= MaxSessions && len(h.entries)-n <= MaxChanges {
				break
			}
			h.kept--
		}
		h.err = apply(e, h.state, h.objects)
		n++
	}
	h.entries = slices.Delete(h.entries, 0, n)
	if len(h.entries) < cap(h.entries)/4 {
		h.entries = slices.Clip(slices.Clone(h.entries))
	}
	if h.err != nil {
		h.entries, h.kept = nil, 0
	}
}

// apply applies one entry.
func apply(e *entry, state *cluster.State, objects *intree.Contents) error {
	switch {
	case e.change != nil:
		if err := state.Apply(e.change); err != nil {
			return fmt.Errorf("the input of sessions is not kept any more, because a %s cannot be applied again: %w", e.change.Kind(), err)
		}
	case e.object != nil:
		objects.Apply(*e.object)
	}
	return nil
}

// Sessions returns the sessions that are kept, the oldest first.
func (h *History) Sessions() ([]*Session, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.follow()
	var out []*Session
	for i := range h.entries {
		if s := h.entries[i].session; s != nil {
			out = append(out, s)
		}
	}
	return out, h.err
}

// Input returns the input of a session; nil if it is not kept.
func (h *History) Input(number uint64) (*Input, error) {
	in, entries, err := h.before(number)
	if in == nil || err != nil {
		return nil, err
	}
	for i := range entries {
		if err := apply(&entries[i], in.State, in.Objects); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// before returns a copy of the base, and the entries between it and the session.
func (h *History) before(number uint64) (*Input, []entry, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.follow()
	at := slices.IndexFunc(h.entries, func(e entry) bool { return e.session != nil && e.session.Number == number })
	if at < 0 || h.err != nil {
		return nil, nil, h.err
	}
	return &Input{h.entries[at].session, h.state.Clone(), h.objects.Clone()}, slices.Clone(h.entries[:at]), nil
}
