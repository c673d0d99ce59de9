// Package noderesourcefilter turns down nodes that do not have the kind of
// device a task needs: none at all, or none under the asked resource name, of
// the asked partition profile or of an allowed product.
//
// It decides by kind and refuses to know how many devices there are, how big
// they are and who holds them: that is NodeResourcesFit's. Only a task that
// takes a whole node needs every device of it to be of the right kind. Devices
// that were not selected, or speak another runtime than the backend's, count as
// not there; GPUMatchingFilter and BackendFrameworkFilter say so in clearer words.
package noderesourcefilter

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeResourceFilter"

// The reasons. Waiting cures none of them: a node's kind of device does not change by itself.
const (
	NoDevices            engine.Reason = "NoDevices"            // the node offers no device that works
	DeviceLabelsInvalid  engine.Reason = "DeviceLabelsInvalid"  // what the node says about its devices cannot be believed
	NoSuchPartition      engine.Reason = "NoSuchPartition"      // no slice of the asked profile
	NoSuchDeviceResource engine.Reason = "NoSuchDeviceResource" // no device under the asked resource name
	ProductMismatch      engine.Reason = "ProductMismatch"      // no device of an allowed product
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: NoDevices, Cure: engine.Grow, Phrase: "no devices", Meaning: "The task needs devices and the node offers none that works and that the task may have: one that was selected, where devices were, and that speaks a runtime of its backend."},
	{Reason: DeviceLabelsInvalid, Cure: engine.Grow, Phrase: "device labels cannot be believed: {subject}", Meaning: "The node's device labels are missing or make no sense, so it takes no task that needs devices. The subject is the label and what is wrong with it."},
	{Reason: NoSuchPartition, Cure: engine.Grow | engine.Relax, Phrase: "no slice of profile {subject}", Meaning: "The node has no slice of the partition profile that the task asks for. The subject is that profile."},
	{Reason: NoSuchDeviceResource, Cure: engine.Grow | engine.Relax, Phrase: "no device called {subject}", Meaning: "The node has no device that is asked for under this resource name; its devices may be cut into partitions, which have names of their own. The subject is the resource name."},
	{Reason: ProductMismatch, Cure: engine.Grow | engine.Relax, Phrase: "no device of {subject}", Meaning: "None of the node's devices is of a product that the task allows; for a task that takes the whole node: not all of them are. The subject is the list of allowed products."},
}

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string                    { return Name }
func (plugin) Reasons() []engine.ReasonDoc     { return reasons }
func (plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddStaticFilter(matters, admit) }

func matters(s *cluster.Shape) bool { return !s.Need.None() }

// admit stops at the first device of the right kind; a whole node has all its devices looked at.
func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Defect != nil {
		return &engine.Rejection{
			Reason:  DeviceLabelsInvalid,
			Cure:    engine.Grow,
			Subject: n.Defect.Label + ": " + n.Defect.Problem,
		}
	}
	need := &s.Need
	if d := n.Sample(); d != nil && len(need.Selected) == 0 && speaks(need, d) && kindOf(need, d) == rightKind {
		return nil // all of its devices are
	}
	working, right, nearest := 0, 0, noDevice
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || !need.Selects(d) || !speaks(need, d) {
			continue
		}
		working++
		k := kindOf(need, d)
		if k == rightKind && !need.WholeNode {
			return nil
		}
		if k == rightKind {
			right++
		} else {
			nearest = max(nearest, k)
		}
	}
	if working > 0 && right == working {
		return nil
	}
	return reject(s, n, nearest, working, right)
}

// speaks reports whether the device is of a runtime that will do.
func speaks(need *cluster.Need, d *cluster.Device) bool {
	return len(need.Types) == 0 || slices.Contains(need.Types, d.Type)
}

// kind is how near a device is to the kind that is needed. The nearest of a
// node's devices says what is wrong with the node.
type kind int

const (
	noDevice kind = iota
	otherPartition
	otherResource
	otherProduct
	rightKind
)

func kindOf(need *cluster.Need, d *cluster.Device) kind {
	switch {
	case d.Profile != need.Partition:
		if need.Partition != "" {
			return otherPartition
		}
		return otherResource // a slice does not count among the devices it was cut from
	case need.Resource != "" && d.Resource != need.Resource:
		return otherResource
	case len(need.Products) > 0 && !slices.Contains(need.Products, d.Product):
		return otherProduct
	}
	return rightKind
}

func reject(s *cluster.Shape, n *cluster.Node, nearest kind, working, right int) *engine.Rejection {
	need, want := &s.Need, s.Wanted(working)
	r := &engine.Rejection{
		Precedence: engine.OtherKind,
		Cure:       engine.Grow | engine.Relax,
		Want:       engine.Quantity{Value: int64(want), Unit: engine.Count},
		Have:       engine.Quantity{Value: int64(right), Unit: engine.Count},
	}
	resource := need.Resource
	if resource == "" {
		resource = n.DeviceResource
	}
	switch nearest {
	case noDevice:
		r.Reason, r.Subject, r.Cure = NoDevices, resource, engine.Grow
	case otherPartition:
		r.Reason, r.Subject = NoSuchPartition, need.Partition
	case otherResource:
		r.Reason, r.Subject = NoSuchDeviceResource, resource
	case otherProduct:
		r.Reason, r.Subject = ProductMismatch, strings.Join(need.Products, ", ")
	}
	return r
}
