package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Purpose is why somebody would have to go.
type Purpose uint8

// The purposes.
const (
	Reclaim Purpose = iota // a queue takes back its share from others
	Preempt                // what matters more takes the place of what matters less
	Move                   // it goes to another node, so that what it leaves can be used better
	purposes
)

func (p Purpose) String() string { return [...]string{"Reclaim", "Preempt", "Move"}[p] }

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
		if o.Runs() {
			v.Tasks = append(v.Tasks, o)
		}
	}
	return v
}

// stillOne reports whether the victim is still what goes together: its tasks are
// bound, and the job keeps its minimum without them or nothing of it stays.
func (v *Victim) stillOne() bool {
	for _, t := range v.Tasks {
		if !t.Runs() {
			return false
		}
	}
	if !v.Whole {
		return v.Job.Spares(v.Tasks[0])
	}
	bound := 0
	for _, t := range v.Job.Tasks() {
		if t.Runs() {
			bound++
		}
	}
	return bound == len(v.Tasks)
}

// ChargeOf is what the victim's tasks together count as in the queue's account of
// the resource.
func (v *Victim) ChargeOf(q *cluster.Queue, resource string) int64 {
	sum := int64(0)
	for _, t := range v.Tasks {
		sum += q.ChargeOf(t, resource)
	}
	return sum
}

// Spared says that a victim may not go, by whom and why.
type Spared struct {
	Plugin string
	Reason Reason
}

// Consent is the answer of a VictimFn that says yes. A victim goes if somebody
// consents and nobody objects; "" is neither.
const Consent Reason = "Consent"

// NobodyConsents is why a victim stays that nobody objects to.
const NobodyConsents Reason = "NobodyConsents"

// victims combines the hooks of a purpose. Nil where nobody may go for the job.
func (s *Session) victims(p Purpose, job *cluster.Job, lacks []*cluster.Task) func(*Victim) *Spared {
	type asked struct {
		plugin string
		may    func(*Victim) Reason
	}
	var all []asked
	for _, h := range s.hooks.victims[p] {
		may := h.fn(job, lacks)
		if may == nil {
			return nil
		}
		all = append(all, asked{h.plugin, may})
	}
	return func(v *Victim) *Spared {
		consent := false
		for _, a := range all {
			switch r := a.may(v); r {
			case "":
			case Consent:
				consent = true
			default:
				return &Spared{a.plugin, r}
			}
		}
		if !consent {
			return &Spared{"engine", NobodyConsents}
		}
		return nil
	}
}

// classes says which classes might have victims for the job; nil where that is not
// known.
func (s *Session) classes(p Purpose, job *cluster.Job, lacks []*cluster.Task) func(cluster.Class) bool {
	var all []func(cluster.Class) bool
	for i := range s.hooks.victims[p] {
		h := &s.hooks.victims[p][i]
		if h.class == nil {
			return nil
		}
		all = append(all, h.class(job, lacks))
	}
	return func(c cluster.Class) bool {
		return slices.ContainsFunc(all, func(might func(cluster.Class) bool) bool { return might(c) })
	}
}

// Spares says who spares the victim and why; nil where it may go for the tasks
// that the job lacks.
func (s *Session) Spares(p Purpose, job *cluster.Job, lacks []*cluster.Task, v *Victim) *Spared {
	may := s.victims(p, job, lacks)
	if may == nil {
		return &Spared{}
	}
	return may(v)
}

// cost is how much it takes to have somebody go: less is better, from the first field on.
type cost struct {
	tasks    [3]int32 // by tier, strongest first
	jobs     int32    // that are gone altogether: surplus goes first
	priority int64    // summed over the tasks
	young    int64    // when the youngest started, negated: who has run longest is worth most
}

func (c *cost) compare(o *cost) int {
	return cmp.Or(
		slices.Compare(c.tasks[:], o.tasks[:]),
		cmp.Compare(c.jobs, o.jobs),
		cmp.Compare(c.priority, o.priority),
		cmp.Compare(c.young, o.young),
	)
}

// add counts a task that goes. Who moves loses nothing, whatever his tier.
func (c *cost) add(s *cluster.State, t *cluster.Task, p Purpose) {
	tier := 2
	if p != Move {
		tier = min(tierOf(s, t).Rank(), 2)
	}
	c.tasks[tier]++
	c.priority += int64(t.Job.Priority)
	c.young = min(c.young, -t.Started)
}

func costOf(s *cluster.State, victims []*Victim, p Purpose) cost {
	var c cost
	for _, v := range victims {
		if v.Whole {
			c.jobs++
		}
		for _, t := range v.Tasks {
			c.add(s, t, p)
		}
	}
	return c
}

func tierOf(s *cluster.State, t *cluster.Task) cluster.Tier {
	if q := s.Queue(t.Job.Queue); q != nil {
		return q.Tier
	}
	return cluster.TierStandard
}

// rival is a task that might go, with what decides its turn.
type rival struct {
	task  *cluster.Task
	tier  int
	spare bool
}

func (s *Session) rival(t *cluster.Task) rival {
	return rival{t, tierOf(s.State, t).Rank(), t.Job.Spares(t)}
}

// before orders rivals, the first to go first: weaker tier, surplus, lower
// priority, younger, name.
func (c *rival) before(o *rival) int {
	spare := 0
	if c.spare != o.spare {
		if spare = 1; c.spare {
			spare = -1
		}
	}
	return cmp.Or(
		cmp.Compare(o.tier, c.tier),
		spare,
		cmp.Compare(c.task.Job.Priority, o.task.Job.Priority),
		cmp.Compare(o.task.Started, c.task.Started),
		strings.Compare(c.task.ID, o.task.ID),
	)
}

// mayLeave reports whether the task is one of those who could go for the job at
// all. For whom others went in this session, they shall not have gone in vain.
func (s *Session) mayLeave(t *cluster.Task, job *cluster.Job) bool {
	if !t.Runs() || !t.Job.Preemptible || t.Job == job || s.served[t.Job] || t.Spared > s.Now {
		return false
	}
	_, before := slices.BinarySearch(job.Displaced, t.Job.ID)
	return !before
}
