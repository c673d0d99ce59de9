package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// deviceProducts lists the devices that nodes have, apart from MIG slices.
var deviceProducts = []struct {
	name, runtime string
	memory        cluster.Bytes
}{{"A100", "cuda", 80 << 30}, {"A10", "cuda", 24 << 30}, {"L4", "cuda", 24 << 30}, {"MI210", "rocm", 64 << 30}}

// nodeMaker makes random nodes, and changes nodes at random.
type nodeMaker struct {
	dice *dice
	// unconstrained nodes have no constraints such as taints: only room limits which
	// tasks can be placed on them.
	unconstrained bool
}

// node returns a random node. It may have the same devices as one of the others.
func (m *nodeMaker) node(name string, others map[string]*cluster.Node) *cluster.Node {
	n := &cluster.Node{Name: name}
	n.Resources = []cluster.Ledger{
		{Name: cluster.CPU, Capacity: int64(64-8*m.dice.roll(8)) * 1000},
		{Name: cluster.Memory, Capacity: int64(256-32*m.dice.roll(8)) << 30},
	}
	if m.dice.chance(20) {
		n.Resources = append(n.Resources, cluster.Ledger{Name: "rdma/hca", Capacity: 2})
	}
	m.label(n)
	m.addDevices(n, others)
	if m.unconstrained {
		return n
	}
	n.SupportedIsolation.GPU = append(n.SupportedIsolation.GPU, cluster.GPUClasses[m.dice.roll(4):]...)
	n.SupportedIsolation.CPU = append(n.SupportedIsolation.CPU, cluster.CPUClasses[m.dice.roll(3):]...)
	n.SupportedIsolation.IsolableCores = int64(m.dice.roll(8))
	if m.dice.chance(15) {
		n.SupportedIsolation.Share = cluster.ShareExclusive
	}
	return n
}

// addDevices adds whole devices, MIG slices or time-sliced devices to a node, or none.
func (m *nodeMaker) addDevices(n *cluster.Node, others map[string]*cluster.Node) {
	for range []int{1, 2, 1, 0}[m.dice.roll(4)] {
		product := pick(m.dice, deviceProducts)
		for range []int{4, 2, 1}[m.dice.roll(3)] {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: product.name, Type: product.runtime, Memory: product.memory}, UUID: fmt.Sprintf("%s-%d", n.Name, len(n.Devices))})
		}
	}
	if names := sorted(others); len(names) > 0 && m.dice.chance(30) { // one more node of an existing group
		n.Devices = slices.Clone(others[pick(m.dice, names)].Devices)
		for i := range n.Devices {
			n.Devices[i].UUID, n.Devices[i].Lost = fmt.Sprintf("%s-%d", n.Name, i), false // Shares is kept: it says which devices of the node share memory
		}
	}
	if m.dice.chance(15) { // devices use the memory of the node
		n.Unified = true
	}
	if m.dice.chance(30) {
		for i := range n.Devices {
			if reserved := cluster.Bytes(m.dice.roll(4)) << 30; n.Devices[i].Shares == "" {
				n.Devices[i].OwnSpec().Reserved = reserved
			}
		}
	}
	if m.dice.chance(20) {
		for i := range 3 {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "A100", Type: "cuda", Memory: 10 << 30, Profile: "1g.10gb", Parent: n.Name + "-mig"}, UUID: fmt.Sprintf("%s-mig-%d", n.Name, i)})
		}
	}
	if m.dice.chance(15) && len(n.Devices) == 0 { // devices that time-slicing offers several times
		n.Sharing = cluster.Sharing{Strategy: "time-slicing", Replicas: 2 + m.dice.roll(3)}
		for i := range 1 + m.dice.roll(2) {
			n.Devices = append(n.Devices, cluster.Replicate(cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Memory: 24 << 30}, UUID: fmt.Sprintf("%s-%d", n.Name, i)}, n.Sharing)...)
		}
	}
}

// label sets the labels, cell, taints and phase of a node.
func (m *nodeMaker) label(n *cluster.Node) {
	n.Labels = map[string]string{"rack": pick(m.dice, []string{"r1", "r2", "r3"})}
	if m.dice.chance(50) {
		n.Labels["zone"] = pick(m.dice, []string{"a", "b"})
	}
	if m.dice.chance(20) {
		n.Labels["kai.scheduler/instance-type"] = "spot"
	}
	if m.unconstrained {
		return
	}
	n.Cell = pick(m.dice, []string{"", "west", "east"})
	n.Taints = nil
	if m.dice.chance(15) {
		n.Taints = append(n.Taints, cluster.Taint{Key: "gpu", Value: "only", Effect: pick(m.dice, cluster.Effects)})
	}
	n.Unschedulable = m.dice.chance(5)
	n.Phase = pick(m.dice, []cluster.Phase{"", "", "", "", cluster.PhaseReady, "NOT_READY", "UNREACHABLE"})
}

// change changes the labels of a node, or its devices, cores or memory. isHeld reports
// whether a task holds a device. change returns true if tasks may hold more than the
// node has afterwards.
func (m *nodeMaker) change(n *cluster.Node, isHeld func(device int) bool) (overcommitted bool) {
	last := len(n.Devices) - 1
	switch what := m.dice.roll(8); {
	case what < 2:
		m.label(n)
	case what < 5 && last >= 0:
		d := &n.Devices[m.dice.roll(last+1)]
		d.Lost = !d.Lost
	case what < 6 && last >= 0:
		if i := m.dice.roll(last + 1); !isHeld(i) && n.Devices[i].Shares == "" {
			n.Devices[i].OwnSpec().Memory /= 2 // the device was replaced
			return true
		}
	case what < 7 && last > 0:
		n.Devices = n.Devices[:last]
	default:
		for i := range n.Resources {
			if l := &n.Resources[i]; l.Name == cluster.CPU {
				l.Capacity = int64(8+8*m.dice.roll(8)) * 1000
				overcommitted = true
			}
			if l := &n.Resources[i]; l.Name == cluster.Memory && n.Unified && m.dice.chance(50) {
				l.Capacity = int64(32+32*m.dice.roll(7)) << 30
			}
		}
	}
	return overcommitted
}

// foreignMemory returns how much memory of a device foreign processes use.
func (m *nodeMaker) foreignMemory() cluster.Bytes {
	return pick(m.dice, []cluster.Bytes{0, 0, 0, 1 << 29, 4 << 30, 20 << 30, 200 << 30})
}
