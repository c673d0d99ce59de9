package cluster

// The journal records how to undo each change of a State. Mark begins recording,
// and Undo takes back everything since a mark, the last change first. The journal
// is not the log: the log holds what happened, as values, and is kept; the journal
// holds pointers into State and is emptied when the last mark is released.
//
// Versions only grow, so caches notice an undo like any other change.

// Mark is a place in the journal of a State.
type Mark struct{ at, depth int }

// Mark begins to record changes. Each Mark needs one Release.
func (s *State) Mark() Mark {
	s.marks++
	return Mark{len(s.journal), s.marks}
}

// Undo takes back every change since the mark. The mark stays valid.
func (s *State) Undo(m Mark) { s.undoTo(m.at) }

// Release forgets the mark, and those made after it. The changes stay.
func (s *State) Release(m Mark) {
	s.marks = min(s.marks, m.depth-1)
	if s.marks > 0 {
		return
	}
	clear(s.journal) // drop the pointers, keep the memory
	s.journal = s.journal[:0]
}

func (s *State) undoTo(at int) {
	for i := len(s.journal) - 1; i >= at; i-- {
		r := s.journal[i]
		s.journal[i] = record{}
		s.journal = s.journal[:i]
		s.undo(&r)
	}
}

// record is one change that can be undone. Hot changes, those of a task's standing,
// are recorded as values; for the others undo says what to do.
type record struct {
	task   *Task
	was    standing
	chosen int    // the alternative of the task's job before
	freed  uint64 // of the node that the task was on or is on now

	set   *replicas // whose group was chosen
	group *Key

	landing *Task // that was given to its task; job had it before

	job    *Job
	status jobStatus

	undo func()
}

func (s *State) undo(r *record) {
	marks := s.marks
	s.marks, s.undoing = 0, true // an undo is not recorded
	switch {
	case r.task != nil:
		s.restand(r)
	case r.set != nil:
		s.sets[r.set.name].group = r.group
	case r.landing != nil:
		s.land(r.landing, r.job, -1)
	case r.job != nil:
		s.setStatus(r.job, r.status)
	default:
		r.undo()
	}
	s.marks, s.undoing = marks, false
}

// restand gives the task of the record its standing back.
func (s *State) restand(r *record) {
	n := r.was.node
	if n == nil {
		n = r.task.Node
	}
	s.shift(r.task, r.was)
	if n != nil {
		n.freed = r.freed
	}
	if j := r.task.Job; j.Chosen != r.chosen {
		s.choose(j, r.chosen)
	}
}

// recording reports whether changes are recorded. Callers of cold ask first: without
// a mark its function would be made for nothing.
func (s *State) recording() bool { return s.marks > 0 }

// cold records a change that is undone by a function.
func (s *State) cold(undo func()) {
	if s.marks > 0 {
		s.journal = append(s.journal, record{undo: undo})
	}
}
