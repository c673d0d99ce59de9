package cluster

// journal records how to undo each change of a State. Mark begins recording, and
// Undo takes back everything since a mark, the last change first. The journal is not
// the log: the log holds what happened, as values, and is kept; the journal holds
// pointers into State and is emptied when the last mark is released.
//
// Versions only grow, so caches notice an undo like any other change.
type journal struct {
	records []record
	marks   int // that are held; without any, nothing is recorded
	undoing bool
	commits uint64 // changes that were made for good
}

// Mark is a place in the journal of a State.
type Mark struct{ at, depth int }

// Mark begins to record changes. Each Mark needs one Release.
func (s *State) Mark() Mark {
	s.journal.marks++
	return Mark{len(s.journal.records), s.journal.marks}
}

// Undo takes back every change since the mark. The mark stays valid.
func (s *State) Undo(m Mark) { s.journal.undoTo(m.at, s) }

// Release forgets the mark, and those made after it. The changes stay.
func (s *State) Release(m Mark) {
	l := &s.journal
	l.marks = min(l.marks, m.depth-1)
	if l.marks > 0 {
		return
	}
	clear(l.records) // drop the pointers, keep the memory
	l.records = l.records[:0]
}

// undoTo takes back every change of the State since the place.
func (l *journal) undoTo(at int, s *State) {
	for i := len(l.records) - 1; i >= at; i-- {
		r := l.records[i]
		l.records[i] = record{}
		l.records = l.records[:i]
		marks := l.marks
		l.marks, l.undoing = 0, true // an undo is not recorded
		r.undo(s)
		l.marks, l.undoing = marks, false
	}
}

// record is one change that can be undone. Hot changes, those of a task's standing,
// are recorded as values; for the others undo says what to do.
type record struct {
	task   *Task
	was    standing
	chosen int    // the alternative of the task's job before
	freed  uint64 // of the node that the task was on or is on now

	rare *rare // a change of something else; nil: of the task
}

// rare is a change that is made less often than those of a task's standing.
type rare struct {
	set   *replicas // whose group was chosen
	group *Key

	landing *Task // that was given to its task; job had it before

	job    *Job
	status jobStatus

	undo func()
}

// note records a rare change.
func (l *journal) note(r rare) {
	if l.marks > 0 {
		kept := r
		l.records = append(l.records, record{rare: &kept})
	}
}

// undo calls what made the change to take it back.
func (r *record) undo(s *State) {
	switch o := r.rare; {
	case o == nil:
		s.standings.restand(r)
	case o.set != nil:
		s.sets.byName[o.set.name].group = o.group
	case o.landing != nil:
		s.standings.land(o.landing, o.job, -1)
	case o.job != nil:
		s.workload.setStatus(o.job, o.status)
	default:
		o.undo()
	}
}

// recording reports whether changes are recorded. Callers of cold ask first: without
// a mark its function would be made for nothing.
func (l *journal) recording() bool { return l.marks > 0 }

// undoable calls one of two methods that are opposites, and records that the other takes
// it back. The function that does so is made only where it is recorded.
func undoable[T, X any](l *journal, table T, x X, change, opposite func(T, X)) {
	change(table, x)
	if l.recording() {
		l.cold(func() { opposite(table, x) })
	}
}

// cold records a change that is undone by a function.
func (l *journal) cold(undo func()) { l.note(rare{undo: undo}) }
