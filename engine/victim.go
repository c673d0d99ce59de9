package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Purpose is how, or by which right, a victim leaves its place.
type Purpose uint8

// The purposes.
const (
	Reclaim Purpose = iota // a queue takes back its share from others
	Preempt                // a job takes the place of one that matters less
	Move                   // the victim is promised room on another node
	purposes
)

func (p Purpose) String() string { return [...]string{"Reclaim", "Preempt", "Move"}[p] }

// Victim is what leaves together: a task that its job can spare, a subgroup that it can
// spare or, since a gang below its minimum is of no use, all tasks of a job. Tasks that
// move do so one by one: the others of the gang keep their places.
type Victim struct {
	Job     *cluster.Job    // the job whose tasks they are
	Tasks   []*cluster.Task // all bound
	Whole   bool            // no task of the job keeps its place
	Purpose Purpose         // what it would leave for: Reclaim, Preempt or Move
}

// VictimOf is what is evicted if the bound task is.
func VictimOf(t *cluster.Task) *Victim {
	if t.Job.Spares(t) {
		return &Victim{Job: t.Job, Tasks: []*cluster.Task{t}}
	}
	if tasks := t.Job.SparesSubgroup(t); tasks != nil {
		return &Victim{Job: t.Job, Tasks: tasks}
	}
	return wholeJob(t.Job, Reclaim)
}

// wholeJob is all that is bound of the job.
func wholeJob(j *cluster.Job, p Purpose) *Victim {
	v := &Victim{Job: j, Whole: true, Purpose: p}
	for _, t := range j.Tasks() {
		if t.Runs() {
			v.Tasks = append(v.Tasks, t)
		}
	}
	return v
}

// mover is the task as one that moves.
func mover(t *cluster.Task) *Victim {
	return &Victim{Job: t.Job, Tasks: []*cluster.Task{t}, Purpose: Move}
}

// stillOne reports whether the victim is still what leaves together: its tasks are
// bound, and the job keeps its minimum without them or no task of it stays.
func (v *Victim) stillOne() bool {
	if slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !t.Runs() }) {
		return false
	}
	switch {
	case v.Purpose == Move:
		return v.Job.Spares(v.Tasks[0]) || !hasReservations(v.Job)
	case !v.Whole:
		return len(v.Tasks) == 1 && v.Job.Spares(v.Tasks[0]) || slices.Equal(v.Tasks, v.Job.SparesSubgroup(v.Tasks[0]))
	}
	bound := 0
	for _, t := range v.Job.Tasks() {
		if t.Runs() {
			bound++
		}
	}
	return bound == len(v.Tasks)
}

// hasReservations reports whether tasks of the job have yet to arrive where room is held
// for them. The job needs the others where they are: it may lose its reservations.
func hasReservations(j *cluster.Job) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool {
		return t.Status == cluster.Nominated || t.Landing() != nil
	})
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

// Spared says which plugin protects a victim, and why.
type Spared struct {
	Plugin string
	Reason Reason
}

// Verdict is what a hook says of a victim. A victim leaves if some hook allows it and
// none protects it.
type Verdict struct {
	reason Reason // why the victim stays; "": the hook does not protect it
	allow  bool
	notYet bool // it may leave once others have left
}

// The verdicts that need no reason.
var (
	Allow     = Verdict{allow: true} // the victim should leave
	NoOpinion = Verdict{}            // that is left to other hooks
)

// Protect is the verdict that the victim stays, and why.
func Protect(why Reason) Verdict { return Verdict{reason: cmp.Or(why, unexplained)} }

// NotYet is the verdict that the victim stays until others have left, such as those of
// the queue which exceeds its share as long as they are there.
func NotYet(why Reason) Verdict { return Verdict{reason: cmp.Or(why, unexplained), notYet: true} }

// unexplained is the reason of a plugin that gives none: it voids the session.
const unexplained Reason = "?"

// NobodyConsents is why a victim stays that no hook protects, and none allows to leave.
const NobodyConsents Reason = "NobodyConsents"

// answer is what the hooks of a purpose say of a victim.
type answer struct {
	spared *Spared // nil: it may leave
	yet    bool    // it may once others have left
}

