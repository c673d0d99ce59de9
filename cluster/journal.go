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
func (s *State) note(r rare) {
	if s.marks > 0 {
		kept := r
		s.journal = append(s.journal, record{rare: &kept})
	}
}

func (s *State) undo(r *record) {
	marks := s.marks
	s.marks, s.undoing = 0, true // an undo is not recorded
	switch o := r.rare; {
	case o == nil:
		s.restand(r)
	case o.set != nil:
		s.sets[o.set.name].group = o.group
	case o.landing != nil:
		s.land(o.landing, o.job, -1)
	case o.job != nil:
		s.setStatus(o.job, o.status)
	default:
		o.undo()
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
func (s *State) cold(undo func()) { s.note(rare{undo: undo}) }
