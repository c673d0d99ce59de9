// Package backendframeworkfilter turns down nodes whose devices speak none of
// the runtimes that a model's backend runs on: MindIE needs cann, and a node of
// cuda devices will never do.
//
// Which runtimes those are is said in the need (Need.Types); it refuses to know
// any backend. Devices that are lost speak nothing. A task that needs no device
// is at home everywhere. How many devices there are is for others to count.
package backendframeworkfilter

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "BackendFrameworkFilter"

// BackendNotSupported is a node without a device that the backend runs on.
const BackendNotSupported engine.Reason = "BackendNotSupported"

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: BackendNotSupported, Cure: engine.Grow | engine.Relax, Phrase: "{subject}", Meaning: "No device of the node speaks a runtime that the backend runs on. The subject says which those are and what the node has instead."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(matters, admit) }

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
		Subject:    contrast(s, n),
	}
}

// contrast is "mindie runs on cann; the node has cuda".
func contrast(s *cluster.Shape, n *cluster.Node) string {
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
