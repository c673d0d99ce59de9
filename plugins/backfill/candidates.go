package backfill

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
)

// candidate is a job that has waited for long, and what it lacks; see plugin.wants.
type candidate struct {
	job            *cluster.Job
	devices, tasks int
	waited         int64 // in seconds
}

// candidates returns the jobs that may get an earmark, in the order in which they get one: by
// priority, then by the devices that they lack multiplied by the time that they have waited. A job
// that lacks few devices finds room sooner without an earmark than one that lacks many. Because the
// product grows with time, it also gets one at last.
func (p *plugin) candidates() (out []candidate) {
	for _, w := range p.session.Earmarks.Starving(p.after) {
		if !lacksRoom(w.Refusal) {
			continue
		}
		devices, tasks := p.wants(w.Job)
		if late := w.Job.Created + p.later; 2*devices <= p.totals().largest && p.session.Now < late {
			p.session.Earmarks.ExamineAt(late)
			continue
		}
		out = append(out, candidate{w.Job, devices, tasks, (p.session.Now - w.Job.Created) / int64(time.Second)})
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), cmp.Compare(int64(b.devices)*b.waited, int64(a.devices)*a.waited))
	})
	return out
}

// wants returns the least number of devices that an alternative of the job lacks, and for how many tasks.
func (p *plugin) wants(j *cluster.Job) (devices, tasks int) {
	for i := range j.Alternatives {
		alt := &j.Alternatives[i]
		if j.Chosen >= 0 && i != j.Chosen || alt.Running {
			continue
		}
		sum, n := 0, 0
		for _, t := range p.session.Lacking(alt) {
			sum, n = sum+t.Shape.Need.Devices, n+1
		}
		if tasks == 0 || sum < devices {
			devices, tasks = sum, n
		}
	}
	return devices, tasks
}
