package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// lookFurther returns the refusal of a job that was rejected before any node was considered, such
// as by the limit of its queue. It tries each such alternative again without these rejections, and
// undoes that. If neither waiting nor evicting could cure the result, it replaces the attempt:
// waiting can cure the first rejection, and would not help.
func lookFurther(s *Session, stmt *Statement, job *cluster.Job, r *Refusal) *Refusal {
	attempts := slices.Clone(r.Attempts)
	found := false
	for i := range attempts {
		a := &attempts[i]
		if a.Before == nil || !a.Before.Cure.Transient() || a.from >= len(job.Alternatives) {
			continue
		}
		if alt := &job.Alternatives[a.from]; len(alt.Tasks) == 1 && alt.Whole == nil && s.finder.best(alt.Tasks[0], nil) != nil {
			continue // it would be placed
		}
		if further := placePast(s, stmt, job, a.from); further != nil && !further.transient() {
			attempts[i], found = *further, true
		}
	}
	if !found || s.fault.err != nil {
		return r
	}
	out := newRefusal(job, attempts, r.Surplus)
	out.Protected, out.Delayed = r.Protected, r.Delayed
	return out
}

// placePast returns why the choice of the job that begins with the alternative cannot be placed
// without rejections that waiting cures and that are made before any node is considered. It returns
// nil if the choice can be placed.
func placePast(s *Session, stmt *Statement, job *cluster.Job, from int) *Attempt {
	mark := stmt.Checkpoint()
	place := s.placer(stmt)
	place.searched = &s.searchedFurther // so that decisions do not depend on explanations
	s.finder.pastBefore = true
	left := place.placeChoices(job, func(choice int) bool { return choice == from })
	s.finder.pastBefore = false
	stmt.Rollback(mark)
	if left == nil || len(left.Attempts) == 0 {
		return nil
	}
	return &left.Attempts[0]
}
