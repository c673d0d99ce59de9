// Package taskorder orders the tasks of a job: those of leading roles are placed first, so
// that a node for the leader is found before nodes for its workers.
//
// It compares the names of roles only. The role of a task is the name of its entry under
// tasks of a job. Tasks of the same role, and tasks of roles that are not listed, keep the
// order in which they are written.
//
// A configuration replaces the list of roles:
//
//	plugins:
//	- name: TaskOrder
//	  arguments: {first: [driver, leader]}
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

// Arguments are the plugin's arguments.
type Arguments struct {
	// First lists the roles that are placed first, in this order. It may be empty; leader,
	// master and launcher unless given.
	First []string `json:"first"`
}

type plugin struct {
	engine.FixedHooks
	Arguments
	order engine.TaskOrder // compare; a method value is allocated each time that it is made
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(defaults, build)

func defaults() Arguments { return Arguments{First: []string{"leader", "master", "launcher"}} }

func build(a Arguments) (engine.Plugin, error) {
	for i, role := range a.First {
		if role == "" {
			return nil, fmt.Errorf("first[%d] is empty, which is not a role; name one or remove it", i)
		}
		if j := slices.Index(a.First, role); j < i {
			return nil, fmt.Errorf("first[%d] and first[%d] are both %q, and a role may be listed once; remove one", j, i, role)
		}
	}
	p := &plugin{Arguments: a}
	p.order = p.compare
	return p, nil
}

func (p *plugin) Name() string                    { return Name }
func (p *plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddTaskOrder(p.order) }

func (p *plugin) compare(l, r *cluster.Task) int { return cmp.Compare(p.rank(l), p.rank(r)) }

// rank returns the index of the task's role in the list, and the length of the list if the
// role is not listed.
func (p *plugin) rank(t *cluster.Task) int {
	if i := slices.Index(p.First, t.Role); i >= 0 {
		return i
	}
	return len(p.First)
}
