// Package noderesourcefilter rejects nodes without the kind of device that a task needs:
// nodes without devices, and nodes without a device of the requested resource name,
// partition profile or product.
//
// It checks the kind only. How many devices there are, how large they are and whether they
// are free is checked by NodeResourcesFit. A task that takes a whole node needs every
// device of the node to be of the right kind; for any other task one device is enough.
// Devices that were not selected, or have a runtime that the backend does not support,
// count as missing; GPUMatchingFilter and BackendFrameworkFilter give clearer reasons for them.
package noderesourcefilter

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "NodeResourceFilter"

// The reasons. Waiting cures none of them: the devices of a node do not change by themselves.
const (
	NoDevices            engine.Reason = "NoDevices"            // the node has no working device
	DeviceLabelsInvalid  engine.Reason = "DeviceLabelsInvalid"  // the node's device labels are missing or contradictory
	NoSuchPartition      engine.Reason = "NoSuchPartition"      // no slice of the requested profile
	NoSuchDeviceResource engine.Reason = "NoSuchDeviceResource" // no device with the requested resource name
	ProductMismatch      engine.Reason = "ProductMismatch"      // no device of an allowed product
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: NoDevices, Cure: engine.Grow, Phrase: "no devices", Meaning: "The task needs devices, and the node has no working device that the task may use. If devices were selected, only those count, and only devices of a runtime that the backend supports."},
	{Reason: DeviceLabelsInvalid, Cure: engine.Grow, Phrase: "invalid device labels: {subject}", Meaning: "The node's device labels are missing or contradictory, so the node accepts no task that needs devices. The subject is the label and the problem."},
	{Reason: NoSuchPartition, Cure: engine.Grow | engine.Relax, Phrase: "no slice of profile {subject}", Meaning: "The node has no slice of the partition profile that the task requests. The subject is that profile."},
	{Reason: NoSuchDeviceResource, Cure: engine.Grow | engine.Relax, Phrase: "no device with resource name {subject}", Meaning: "The node has no device with the resource name that the task requests. Its devices may be divided into partitions, which have names of their own. The subject is the resource name."},
	{Reason: ProductMismatch, Cure: engine.Grow | engine.Relax, Phrase: "no device of {subject}", Meaning: "No device of the node is of a product that the task allows; for a task that takes the whole node, not all of them are. The subject is the list of allowed products."},
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

func matters(s *cluster.Shape) bool { return !s.Need.None() }

// admit returns at the first device of the right kind, except for a task that takes the whole node.
func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if n.Defect != nil {
		return &engine.Rejection{
			Reason:  DeviceLabelsInvalid,
			Cure:    engine.Grow,
			Subject: n.Defect.Label + ": " + n.Defect.Problem,
		}
	}
	need := &s.Need
	if d := n.Sample(); d != nil && len(need.Selected) == 0 && hasRuntime(need, d) && kindOf(need, d) == rightKind {
		return nil // all devices of the node are equal to the sample
	}
	working, right, nearest := 0, 0, noDevice
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || !need.Selects(d) || !hasRuntime(need, d) {
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

// hasRuntime reports whether the device has a runtime that the task supports.
func hasRuntime(need *cluster.Need, d *cluster.Device) bool {
	return len(need.Types) == 0 || slices.Contains(need.Types, d.Type)
}

// kind is how close a device is to the kind that is needed. The closest device of a node
// determines the reason of the rejection.
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
		return otherResource // a slice does not count as the device that it is cut from
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
