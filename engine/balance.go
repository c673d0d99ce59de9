package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// fair reports whether the plan, which is carried out since the checkpoint, leaves the
// queues more even than they are without it. Both States are compared after the room
// that is idle in them has been given out: a plan that frees room which its victims
// get back would be made again and again. It takes the plan back.
func (r *room) fair(plan []*Victim, checkpoint int) bool {
	defer r.stmt.Rollback(checkpoint)
	var measures []func() Balance
	for p := range purposes {
		for i := range r.hooks.victims[p] {
			if h := &r.hooks.victims[p][i]; h.last != nil && h.last.Balance != nil {
				if measure := h.last.Balance(r.job, r.lacks, plan); measure != nil {
					measures = append(measures, measure)
				}
			}
		}
	}
	if len(measures) == 0 {
		return true
	}
	if !r.handOut(r.returning(plan)) {
		return false
	}
	with := make([]Balance, len(measures))
	for i, measure := range measures {
		with[i] = measure()
	}
	r.stmt.Rollback(checkpoint)
	if !r.handOut(nil) {
		return false
	}
	for i, measure := range measures {
		if !with[i].Below(measure()) {
			return false
		}
	}
	return r.err == nil
}

// handOut gives the room that is idle to pending jobs and to others, in the order of
// their turns: first what minima lack, then surplus, that of the job included. It reports
// whether its steps were enough.
func (r *room) handOut(others []*cluster.Job) bool {
	minimal, steps := r.minimal, 0
	defer func() { r.minimal = minimal }()
	for _, r.minimal = range [...]bool{true, false} {
		jobs := slices.DeleteFunc(r.State.Pending(), func(j *cluster.Job) bool {
			return slices.ContainsFunc(others, func(o *cluster.Job) bool { return o.ID == j.ID }) // it stands for both
		})
		jobs = slices.DeleteFunc(append(jobs, others...), func(j *cluster.Job) bool {
			stands := j.Stands()
			return stands == r.minimal || !stands && j == r.job || !r.mayGet(j)
		})
		for job := range r.each(jobs) {
			if r.err != nil || r.free() == 0 {
				break
			}
			if !r.mayGet(job) {
				continue
			}
			if steps++; steps > maxHanded {
				return false
			}
			r.Place(r.stmt, job)
		}
	}
	return r.err == nil
}

// mayGet reports whether enough devices are free for what the minimum of the job lacks or,
// where it lacks nothing, for one of its pending tasks.
func (r *room) mayGet(j *cluster.Job) bool {
	if !j.Stands() {
		return r.FreeFor(j)
	}
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool {
		return t.Status == cluster.Pending && r.devicesOf(t.Shape).Least <= r.free()
	})
}

// returning are the jobs that the plan evicts tasks of, as they would be placed again,
// with those of their tasks that are pending already.
func (r *room) returning(plan []*Victim) []*cluster.Job {
	leaving := map[*cluster.Job][]*cluster.Task{}
	var jobs []*cluster.Job
	for _, v := range plan {
		if v.Purpose == Move || r.State.Queue(v.Job.Queue) == nil {
			continue
		}
		if leaving[v.Job] == nil {
			jobs = append(jobs, v.Job)
		}
		leaving[v.Job] = append(leaving[v.Job], v.Tasks...)
	}
	out := make([]*cluster.Job, len(jobs))
	for i, j := range jobs {
		out[i] = j.Shadow(leaving[j])
		form := &out[i].Alternatives[0]
		form.Min = min(form.Min, j.Alternatives[max(j.Chosen, 0)].Min)
		for _, t := range j.Tasks() {
			if t.Status == cluster.Pending {
				form.Tasks = append(form.Tasks, t)
			}
		}
	}
	return out
}
