package cluster

import (
	"cmp"
	"fmt"
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

// whole reports whether each device is taken whole.
func (n *Need) whole() bool {
	return n.Memory == 0 && n.Layers == nil && (n.Share == 0 || n.Share >= Whole)
}

// Milli is the part of a device's time a claim takes of each device, as far as
// the need alone can say: a memory claim depends on the device it lands on.
func (n *Need) Milli() Milli {
	if n.Share > 0 {
		return n.Share
	}
	return Whole
}
