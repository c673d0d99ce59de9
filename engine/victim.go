package engine

import "github.com/berth-project/berth/cluster"

// Purpose is why somebody would have to go.
type Purpose uint8

// The purposes.
const (
	Reclaim Purpose = iota // a queue takes back its share from others
	Preempt                // what matters more takes the place of what matters less
	Move                   // it goes to another node, so that what it leaves can be used better
	purposes
)

// Victim is what goes together: one task that its job can spare, or all of a
// job, since a gang below its minimum is no gang.
type Victim struct {
	Job   *cluster.Job
	Tasks []*cluster.Task // all bound
	Whole bool            // nothing of the job is left
}

// VictimOf is what goes when the bound task has to.
func VictimOf(t *cluster.Task) *Victim {
	if t.Job.Spares(t) {
		return &Victim{Job: t.Job, Tasks: []*cluster.Task{t}}
	}
	v := &Victim{Job: t.Job, Whole: true}
	for _, o := range t.Job.Tasks() {
		if o.Status == cluster.Bound {
			v.Tasks = append(v.Tasks, o)
		}
	}
	return v
}

// Spared says that a victim may not go, by whom and why.
type Spared struct {
	Plugin string
	Reason Reason
}

// victims combines the hooks of a purpose: all must agree. Nil where nobody may go for the job.
func (s *Session) victims(p Purpose, job *cluster.Job) func(*Victim) *Spared {
	type asked struct {
		plugin string
		may    func(*Victim) Reason
	}
	var all []asked
	for _, h := range s.hooks.victims[p] {
		may := h.fn(job)
		if may == nil {
			return nil
		}
		all = append(all, asked{h.plugin, may})
	}
	return func(v *Victim) *Spared {
		for _, a := range all {
			if r := a.may(v); r != "" {
				return &Spared{a.plugin, r}
			}
		}
		return nil
	}
}

// Spares says who keeps the victim from going for the job and why, nil if it may
// go. Where nobody at all may go for the job, nobody is named.
func (s *Session) Spares(p Purpose, job *cluster.Job, v *Victim) *Spared {
	judge := s.victims(p, job)
	if judge == nil {
		return &Spared{}
	}
	return judge(v)
}
