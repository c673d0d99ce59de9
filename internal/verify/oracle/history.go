package oracle

import "slices"

// history records which jobs and tasks a session has changed so far. They are protected
// during the rest of the session.
type history struct {
	placed     taskSet             // tasks that were placed
	moved      taskSet             // tasks that moved
	evictedFor map[string]bool     // jobs for which tasks were evicted or moved
	displaced  map[string][]string // by job: the jobs that had tasks evicted or moved for it
}

func newHistory() *history {
	return &history{evictedFor: map[string]bool{}, displaced: map[string][]string{}}
}

// addVictim records that the victim is evicted or moves for the job.
func (h *history) addVictim(job string, victim *task) {
	h.evictedFor[job] = true
	h.displaced[job] = append(h.displaced[job], victim.form.job.ID)
}

// protection returns why the task must not be evicted or moved for the job, or "".
func (h *history) protection(job *form, t *task) string {
	switch victim := t.form.job.ID; {
	case slices.Contains(job.job.Displaced, victim), slices.Contains(h.displaced[job.job.ID], victim):
		return "it was displaced for the job before"
	case h.placed.has(t):
		return "it was placed in this session"
	case h.evictedFor[victim]:
		return "tasks were evicted for its job in this session"
	}
	return ""
}
