package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Need is what a task asks of the devices of one node. What depends on the
// node's own devices is said here and worked out there.
type Need struct {
	Devices     int        `json:"devices,omitempty"`     // how many devices on this node; 0 with WholeNode or Layers means as many as it takes
	Memory      Bytes      `json:"memory,omitempty"`      // of each device, or
	Share       Milli      `json:"share,omitempty"`       // of each device's own total; neither: whole devices
	SumAtLeast  Bytes      `json:"sumAtLeast,omitempty"`  // all claims together must give this
	SameProduct bool       `json:"sameProduct,omitempty"` // no mix of products
	Products    []string   `json:"products,omitempty"`    // allowed products, sorted; empty: any
	Types       []string   `json:"types,omitempty"`       // runtimes that will do (cuda, rocm, …), sorted; empty: any
	Selected    []DeviceID `json:"selected,omitempty"`    // the only devices that may be taken, sorted; empty: any
	Partition   string     `json:"partition,omitempty"`   // MIG profile
	Resource    string     `json:"resource,omitempty"`    // the name devices are asked for under; "": any
	WholeNode   bool       `json:"wholeNode,omitempty"`   // every device of the node, all of them idle, or with Share that part of each free; never two on a node
	Layers      *Layers    `json:"layers,omitempty"`      // divisible work
}

// spell writes every field of the need.
func (n *Need) spell(w *keyWriter) {
	w.num(int64(n.Devices))
	w.num(int64(n.Memory))
	w.num(int64(n.Share))
	w.num(int64(n.SumAtLeast))
	w.flag(n.SameProduct)
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
		w.num(int64(l.Least))
		w.flag(l.Spill)
	}
}

// DeviceID names one device of the cluster. Devices of one type are counted from
// 0 on each node.
type DeviceID struct {
	Node  string `json:"node,omitempty"`
	Type  string `json:"type,omitempty"`
	Index int    `json:"index,omitempty"`
}

func (d DeviceID) String() string { return fmt.Sprintf("%s:%s:%d", d.Node, d.Type, d.Index) }

// Compare orders devices by node, type and index.
func (d DeviceID) Compare(o DeviceID) int {
	return cmp.Or(strings.Compare(d.Node, o.Node), strings.Compare(d.Type, o.Type), cmp.Compare(d.Index, o.Index))
}

// None reports whether the need asks for no device at all.
func (n *Need) None() bool { return n.Devices == 0 && !n.WholeNode && n.Layers == nil }

// Kind reports whether the device is of the kind the need asks for, whatever its
// size, held or not.
func (n *Need) Kind(d *Device) bool {
	if d.Lost || d.Profile != n.Partition || (n.Resource != "" && n.Resource != d.Resource) {
		return false
	}
	return (len(n.Products) == 0 || containsString(n.Products, d.Product)) &&
		(len(n.Types) == 0 || containsString(n.Types, d.Type))
}

// Selects reports whether the device is one of those selected, if any are.
func (n *Need) Selects(d *Device) bool {
	if len(n.Selected) == 0 {
		return true
	}
	_, found := slices.BinarySearchFunc(n.Selected, d.ID, DeviceID.Compare)
	return found
}

// Milli is the part of a device's time a claim takes of each device, as far as
// the need alone can say: a memory claim depends on the device it lands on.
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
