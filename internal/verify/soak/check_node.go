package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// nodeSums adds up what tasks hold of one node, independently of the sums in State.
// Booked is what bound and nominated tasks hold, and what overdue tasks hold. Physical
// is what bound and releasing tasks hold. Each must fit on the node.
type nodeSums struct {
	node                    *cluster.Node
	booked, physical, both  map[string]int64 // by resource; both: of tasks that count as booked and as physical
	bookedCores, takenCores int64            // isolated cores that are booked, and that are held physically
	devices                 []deviceSums
}

// deviceSums is what tasks hold of one device.
type deviceSums struct {
	milli, physicalMilli   cluster.Milli
	memory, physicalMemory cluster.Bytes
	booked, physical       []*cluster.Task
}

func newNodeSums(n *cluster.Node) *nodeSums {
	s := &nodeSums{node: n, booked: map[string]int64{}, physical: map[string]int64{}, both: map[string]int64{}, devices: make([]deviceSums, len(n.Devices))}
	for _, t := range n.Tasks {
		s.add(t)
	}
	return s
}

func (s *nodeSums) add(t *cluster.Task) {
	isBooked, isPhysical := !isFreeing(t), t.Status != cluster.Nominated
	for _, a := range t.Shape.Resources {
		v := a.Value
		if a.Name == cluster.Memory {
			v += hostMemory(s.node, t.Shape, t.Claims)
		}
		if isBooked {
			s.booked[a.Name] += v
		}
		if isPhysical {
			s.physical[a.Name] += v
		}
		if isBooked && isPhysical {
			s.both[a.Name] += v
		}
	}
	if t.Shape.Isolation.CPU == cluster.CPUStrictIsolated {
		if isBooked {
			s.bookedCores += t.Shape.Cores()
		}
		if isPhysical {
			s.takenCores += t.Shape.Cores()
		}
	}
	for _, c := range t.Claims {
		d := &s.devices[c.Device]
		if isBooked {
			d.milli += c.Milli
			d.memory += c.Memory
			d.booked = append(d.booked, t)
		}
		if isPhysical {
			d.physicalMilli += c.Milli
			d.physicalMemory += c.Memory
			d.physical = append(d.physical, t)
		}
	}
}

// isFreeing reports whether the room of the task counts as becoming free. The room of
// an overdue task counts as used.
func isFreeing(t *cluster.Task) bool { return t.Status == cluster.Releasing && !t.Overdue() }

// excess returns an error if tasks hold more than the node has. Reported facts may
// cause that, decisions may not.
func (s *nodeSums) excess() error {
	if all := s.node.SupportedIsolation.IsolableCores; s.bookedCores > all || s.takenCores > all {
		return fmt.Errorf("%d isolated cores are booked and %d held of %d", s.bookedCores, s.takenCores, all)
	}
	for i := range s.node.Resources {
		if l := &s.node.Resources[i]; max(l.Used, s.physical[l.Name]) > l.Capacity-l.Foreign {
			return fmt.Errorf("%s: %d booked and %d held of %d", l.Name, l.Used, s.physical[l.Name], l.Capacity)
		}
	}
	for i := range s.devices {
		if d := &s.devices[i]; max(d.memory, d.physicalMemory) > s.node.Devices[i].Room() {
			return s.bookedTwice(i)
		}
	}
	return checkShared(s.node)
}

func (s *nodeSums) bookedTwice(device int) error {
	d := &s.devices[device]
	return fmt.Errorf("device %d is booked twice: %d milli booked, %d held; %d and %d bytes of %d", device, d.milli, d.physicalMilli, d.memory, d.physicalMemory, s.node.Devices[device].Room())
}

// compareResources compares the sums with the ledgers of the node.
func (s *nodeSums) compareResources() error {
	for i := range s.node.Resources {
		l := &s.node.Resources[i]
		if l.Used != s.booked[l.Name] {
			return fmt.Errorf("%s: State has a use of %d, and tasks hold %d", l.Name, l.Used, s.booked[l.Name])
		}
		if l.Releasing != s.physical[l.Name]-s.both[l.Name] {
			return fmt.Errorf("%s: State has %d releasing, but %d are held, of which %d are not releasing", l.Name, l.Releasing, s.physical[l.Name], s.both[l.Name])
		}
	}
	return nil
}

// compareDevices compares the sums with those of the devices, and checks that no
// device is held twice.
func (s *nodeSums) compareDevices() error {
	var used int64
	for i := range s.devices {
		d, sums := &s.node.Devices[i], &s.devices[i]
		if !d.Lost && d.Resource == s.node.DeviceResource {
			used += int64(sums.milli)
		}
		if d.Use.Milli != sums.milli || d.Use.Memory != sums.memory || int(d.Use.Leases) != len(sums.booked) {
			return fmt.Errorf("device %d: State has a use of %+v, and tasks hold %d milli and %d bytes", i, d.Use, sums.milli, sums.memory)
		}
		if max(sums.milli, sums.physicalMilli) > cluster.Whole {
			return s.bookedTwice(i)
		}
		for _, holders := range [][]*cluster.Task{sums.booked, sums.physical} {
			if err := checkExclusive(holders); err != nil {
				return fmt.Errorf("device %d: %w", i, err)
			}
		}
	}
	if s.node.DeviceUsed() != used {
		return fmt.Errorf("devices: the node has a use of %d, and tasks hold %d", s.node.DeviceUsed(), used)
	}
	return nil
}

// checkShared checks that tasks do not use more memory than the node has on devices
// that share one memory, such as the replicas of a device under time-slicing. Only
// tasks count that request a share, bytes or layers, and no exclusive device.
func checkShared(n *cluster.Node) error {
	booked, held := map[string]cluster.Bytes{}, map[string]cluster.Bytes{}
	for _, t := range n.Tasks {
		need := &t.Shape.Need
		if t.Shape.Isolation.Exclusive() || need.Memory == 0 && need.Share == 0 && need.Layers == nil {
			continue
		}
		for _, c := range t.Claims {
			if !isFreeing(t) {
				booked[n.Devices[c.Device].Shares] += c.Memory
			}
			if t.Status != cluster.Nominated {
				held[n.Devices[c.Device].Shares] += c.Memory
			}
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if most := max(booked[d.Shares], held[d.Shares]); d.Shares != "" && most > d.Memory-d.Reserved {
			return fmt.Errorf("device %d and others share %d bytes, and %d are booked or held", i, d.Memory-d.Reserved, most)
		}
	}
	return nil
}

// checkExclusive checks that a task which holds the device exclusively is its only
// holder, and that at most one of the tasks has the whole node.
func checkExclusive(holders []*cluster.Task) error {
	for _, t := range holders {
		for _, o := range holders {
			if t == o {
				continue
			}
			if t.Shape.Need.WholeNode && o.Shape.Need.WholeNode {
				return fmt.Errorf("%s and %s both have the whole node", t.ID, o.ID)
			}
			ti, oi := t.Shape.Isolation, o.Shape.Isolation
			switch ti.GPU {
			case cluster.GPUDeviceExclusive, cluster.GPUPartitionExclusive:
				return fmt.Errorf("%s holds it exclusively, and %s holds it as well", t.ID, o.ID)
			case cluster.GPUSessionExclusive:
				if ti.Session == "" || oi.GPU != ti.GPU || oi.Session != ti.Session {
					return fmt.Errorf("%s holds it exclusively for its session, and %s holds it as well", t.ID, o.ID)
				}
			}
		}
	}
	return nil
}
