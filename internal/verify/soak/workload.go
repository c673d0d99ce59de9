package soak

import "github.com/berth-project/berth/cluster"

// workload creates, changes and removes jobs, at the site and in State.
type workload struct {
	maxJobs   int // the number of jobs at a time
	site      *site
	scheduler *scheduler
	history   *history
}

// isFull reports whether no job may be added.
func (w *workload) isFull() bool { return len(w.site.jobs) >= w.maxJobs }

// isFullForReplicas reports whether no replica of an existing model may be added.
func (w *workload) isFullForReplicas() bool { return len(w.site.jobs) >= w.maxJobs+4 }

// put creates a job, or replaces the job with the same ID.
func (w *workload) put(j *cluster.Job) error {
	w.site.jobs[j.ID] = j
	return w.scheduler.apply(cluster.JobPut{Job: *j})
}

// remove removes a job and its processes.
func (w *workload) remove(id string) error {
	w.site.removeJob(id)
	w.history.forgetGang(id)
	return w.scheduler.apply(cluster.JobGone{Job: id})
}
