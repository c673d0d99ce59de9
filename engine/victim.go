package engine

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Purpose is why a victim is evicted, or that it moves.
type Purpose uint8

// The purposes.
const (
	Reclaim Purpose = iota // a queue takes back its share from queues that hold more than theirs
	Preempt                // a job takes the room of a job of lower priority or of a weaker tier
	Move                   // the victim moves: room is reserved for it on another node
	purposes
)

func (p Purpose) String() string { return [...]string{"Reclaim", "Preempt", "Move"}[p] }

// Victim is tasks of one job that are evicted together: a surplus task, a surplus subgroup or,
// because a gang below its minimum is useless, all running tasks of the job. A task is running
// if it is Bound or Assumed (Task.Runs). Tasks that move are victims one by one, since the other
// tasks of the gang stay on their nodes.
type Victim struct {
	Job     *cluster.Job    // the job of the tasks
	Tasks   []*cluster.Task // the tasks, all of which are running; the list must not be changed
	Whole   bool            // these are all running tasks of the job
	Purpose Purpose         // why it would be evicted: Reclaim, Preempt or Move
}

// VictimOf returns all tasks that are evicted together with the running task.
func VictimOf(t *cluster.Task) *Victim {
	v := victimOf(t)
	return &v
}

func victimOf(t *cluster.Task) Victim {
	if t.Job.IsSurplus(t) {
		return Victim{Job: t.Job, Tasks: []*cluster.Task{t}}
	}
	if tasks := t.Job.SurplusSubgroup(t); tasks != nil {
		return Victim{Job: t.Job, Tasks: tasks}
	}
	return Victim{Job: t.Job, Tasks: running(t.Job), Whole: true}
}

// wholeJob returns all running tasks of the job as one victim.
func wholeJob(j *cluster.Job, p Purpose) *Victim {
	return &Victim{Job: j, Tasks: running(j), Whole: true, Purpose: p}
}

// running returns the running tasks of the job.
func running(j *cluster.Job) []*cluster.Task {
	all := j.Tasks()
	if !slices.ContainsFunc(all, func(t *cluster.Task) bool { return !t.Runs() }) {
		return slices.Clip(all)
	}
	var out []*cluster.Task
	for _, t := range all {
		if t.Runs() {
			out = append(out, t)
		}
	}
	return out
}

// mover returns the task as a victim that moves.
func mover(t *cluster.Task) *Victim {
	return &Victim{Job: t.Job, Tasks: []*cluster.Task{t}, Purpose: Move}
}

// isValid reports whether the victim is still valid: its tasks are running, and without them the
// job either keeps its minimum or has no running task left. A task that is to move must be
// surplus, or its job must have no reservations.
func (v *Victim) isValid() bool {
	if slices.ContainsFunc(v.Tasks, func(t *cluster.Task) bool { return !t.Runs() }) {
		return false
	}
	switch {
	case v.Purpose == Move:
		return v.Job.IsSurplus(v.Tasks[0]) || !hasReservations(v.Job)
	case !v.Whole:
		return len(v.Tasks) == 1 && v.Job.IsSurplus(v.Tasks[0]) || slices.Equal(v.Tasks, v.Job.SurplusSubgroup(v.Tasks[0]))
	}
	bound := 0
	for _, t := range v.Job.Tasks() {
		if t.Runs() {
			bound++
		}
	}
	return bound == len(v.Tasks)
}

// hasReservations reports whether room is reserved for tasks of the job that are nominated or
// move. The job may lose these reservations, so its other tasks must not move.
func hasReservations(j *cluster.Job) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool {
		return t.Status == cluster.Nominated || t.Landing() != nil
	})
}

// ChargeOf returns how much of the resource the victim's tasks together are charged to the
// queue.
func (v *Victim) ChargeOf(q *cluster.Queue, resource string) int64 {
	sum := int64(0)
	for _, t := range v.Tasks {
		sum += q.ChargeOf(t, resource)
	}
	return sum
}

// Protector is the plugin that protects a victim from eviction, and why it does.
type Protector struct {
	Plugin string // "engine" if no plugin allows the victim
	Reason Reason
}

// Verdict is what a VictimRule decides about a victim. A victim may be evicted if at least one
// hook allows it and none protects it.
type Verdict struct {
	reason Reason // why the victim is protected; "": it is not
	allow  bool
	notYet bool // the protection may end once other victims are evicted
}

// The verdicts that need no reason.
var (
	Allow     = Verdict{allow: true} // the victim may be evicted
	NoOpinion = Verdict{}            // other hooks decide
)

// Protect returns the verdict that the victim must not be evicted, with the reason. An empty
// reason fails the session.
func Protect(why Reason) Verdict { return Verdict{reason: cmp.Or(why, unexplained)} }

// NotYet returns the verdict that the victim must not be evicted as things are, but that this
// may change once other victims are evicted. The hook is then called again. An empty reason
// fails the session.
func NotYet(why Reason) Verdict { return Verdict{reason: cmp.Or(why, unexplained), notYet: true} }

// unexplained replaces an empty reason of a plugin. It fails the session.
const unexplained Reason = "?"

// NoPluginAllows is the reason for which a victim is not evicted if no hook protects it, but
// none allows it either.
const NoPluginAllows Reason = "NobodyConsents"

// answer is the combined verdict of the hooks of a purpose.
type answer struct {
	protector *Protector // nil: the victim may be evicted
	yet       bool       // protector may become nil once other victims are evicted
}