// victims says which tasks might leave for a job, by what the hooks say.
type victims struct {
	view  cluster.View
	hooks *Hooks
	clerk *clerk
	costs map[*cluster.Task]int64 // what plugins said of tasks in this session
}

// may combines the hooks of a purpose, or what replaces them as the last resort.
// Nil where no victim may leave for the job.
func (v *victims) may(p Purpose, job *cluster.Job, lacks []*cluster.Task, last bool) func(*Victim) answer {
	type asked struct {
		plugin string
		may    func(*Victim) Verdict
	}
	var all []asked
	for i := range v.hooks.victims[p] {
		h := &v.hooks.victims[p][i]
		fn := h.fn
		if last && h.last != nil {
			fn = h.last.Victims
		}
		may := fn(job, lacks)
		if may == nil {
			return nil
		}
		all = append(all, asked{h.plugin, may})
	}
	return func(x *Victim) answer {
		var out answer
		consent := false
		for _, a := range all {
			switch said := a.may(x); {
			case said.allow:
				consent = true
			case said.reason == "":
			case said.reason == unexplained:
				v.clerk.fault.fail(a.plugin, "a victim is protected without a reason")
				return answer{spared: &Spared{a.plugin, unexplained}}
			case !said.notYet:
				return answer{spared: &Spared{a.plugin, said.reason}}
			case out.spared == nil:
				out = answer{&Spared{a.plugin, said.reason}, true}
			}
		}
		if out.spared == nil && !consent {
			return answer{spared: &Spared{"engine", NobodyConsents}}
		}
		return out
	}
}

// might says which classes might have victims for the job; nil where that is not
// known.
func (v *victims) might(p Purpose, job *cluster.Job, lacks []*cluster.Task, last bool) *narrowed {
	var all []*narrowed
	for i := range v.hooks.victims[p] {
		h := &v.hooks.victims[p][i]
		class, queues := h.class, h.queues
		if last && h.last != nil {
			class, queues = h.last.Classes, h.last.Queues
		}
		if class == nil {
			return nil
		}
		n := &narrowed{class: class(job, lacks), queues: func() ([]string, bool) { return nil, true }}
		if queues != nil {
			n.queues = func() ([]string, bool) { return queues(job, lacks) }
		}
		all = append(all, n)
	}
	return either(all)
}

// narrowed are the classes that might have victims, and the queues that have these classes.
type narrowed struct {
	class  func(cluster.Class) bool
	queues func() (queues []string, all bool)
}

// either are the classes that are among some of these.
func either(list []*narrowed) *narrowed {
	if len(list) == 1 {
		return list[0]
	}
	return &narrowed{
		class: func(c cluster.Class) bool {
			return slices.ContainsFunc(list, func(n *narrowed) bool { return n.class(c) })
		},
		queues: func() (queues []string, all bool) {
			for _, n := range list {
				some, all := n.queues()
				if all {
					return nil, true
				}
				queues = append(queues, some...)
			}
			slices.Sort(queues)
			return slices.Compact(queues), false
		},
	}
}

// visit visits the classes of which tasks run and that might have victims, in no order,
// until it answers false.
func (n *narrowed) visit(running cluster.Classes, visit func(cluster.Class) bool) {
	if n == nil {
		running.Visit(visit)
		return
	}
	some := func(c cluster.Class) bool { return !n.class(c) || visit(c) }
	queues, all := n.queues()
	if all {
		running.Visit(some)
		return
	}
	for _, q := range queues {
		if !running.VisitQueue(q, some) {
			return
		}
	}
}

// mayLeave reports whether the task may be a victim for the job at all. What was bound
// in this session keeps its place, and so does a job that others were evicted for in
// it, or that was evicted for this one before.
func (v *victims) mayLeave(t *cluster.Task, job *cluster.Job) bool {
	if !t.Runs() || !t.Job.Preemptible || t.Job == job || v.clerk.served[t.Job] || v.clerk.bound[t] || t.Spared > v.clerk.now {
		return false
	}
	_, before := slices.BinarySearch(job.Displaced, t.Job.ID)
	return !before
}
