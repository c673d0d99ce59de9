// Package namespaces counts the tasks that are placed in each namespace, and
// lets no namespace have more of them than a cap.
//
// It counts tasks and refuses to know how large they are: what a tenant may
// hold of a resource is a queue's limit.
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
	NamespaceFull        engine.Reason = "NamespaceFull"        // tasks of the namespace hold all that the cap allows
	NamespaceCapTooSmall engine.Reason = "NamespaceCapTooSmall" // the job alone is beyond the cap
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: NamespaceFull, Cure: engine.Wait | engine.Evict, Meaning: "As many tasks of the namespace are placed as may be. Have is how many more may be; the subject is the namespace."},
	{Reason: NamespaceCapTooSmall, Cure: engine.Relax, Meaning: "The least that must run of the job is more than may be placed of its namespace. Have is the cap; the subject is the namespace."},
}

// arguments are what a profile may say about the plugin.
type arguments struct {
	// MaxTasks is how many tasks of one namespace may be placed at a time; 0: any number.
	MaxTasks int `json:"maxTasks"`
}

type tracker struct {
	arguments
	report func(tasks map[string]int)

	tasks map[string]int // placed, by namespace
}

// Builder makes trackers that report the tasks of each namespace when a session
// closes. What a plugin needs of the program it runs in, the program hands over here.
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
	// The cluster may have changed since the last session: count anew.
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

// admit tells what waiting cures from what it does not.
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

// minimum is how many tasks must stand together in the form of the job that the task is of.
func minimum(t *cluster.Task, job *cluster.Job) int {
	for i := range job.Alternatives {
		if alt := &job.Alternatives[i]; slices.Contains(alt.Tasks, t) {
			return alt.Min
		}
	}
	return 1
}

func count(n int) engine.Quantity { return engine.Quantity{Value: int64(n), Unit: engine.Count} }
