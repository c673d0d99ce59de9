package dra

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	resourcev1 "k8s.io/api/resource/v1"
)

// poolKey identifies a pool: names of pools are unique for one driver.
type poolKey struct{ driver, name string }

// pool is the slices of one pool.
type pool struct {
	slices  map[string]*resourcev1.ResourceSlice // by name
	devices []Device                             // of the slices that count, sorted
}

// read reads the devices again. Only slices with the highest generation count: the driver has
// not deleted the others yet.
func (p *pool) read() {
	newest := int64(-1)
	for _, s := range p.slices {
		newest = max(newest, s.Spec.Pool.Generation)
	}
	p.devices = nil
	sets := map[string][]int{}
	memory := map[string]cluster.Bytes{}
	for _, name := range slices.Sorted(maps.Keys(p.slices)) {
		s := p.slices[name]
		if s.Spec.Pool.Generation != newest {
			continue
		}
		for i := range s.Spec.SharedCounters {
			memory[s.Spec.SharedCounters[i].Name] = counterMemory(&s.Spec.SharedCounters[i])
		}
		for i := range s.Spec.Devices {
			if d, ok := readDevice(s, &s.Spec.Devices[i]); ok {
				p.devices = append(p.devices, d)
			}
		}
	}
	slices.SortFunc(p.devices, func(a, b Device) int {
		return cmp.Or(compareNames(a.ID.Device, b.ID.Device), cmp.Compare(a.Node, b.Node))
	})
	p.devices = slices.CompactFunc(p.devices, func(a, b Device) bool { return a.ID == b.ID })
	for i := range p.devices {
		if of := p.devices[i].Source.ConsumesCounters; len(of) > 0 {
			sets[of[0].CounterSet] = append(sets[of[0].CounterSet], i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if list := sets[name]; len(list) > 1 {
			p.partition(name, list, memory[name])
		}
	}
}

func counterMemory(s *resourcev1.CounterSet) cluster.Bytes {
	c := s.Counters["memory"]
	if n, exact := c.Value.AsInt64(); exact && n > 0 && n <= int64(cluster.MaxDeviceMemory) {
		return cluster.Bytes(n)
	}
	return 0
}

// partition makes the devices that consume counters of one set partitions of the one that is
// whole. If none is, they are partitions of a device that is named after the set.
func (p *pool) partition(set string, list []int, memory cluster.Bytes) {
	at := slices.IndexFunc(list, func(i int) bool { return isWhole(&p.devices[i]) })
	var whole Device
	if at >= 0 {
		whole = p.devices[list[at]]
	} else {
		whole = p.devices[list[0]]
		whole.ID.Device = set
		whole.Holder = whole.ID.String()
		whole.Spec.OwnSpec()
		whole.Spec.UUID, whole.Spec.Parent, whole.Spec.Lost = whole.Holder, "", false
		whole.Spec.ID.Index = number(whole.Holder)
		whole.Source = &resourcev1.Device{} // no request selects it
		whole.Spec.Memory = memory
		for _, i := range list {
			whole.Spec.Memory = max(whole.Spec.Memory, p.devices[i].Spec.Memory)
		}
		whole.Spec.Profile, whole.Spec.Resource = "", drivers[whole.ID.Driver].resource
		p.devices = append(p.devices, whole)
	}
	for _, i := range list {
		d := &p.devices[i]
		if d.ID == whole.ID {
			continue
		}
		d.Share = shareOf(d, &whole)
		d.Holder = whole.Holder
	}
}

// isWhole reports whether the device is a GPU, and not a partition of one.
func isWhole(d *Device) bool {
	a := attributes{d.Source, d.ID.Driver}
	return d.Spec.Profile == "" && a.text("parentUUID") == "" && a.text("type") != "mig"
}

// shareOf returns which share of the whole device the partition is: its part of the compute
// slices if it has a MIG profile, and otherwise its part of the memory.
func shareOf(d, whole *Device) cluster.Milli {
	if d.Spec.Profile != "" {
		return cluster.FractionOf(whole.Spec.Product, d.Spec.Profile)
	}
	if whole.Spec.Memory <= 0 || d.Spec.Memory >= whole.Spec.Memory {
		return cluster.Whole
	}
	return max(1, cluster.Milli(cluster.MulDiv(int64(d.Spec.Memory), int64(cluster.Whole), int64(whole.Spec.Memory))))
}
