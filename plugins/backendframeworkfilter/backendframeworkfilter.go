// Package backendframeworkfilter rejects nodes without a device of a runtime that
// the model's backend supports. MindIE needs cann, for example, so a node with cuda
// devices only is rejected.
//
// The runtimes are part of the task's request (Need.Types); the plugin has no list of
// backends. Devices that are lost do not count. A task that needs no device is accepted
// everywhere. The plugin does not count devices.
package backendframeworkfilter

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "BackendFrameworkFilter"

// BackendNotSupported is given for a node without a device that the backend runs on.
const BackendNotSupported engine.Reason = "BackendNotSupported"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: BackendNotSupported, Cure: engine.Grow | engine.Relax, Phrase: "{subject}", Meaning: "No device of the node has a runtime that the backend supports. The subject lists the runtimes of the backend and those of the node."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                { return Name }
func (plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers a static filter.
func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticFilter(matters, admit)
	engine.EqualNodes(s.Hooks)
}

func matters(s *cluster.Shape) bool { return len(s.Need.Types) > 0 && !s.Need.None() }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && slices.Contains(s.Need.Types, d.Type) {
			return nil
		}
	}
	return &engine.Rejection{
		Precedence: engine.OtherKind,
		Reason:     BackendNotSupported,
		Cure:       engine.Grow | engine.Relax,
		Subject:    describe(s, n),
	}
}

// describe returns the subject of the rejection, such as "mindie runs on cann; the node has cuda".
func describe(s *cluster.Shape, n *cluster.Node) string {
	var has []string
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && !slices.Contains(has, d.Type) {
			has = append(has, d.Type)
		}
	}
	slices.Sort(has)
	backend, have := s.Backend, strings.Join(has, ", ")
	if backend == "" {
		backend = "it"
	}
	if len(has) == 0 {
		have = "no devices"
	}
	return backend + " runs on " + strings.Join(s.Need.Types, ", ") + "; the node has " + have
}
