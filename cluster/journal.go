package cluster

// journal records how to undo each change of a State. Mark begins recording, and Undo
// undoes all changes since a mark, the last one first. The journal is not the log: the
// log has the changes as values and is kept, while the journal has pointers into State
// and is emptied when the last mark is released.
//
// An undo does not restore versions: it gives what it changes new versions, so that
// caches notice it like any other change. The exception is Node.freed, which an undo
// restores, because room that is taken and returned by an undo was not freed.
type journal struct {
	records []record
	marks   int    // how many marks are not released; if 0, changes are not recorded
	undoing bool   // an undo is in progress: unused shapes must be kept
	commits uint64 // how many changes were made by Apply or a commit; see Recent.Commits
}

// Mark is a position in the journal of a State. Changes after it can be undone.
type Mark struct{ at, depth int }

// Mark returns the present position in the journal, and begins to record changes. The
// caller must call Release for it.
func (s *State) Mark() Mark {
	s.journal.marks++
	return Mark{len(s.journal.records), s.journal.marks}
}

// Undo undoes all changes since the mark, of every kind. Versions are not restored; they
// grow. Only what Node.Freed says about room that was freed is restored. The mark stays
// valid.
func (s *State) Undo(m Mark) { s.journal.undoTo(m.at, s) }

// Release ends the mark, and all marks made after it. The changes since the mark stay
// made; they can still be undone to an earlier mark.
func (s *State) Release(m Mark) {
	l := &s.journal
	l.marks = min(l.marks, m.depth-1)
	if l.marks > 0 {
		return
	}
	clear(l.records) // drop the pointers, keep the memory
	l.records = l.records[:0]
}

// undoTo undoes all changes of the State since the position.
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

// record is how to undo one change. Changes of the state of a task are the most
// frequent ones, and are recorded here as values, without an allocation. Other changes
// are in other.
type record struct {
	task   *Task
	was    taskState // of the task, before the change
	chosen int       // Job.Chosen of the task's job, before the change
	freed  uint64    // Node.freed of the task's node, before the change

	other *otherChange // another change; nil: the change is that of the task
}

// otherChange is how to undo a change other than of the state of a task. It is one of
// four changes: the group of a set (set and group), a landing (landing and job), the status
// of a job (job and status; landing is nil), or any other change (undo).
type otherChange struct {
	set   *replicas // the set for which a group was chosen
	group *GroupKey // its group before the change

	landing *Task // a shadow that became the landing of its task; job is its Job before

	job    *Job
	status jobStatus // of job, before the change
	freed  []uint64  // of the nodes of its earmark: Node.freed before the change

	undo func()
}

// recordOther records a change other than of the state of a task, if changes are recorded.
func (l *journal) recordOther(r otherChange) {
	if l.marks > 0 {
		kept := r
		l.records = append(l.records, record{other: &kept})
	}
}

// undo undoes the change.
func (r *record) undo(s *State) {
	switch o := r.other; {
	case o == nil:
		s.taskStates.restore(r)
	case o.set != nil:
		s.sets.byName[o.set.name].group = o.group
	case o.landing != nil:
		s.taskStates.changeLanding(o.landing, o.job, -1)
	case o.job != nil:
		s.workload.setStatus(o.job, o.status)
		s.workload.restoreFreed(o.job, o.freed)
	default:
		o.undo()
	}
}

// recording reports whether changes are recorded. Callers of recordUndo check it first,
// so that they do not allocate a function that is not used.
func (l *journal) recording() bool { return l.marks > 0 }

// undoable calls change, and records that opposite undoes it. It allocates only if
// changes are recorded.
func undoable[T, X any](l *journal, table T, x X, change, opposite func(T, X)) {
	change(table, x)
	if l.recording() {
		l.recordUndo(func() { opposite(table, x) })
	}
}

// recordUndo records a change that the function undoes.
func (l *journal) recordUndo(undo func()) { l.recordOther(otherChange{undo: undo}) }
