// Package fragmentation measures how much of the free devices of a node is of no use to a workload,
// as defined in "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
// Gradient Descent" (USENIX ATC'23).
package fragmentation

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Workload is a list of requests with the share of tasks that make each of them. The shares add up
// to Unit.
type Workload []Demand

// Unit is the sum of the shares of a workload.
const Unit = 1_000_000

// Demand is a request, and how frequent it is.
type Demand struct {
	Share    int64 // of all tasks, in millionths
	CPU      int64 // in thousandths of a core
	Devices  int
	Milli    cluster.Milli // of each device, in thousandths
	Products []string      // the products that are allowed; empty: any
}

// Counts returns a demand for each of the requests, with its weight as the Share. A request of device
// memory counts as one of whole devices.
func Counts(list []cluster.Requested) []Demand {
	out := make([]Demand, len(list))
	for i := range list {
		r := &list[i]
		out[i] = Demand{Share: r.Weight, CPU: r.Resources.Of(cluster.CPU), Devices: r.Need.Devices, Milli: r.Need.Milli(), Products: r.Need.Products}
	}
	return out
}

// popular is how many of all tasks the requests of a workload make, in percent.
const popular = 95

// Popular returns the workload of the most frequent requests, which 95 % of the tasks make. The
// Share of each demand is the number of tasks that make it, and demands differ in other fields.
func Popular(counts []Demand) Workload {
	list := slices.Clone(counts)
	slices.SortStableFunc(list, func(a, b Demand) int { return cmp.Compare(b.Share, a.Share) })
	var total, sum int64
	for i := range list {
		total += list[i].Share
	}
	n := 0
	for n < len(list) && sum*100 < total*popular {
		sum += list[n].Share
		n++
	}
	list = list[:n]
	for i := range list {
		list[i].Share = list[i].Share * Unit / sum
	}
	return list
}

// Node is the free room of a node.
type Node struct {
	CPU     int64 // in thousandths of a core
	Devices []Device
}

// Device is the free room of a device.
type Device struct {
	Product string
	Free    cluster.Milli
}

// Read sets the Node to the free room of n.
func (x *Node) Read(n *cluster.Node) {
	x.CPU, x.Devices = 0, x.Devices[:0]
	if l := n.Ledger(cluster.CPU); l != nil {
		x.CPU = l.Free()
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		free := d.FreeMilli()
		if d.Lost {
			free = 0
		}
		x.Devices = append(x.Devices, Device{d.Product, free})
	}
}

// Of returns the expected thousandths of devices of the node that are free and that a task of the
// workload cannot use, multiplied by Unit.
func (w Workload) Of(x *Node) int64 {
	var free int64
	for i := range x.Devices {
		free += int64(x.Devices[i].Free)
	}
	var sum int64
	for i := range w {
		sum += w[i].Share * w[i].unusable(x, free)
	}
	return sum
}

// unusable returns how much of the free room of the node a task with this request cannot use: all
// of it if the task does not fit, and otherwise the devices that have too little left.
func (d *Demand) unusable(x *Node, free int64) int64 {
	if d.Devices == 0 || x.CPU < d.CPU {
		return free
	}
	fit, usable := 0, int64(0)
	for i := range x.Devices {
		if v := &x.Devices[i]; v.Free >= d.Milli && (len(d.Products) == 0 || slices.Contains(d.Products, v.Product)) {
			fit++
			usable += int64(v.Free)
		}
	}
	if fit < d.Devices {
		return free
	}
	return free - usable
}
