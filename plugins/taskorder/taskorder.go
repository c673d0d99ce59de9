// Package taskorder puts the tasks of leading roles first within their job, so
// that the leader's place is found before its workers'.
//
// It knows roles by name only. All other tasks keep the order they were written
// in, and so do tasks of the same role; it refuses to know what a task needs.
package taskorder

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "TaskOrder"

// arguments are what a profile may say about the plugin.
type arguments struct {
	// First are the roles that go first, in this order; an empty list: none.
	First []string `json:"first"`
}

type plugin struct{ arguments }

// New builds the plugin. Without arguments the roles leader, master and launcher go first.
var New = engine.WithArguments(defaults, build)

func defaults() arguments { return arguments{First: []string{"leader", "master", "launcher"}} }

func build(a arguments) (engine.Plugin, error) {
	for i, role := range a.First {
		if role == "" {
			return nil, fmt.Errorf("first[%d] is empty, which is no role; name one or remove it", i)
		}
		if j := slices.Index(a.First, role); j < i {
			return nil, fmt.Errorf("first[%d] and first[%d] are both %q, and a role has one place; remove one", j, i, role)
		}
	}
	return &plugin{a}, nil
}

func (p *plugin) Name() string                    { return Name }
func (p *plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddTaskOrder(p.compare) }

func (p *plugin) compare(l, r *cluster.Task) int { return cmp.Compare(p.place(l), p.place(r)) }

// place is where the task's role stands in the list; behind it if it is not there.
func (p *plugin) place(t *cluster.Task) int {
	if i := slices.Index(p.First, t.Role); i >= 0 {
		return i
	}
	return len(p.First)
}
