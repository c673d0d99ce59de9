// Package gpumatchingfilter keeps a task to the devices that were selected for
// it: it turns down nodes that have none of them, nodes that lack those which
// they should have, and nodes with fewer of them than the task takes there.
//
// A selection is never widened. It says what is there and refuses to know who
// holds it: whether a selected device is free is NodeResourcesFit's, and which
// of them is taken Node.Choose's, which keeps to the selection too.
package gpumatchingfilter

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "GPUMatchingFilter"

// The reasons. Waiting cures none of them.
const (
	GPUNotSelected     engine.Reason = "GPUNotSelected"     // no device of the node was selected
	SelectedGPUMissing engine.Reason = "SelectedGPUMissing" // one that was is not there, or lost
	TooFewSelectedGPUs engine.Reason = "TooFewSelectedGPUs" // all are there, but they are too few
)

const cure = engine.Grow | engine.Relax

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: GPUNotSelected, Cure: engine.Relax, Phrase: "none of the selected devices is there", Meaning: "Devices were selected, and none of them is on this node."},
	{Reason: SelectedGPUMissing, Cure: cure, Phrase: "selected devices missing or lost: {subject}; want {want}, {have} there", Meaning: "A device of this node was selected that it does not have, or has lost, and too few are left without it. The subject names such devices; want is how many the task takes here, have how many of the selected ones are there."},
	{Reason: TooFewSelectedGPUs, Cure: cure, Phrase: "fewer than {want} selected devices", One: "no selected device", Meaning: "All devices of this node that were selected are there, and the task takes more of them on one node; one that takes the whole node needs all its devices to be selected. Want is how many it takes, have how many were selected."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(matters, admit) }

// matters also where no device is taken: a form without any, such as one that runs
// on cores alone, keeps to the nodes that were meant.
func matters(s *cluster.Shape) bool { return len(s.Need.Selected) > 0 }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	need := &s.Need
	named := 0 // of this node, whether they are there or not
	for i := range need.Selected {
		if need.Selected[i].Node == n.Name {
			named++
		}
	}
	if named == 0 {
		return &engine.Rejection{Precedence: engine.OtherKind, Reason: GPUNotSelected, Cure: engine.Relax}
	}
	working, there := 0, 0
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost {
			working++
			if need.Selects(d) {
				there++
			}
		}
	}
	want := s.Wanted(working)
	if there >= want {
		return nil
	}
	r := &engine.Rejection{
		Reason: TooFewSelectedGPUs,
		Cure:   cure,
		Want:   engine.Quantity{Value: int64(want), Unit: engine.Count},
		Have:   engine.Quantity{Value: int64(there), Unit: engine.Count},
	}
	if there < named {
		r.Reason, r.Subject = SelectedGPUMissing, missing(need, n)
	}
	return r
}

// missing names the selected devices of the node that are not there.
func missing(need *cluster.Need, n *cluster.Node) string {
	var out []string
	for _, id := range need.Selected {
		if id.Node == n.Name && !has(n, id) {
			out = append(out, id.String())
		}
	}
	return strings.Join(out, ", ")
}

func has(n *cluster.Node, id cluster.DeviceID) bool {
	for i := range n.Devices {
		if d := &n.Devices[i]; d.ID == id {
			return !d.Lost
		}
	}
	return false
}
