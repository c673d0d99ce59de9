// Package namespaces counts the placed tasks of each namespace, and rejects tasks beyond
// a cap.
//
// It does not consider the size of tasks. To limit what a team holds of a resource, use
// the limit of a queue.
package namespaces

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NamespaceAllocationTracker"

// The reasons.
const (
	NamespaceFull        engine.Reason = "NamespaceFull"        // the namespace has as many tasks as the cap allows
	NamespaceCapTooSmall engine.Reason = "NamespaceCapTooSmall" // the job alone exceeds the cap
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: NamespaceFull, Cure: engine.Wait | engine.Evict, Phrase: "namespace {subject} has as many tasks as its cap allows", Meaning: "The namespace has as many placed tasks as the cap allows. Have is how many more are allowed; the subject is the namespace."},
	{Reason: NamespaceCapTooSmall, Cure: engine.Relax, Phrase: "the job needs {want} tasks, and the cap of namespace {subject} is {have}", Meaning: "The minimum of the job is more than the cap of its namespace. Have is the cap; the subject is the namespace."},
}

// arguments are the plugin's arguments.
type arguments struct {
	// MaxTasks is how many tasks of one namespace may be placed at a time; 0 means no cap.
	MaxTasks int `json:"maxTasks"`
}

type tracker struct {
	arguments
	report func(tasks map[string]int)

	tasks map[string]int // placed tasks by namespace
}

// Builder returns a builder of trackers that report the tasks of each namespace when a
// session closes. What a plugin needs from the program, here a function, is an argument of
// its Builder.
func Builder(report func(tasks map[string]int)) engine.PluginBuilder {
	return engine.WithArguments(nil, func(a arguments) (engine.Plugin, error) {
		if a.MaxTasks < 0 {
			return nil, fmt.Errorf("maxTasks %d is below 0; leave it out for no cap", a.MaxTasks)
		}
		return &tracker{arguments: a, report: report}, nil
	})
}

func (p *tracker) Name() string                { return Name }
func (p *tracker) Reasons() []engine.ReasonDoc { return reasons }

func (p *tracker) OnSessionOpen(s *engine.Session) {
	// The cluster may have changed since the last session: count again.
	p.tasks = map[string]int{}
	for _, job := range s.View.Jobs() {
		for _, t := range job.Tasks() {
			if t.Placed() {
				p.tasks[job.Namespace]++
			}
		}
	}
	s.Hooks.AddEventHandler(engine.EventHandler{
		AllocateFunc:   func(e *engine.Event) { p.tasks[e.Job.Namespace]++ },
		DeallocateFunc: func(e *engine.Event) { p.tasks[e.Job.Namespace]-- },
	})
	if p.MaxTasks > 0 {
		s.Hooks.AddPreFilter(p.admit)
	}
}

func (p *tracker) OnSessionClose(*engine.Session) { p.report(maps.Clone(p.tasks)) }

// admit distinguishes rejections that waiting cures from those that it does not.
func (p *tracker) admit(t *cluster.Task, job *cluster.Job) *engine.Rejection {
	if least := minimum(t, job); least > p.MaxTasks {
		return &engine.Rejection{
			Reason: NamespaceCapTooSmall, Cure: engine.Relax, Subject: job.Namespace,
			Want: count(least), Have: count(p.MaxTasks),
		}
	}
	if p.tasks[job.Namespace] < p.MaxTasks {
		return nil
	}
	return &engine.Rejection{
		Reason: NamespaceFull, Cure: engine.Wait | engine.Evict, Subject: job.Namespace,
		Want: count(1), Have: count(0),
	}
}

// minimum returns the minimum of the alternative that the task belongs to.
func minimum(t *cluster.Task, job *cluster.Job) int {
	for i := range job.Alternatives {
		if alt := &job.Alternatives[i]; slices.Contains(alt.Tasks, t) {
			return alt.Min
		}
	}
	return 1
}

func count(n int) engine.Quantity { return engine.Quantity{Value: int64(n), Unit: engine.Count} }
