// Package gpumatchingfilter restricts a task to the devices that were selected for it. It
// rejects nodes without a selected device, and nodes with fewer working devices among the
// selected ones than the task takes there.
//
// Devices that were not selected are never used instead. The plugin does not check whether
// a selected device is free: NodeResourcesFit does, and Node.Choose, which
// chooses among the devices, respects the selection too.
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
	SelectedGPUMissing engine.Reason = "SelectedGPUMissing" // a selected device is missing or lost
	TooFewSelectedGPUs engine.Reason = "TooFewSelectedGPUs" // no selected device is missing, but they are too few
)

const cureOtherDevices = engine.Grow | engine.Relax

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: GPUNotSelected, Cure: engine.Relax, Phrase: "has none of the selected devices", Meaning: "Devices were selected, and none of them is on this node."},
	{Reason: SelectedGPUMissing, Cure: cureOtherDevices, Phrase: "selected devices missing or lost: {subject}; want {want}, have {have}", Meaning: "Selected devices of this node are missing or lost, and the others are too few. The subject lists the missing devices. Want is how many devices the task takes on this node, have how many selected devices work."},
	{Reason: TooFewSelectedGPUs, Cure: cureOtherDevices, Phrase: "fewer than {want} selected devices", One: "no selected device", Meaning: "No selected device of this node is missing, but the task takes more devices on one node than were selected. A task that takes a whole node needs all devices of the node to be selected. Want is how many it takes, have how many were selected."},
}

type plugin struct{ engine.FixedHooks }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(matters, admit) }

// matters applies the filter also to tasks that take no device: a form of a model that runs
// on the CPU alone is restricted to the nodes of the selected devices too.
func matters(s *cluster.Shape) bool { return len(s.Need.Selected) > 0 }

func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	need := &s.Need
	named := 0 // selected devices of this node, whether they exist or not
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
		Cure:   cureOtherDevices,
		Want:   engine.Quantity{Value: int64(want), Unit: engine.Count},
		Have:   engine.Quantity{Value: int64(there), Unit: engine.Count},
	}
	if there < named {
		r.Reason, r.Subject = SelectedGPUMissing, missing(need, n)
	}
	return r
}

// missing lists the selected devices of the node that are missing or lost.
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
