package soak

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
)

// workload creates, changes and removes jobs, at the site and in State.
type workload struct {
	maxJobs   int // the number of jobs at a time
	site      *site
	scheduler *scheduler
	history   *history
	// assign returns the name of the profile for a task, given its job or set; nil: tasks
	// name none.
	assign func(owner string, task int) string
}

// isFull reports whether no job may be added.
func (w *workload) isFull() bool { return len(w.site.jobs) >= w.maxJobs }

// isFullForReplicas reports whether no replica of an existing model may be added.
func (w *workload) isFullForReplicas() bool { return len(w.site.jobs) >= w.maxJobs+4 }

// put creates a job, or replaces the job with the same ID.
func (w *workload) put(j *cluster.Job) error {
	if w.assign != nil {
		for _, a := range j.Alternatives {
			for i, t := range a.Tasks {
				shape := *t.Shape
				shape.Profile = w.assign(cmp.Or(j.Set.Name, j.ID), i)
				t.Shape = &shape
			}
		}
	}
	w.site.jobs[j.ID] = j
	return w.scheduler.apply(cluster.JobPut{Job: *j})
}

// remove removes a job and its processes.
func (w *workload) remove(id string) error {
	w.site.removeJob(id)
	w.history.forgetGang(id)
	return w.scheduler.apply(cluster.JobGone{Job: id})
}