// victims decides which tasks may be victims for a job, by calling the hooks.
type victims struct {
	view  cluster.View
	hooks *Hooks
	clerk *clerk
	costs map[*cluster.Task]int64 // the VictimCosts of tasks, as returned in this session
	slab  []Victim                // memory of victims; those before its length are in use
	last  struct {                // the queue that tierOf was called with last
		queue string
		tier  cluster.Tier
	}
}

// may calls the VictimRules of a purpose and returns a function that combines their verdicts. If
// last is set, last resorts replace the VictimRules. It returns nil if a hook protects all
// victims from this job.
func (v *victims) may(p Purpose, job *cluster.Job, lacks []*cluster.Task, last bool) func(*Victim) answer {
	all, none := v.judges(nil, p, job, lacks, last)
	if none {
		return nil
	}
	return func(x *Victim) answer { return v.ask(all, x) }
}

// judge is what the VictimRule of a plugin returned for a job.
type judge struct {
	plugin string
	may    func(*Victim) Verdict
}

// judges calls the VictimRules of a purpose and adds what they return to the list. It returns
// true if a hook protects all victims from this job.
func (v *victims) judges(list []judge, p Purpose, job *cluster.Job, lacks []*cluster.Task, last bool) (_ []judge, none bool) {
	for i := range v.hooks.victims[p] {
		h := &v.hooks.victims[p][i]
		fn := h.fn
		if last && h.last != nil {
			fn = h.last.Victims
		}
		may := fn(job, lacks)
		if may == nil {
			return list, true
		}
		list = append(list, judge{h.plugin, may})
	}
	return list, false
}

// ask combines the verdicts about the victim.
func (v *victims) ask(all []judge, x *Victim) answer {
	var out answer
	allowed := false
	for i := range all {
		a := &all[i]
		switch got := a.may(x); {
		case got.allow:
			allowed = true
		case got.reason == "":
		case got.reason == unexplained:
			v.clerk.fault.fail(a.plugin, "a victim is protected without a reason")
			return answer{protector: &Protector{a.plugin, unexplained}}
		case !got.notYet:
			return answer{protector: &Protector{a.plugin, got.reason}}
		case out.protector == nil:
			out = answer{&Protector{a.plugin, got.reason}, true}
		}
	}
	if out.protector == nil && !allowed {
		return answer{protector: &Protector{"engine", NoPluginAllows}}
	}
	return out
}

// narrowsFirst reports whether a hook of the purpose names the classes that may have a first
// victim.
func (v *victims) narrowsFirst(p Purpose, last bool) bool {
	return slices.ContainsFunc(v.hooks.victims[p], func(h hook[VictimRule]) bool {
		if last && h.last != nil {
			return h.last.First.Classes != nil
		}
		return h.first.Classes != nil
	})
}

// might adds to the list what the hooks of the purpose return about the classes that might have
// victims for the job. If first is set, it leaves out classes that may have victims only after
// others are evicted. It returns false if every class might.
func (v *victims) might(list []classRules, p Purpose, w *want, first bool) ([]classRules, bool) {
	for i := range v.hooks.victims[p] {
		h := &v.hooks.victims[p][i]
		class, queues, narrower := h.class, h.queues, h.first
		if w.last && h.last != nil {
			class, queues, narrower = h.last.Classes, h.last.Queues, h.last.First
		}
		if first && narrower.Classes != nil {
			class, queues = narrower.Classes, narrower.Queues
		}
		if class == nil {
			return list, false
		}
		list = append(list, classRules{class(w.job, w.lacks), queues})
	}
	return list, true
}

// classRules says which classes might have victims, as far as one plugin decides it.
type classRules struct {
	class  func(cluster.Class) bool
	queues QueueRule // nil means any queue
}

// narrowed is the classes that might have victims for a job by at least one of the rules.
type narrowed struct {
	want   *want
	rules  []classRules
	memory [4]classRules // of rules
}

// class reports whether the class might have victims.
func (n *narrowed) class(c cluster.Class) bool {
	for i := range n.rules {
		if n.rules[i].class(c) {
			return true
		}
	}
	return false
}

// queues returns the queues that have such classes.
func (n *narrowed) queues() (queues []string, all bool) {
	queues = make([]string, 0, 4)
	for i := range n.rules {
		rule := n.rules[i].queues
		if rule == nil {
			return nil, true
		}
		some, all := rule(n.want.job, n.want.lacks)
		if all {
			return nil, true
		}
		queues = append(queues, some...)
	}
	slices.Sort(queues)
	return slices.Compact(queues), false
}

// visit calls the function for each class that has running tasks and might have victims, in no
// particular order, until it returns false.
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

// of is VictimOf with fewer allocations.
func (v *victims) of(t *cluster.Task) *Victim {
	if len(v.slab) == cap(v.slab) {
		v.slab = make([]Victim, 0, 32)
	}
	v.slab = append(v.slab, victimOf(t))
	return &v.slab[len(v.slab)-1]
}

// mayBeVictim reports whether the task may be a victim for the job at all, whatever the hooks
// return. It must be a running task of another job that is preemptible. These tasks may not be
// victims: tasks with a Bind decision of this session, tasks of jobs for which this session
// evicted other tasks, tasks of jobs that were evicted for this job before, and tasks for a while
// after their eviction was refused.
func (v *victims) mayBeVictim(t *cluster.Task, job *cluster.Job) bool {
	served := len(t.Job.Displaced) > 0 && v.clerk.served[t.Job] // Displaced of a job that was served names the victims
	if !t.Runs() || !t.Job.Preemptible || t.Job == job || served || v.clerk.bound[t] || t.ProtectedUntil() > v.clerk.now {
		return false
	}
	_, before := slices.BinarySearch(job.Displaced, t.Job.ID)
	return !before
}
