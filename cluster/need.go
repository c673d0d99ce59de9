package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Need is the part of a task's request that is about the devices of its node. How much
// that is in thousandths and bytes may depend on the devices of the node.
type Need struct {
	Devices     int        `json:"devices,omitempty"`     // how many devices; 0 with WholeNode or Layers means as many as are needed
	Memory      Bytes      `json:"memory,omitempty"`      // how much memory of each device; 0 together with Share 0: whole devices
	Share       Milli      `json:"share,omitempty"`       // which share of each device, in thousandths
	SumAtLeast  Bytes      `json:"sumAtLeast,omitempty"`  // the least memory of all claims together
	Sums        []Sum      `json:"sums,omitempty"`        // SumAtLeast of products for which it is more, sorted by product
	SameProduct bool       `json:"sameProduct,omitempty"` // all devices must be of the same product
	SameLink    bool       `json:"sameLink,omitempty"`    // all devices must be in one NVLink domain
	Products    []string   `json:"products,omitempty"`    // the products that are allowed, sorted; empty: any
	Types       []string   `json:"types,omitempty"`       // the runtimes that are allowed (cuda, rocm, …), sorted; empty: any
	Selected    []DeviceID `json:"selected,omitempty"`    // the only devices that are allowed, sorted; empty: any
	Partition   string     `json:"partition,omitempty"`   // the MIG profile of the slices that are requested; "": no MIG slices by profile
	Resource    string     `json:"resource,omitempty"`    // the resource name of the devices; "": any
	WholeNode   bool       `json:"wholeNode,omitempty"`   // all devices of the node, which must be idle, or with Share this share of each; a node takes one such task
	Layers      *Layers    `json:"layers,omitempty"`      // divisible work; nil: the work is not divisible
}

// encode writes every field of the need, as a part of the key of its shape.
func (n *Need) encode(w *keyWriter) {
	w.num(int64(n.Devices))
	w.num(int64(n.Memory))
	w.num(int64(n.Share))
	w.num(int64(n.SumAtLeast))
	w.num(int64(len(n.Sums)))
	for _, s := range n.Sums {
		w.str(s.Product)
		w.num(int64(s.AtLeast))
	}
	w.flag(n.SameProduct)
	w.flag(n.SameLink)
	w.strs(n.Products)
	w.strs(n.Types)
	w.num(int64(len(n.Selected)))
	for _, d := range n.Selected {
		w.str(d.Node)
		w.str(d.Type)
		w.num(int64(d.Index))
	}
	w.str(n.Partition)
	w.str(n.Resource)
	w.flag(n.WholeNode)
	w.flag(n.Layers != nil)
	if l := n.Layers; l != nil {
		w.num(int64(l.Total))
		w.num(int64(l.Bytes))
		w.num(int64(l.Fixed))
		w.num(int64(len(l.FixedOn)))
		for _, f := range l.FixedOn {
			w.str(f.Product)
			w.num(int64(f.AtLeast))
		}
		w.num(int64(l.Least))
		w.flag(l.Spill)
		w.num(int64(l.Outside))
		w.num(int64(len(l.Sizes)))
		for _, r := range l.Sizes {
			w.num(int64(r.Count))
			w.num(int64(r.Bytes))
		}
	}
}

// Sum is an amount of memory on devices of one product: the least of all claims together, or
// what layers need on each device.
type Sum struct {
	Product string `json:"product"`
	AtLeast Bytes  `json:"atLeast"`
}

// SumOn returns the least memory of all claims together on devices of this product.
func (n *Need) SumOn(product string) Bytes {
	for i := range n.Sums {
		if n.Sums[i].Product == product {
			return n.Sums[i].AtLeast
		}
	}
	return n.SumAtLeast
}

// DeviceID names one device of the cluster: the node, the runtime of the device, and its
// number among the devices of that runtime on the node, from 0.
type DeviceID struct {
	Node  string `json:"node,omitempty"`
	Type  string `json:"type,omitempty"`
	Index int    `json:"index,omitempty"`
}

// String returns the ID in the form "node:cuda:0".
func (d DeviceID) String() string { return fmt.Sprintf("%s:%s:%d", d.Node, d.Type, d.Index) }

// Compare orders IDs by node, type and index.
func (d DeviceID) Compare(o DeviceID) int {
	return cmp.Or(strings.Compare(d.Node, o.Node), strings.Compare(d.Type, o.Type), cmp.Compare(d.Index, o.Index))
}

// None reports whether the need requests no devices.
func (n *Need) None() bool { return n.Devices == 0 && !n.WholeNode && n.Layers == nil }

// Kind reports whether the device is of the requested kind: its product, runtime, MIG
// profile and resource name are allowed, and it is not lost. The size of the device, and
// what is held of it, are not considered.
func (n *Need) Kind(d *Device) bool {
	if d.Lost || d.Profile != n.Partition || (n.Resource != "" && n.Resource != d.Resource) {
		return false
	}
	return (len(n.Products) == 0 || containsString(n.Products, d.Product)) &&
		(len(n.Types) == 0 || containsString(n.Types, d.Type))
}

// Selects reports whether the device is in Selected. It is true for every device if
// Selected is empty.
func (n *Need) Selects(d *Device) bool {
	if len(n.Selected) == 0 {
		return true
	}
	_, found := slices.BinarySearchFunc(n.Selected, d.ID, DeviceID.Compare)
	return found
}

// Milli returns how much of each device a task takes, in thousandths, as far as this
// does not depend on the device: the Share, or the whole device. For a request of memory
// the real figure is usually less, and depends on the memory of the device.
func (n *Need) Milli() Milli {
	if n.Share > 0 {
		return n.Share
	}
	return Whole
}

func containsString(list []string, s string) bool {
	for i := range list {
		if list[i] == s {
			return true
		}
	}
	return false
}

// TakeWhole changes the need so that it takes whole devices of the same number, which are large
// enough for what it would have claimed of them. It returns false, and changes nothing, if the
// number of devices or of layers on them depends on the node.
func (n *Need) TakeWhole() bool {
	switch l := n.Layers; {
	case l != nil && (n.Devices == 0 || l.Spill):
		return false
	case l != nil:
		devices := Bytes(n.Devices)
		largest := Bytes((l.Total+n.Devices-1)/n.Devices) * l.Bytes // as if all layers were as large as the largest
		n.SumAtLeast, n.Sums = devices*(l.Fixed+largest), nil
		for _, f := range l.FixedOn {
			n.Sums = append(n.Sums, Sum{f.Product, devices * (f.AtLeast + largest)})
		}
		n.Layers, n.Memory = nil, 0
	case n.Share > 0 && n.Share < Whole:
		n.SumAtLeast, n.Sums = n.ofWhole(n.SumAtLeast), slices.Clone(n.Sums)
		for i := range n.Sums {
			n.Sums[i].AtLeast = n.ofWhole(n.Sums[i].AtLeast)
		}
		n.Share = 0
	case n.Memory > 0:
		n.SumAtLeast, n.Memory = n.Memory*Bytes(max(1, n.Devices)), 0
	}
	return true
}

// ofWhole returns how large devices are of which the share is the given amount.
func (n *Need) ofWhole(b Bytes) Bytes { return (b*Bytes(Whole) + Bytes(n.Share) - 1) / Bytes(n.Share) }
