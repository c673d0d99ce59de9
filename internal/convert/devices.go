package convert

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

var sharingStrategies = []string{"time-slicing", "mps"}

// listedDevices sets the devices of the node as its spec lists them.
func listedDevices(n *cluster.Node, o *v1alpha1.Node, r reporter) {
	at := path{"spec", "devices"}
	type place struct{ set, device int }
	uuids := make(map[string]place, 8)
	physical := 0
	for i := range o.Spec.Devices {
		set, at := &o.Spec.Devices[i], at.Add(i)
		sharing := makeSharing(set, at, r)
		if i == 0 {
			n.Sharing = sharing
		} else if sharing != n.Sharing {
			r.errorf(at, "all devices of a node are shared alike: give every entry the same sharing")
		}
		if !checkSet(set, at, r) {
			continue
		}
		// This is checked before any device is made: an entry of a few lines may ask for millions.
		if devices := set.Count * devicesOfEach(set, sharing); len(n.Devices)+devices > maxDevices {
			r.errorf(at, "the node has more than %d devices, slices and replicas counted", maxDevices)
			return
		}
		n.Devices = slices.Grow(n.Devices, set.Count)
		for k := range set.Count {
			d := physicalDevice(n.Name, set, k, physical)
			if first, twice := uuids[d.UUID]; twice {
				r.errorf(at.Add("uuids", k), "device %s is already %s", phrase.Quote(d.UUID), path{"spec", "devices", first.set, "uuids", first.device})
			}
			uuids[d.UUID] = place{i, k}
			n.Devices = append(n.Devices, divide(n.Name, d, set, physical, sharing, at, r)...)
			physical++
		}
	}
	if n.DeviceResource = o.Spec.DeviceResource; n.DeviceResource == "" {
		n.DeviceResource = typeResource(deviceType(&o.Spec.Devices[0]))
	} else {
		checkKey(n.DeviceResource, path{"spec", "deviceResource"}, r)
	}
}

func deviceType(set *v1alpha1.DeviceSet) string {
	if set.Type == "" {
		return "cuda"
	}
	return set.Type
}

func makeSharing(set *v1alpha1.DeviceSet, at path, r reporter) cluster.Sharing {
	s := set.Sharing
	if s == nil {
		return cluster.Sharing{}
	}
	at = at.Add("sharing")
	if s.Strategy == "" {
		r.errorf(at, "say the strategy: %s", phrase.Either(sharingStrategies))
	}
	checkEnum(s.Strategy, sharingStrategies, at.Add("strategy"), r)
	if s.Replicas < 2 || s.Replicas > maxDevices {
		r.errorf(at.Add("replicas"), "want from 2 to %d replicas of each device, have %d", maxDevices, s.Replicas)
		return cluster.Sharing{}
	}
	if len(set.Partitions) > 0 {
		r.errorf(at, "partitions and sharing cannot be combined; keep one")
		return cluster.Sharing{}
	}
	return cluster.Sharing{Strategy: s.Strategy, Replicas: s.Replicas}
}

// checkSet checks an entry of the list and reports whether devices can be made of it.
func checkSet(set *v1alpha1.DeviceSet, at path, r reporter) bool {
	ok := true
	fail := func(field, format string, args ...any) {
		r.errorf(at.Add(field), format, args...)
		ok = false
	}
	if set.Product == "" {
		fail("product", "say the product, such as NVIDIA-H100-80GB-HBM3")
	}
	if set.Count < 1 || set.Count > maxDevices {
		fail("count", "want from 1 to %d devices, have %d", maxDevices, set.Count)
	}
	if checkMemory(set.Memory, at.Add("memory"), r) == 0 {
		ok = false
	}
	if q := set.Reserved; q != nil {
		bytesOf(*q, at.Add("reserved"), r) // reports an amount that is negative or too large
		switch {
		case q.Sign() < 0:
			ok = false
		case q.Cmp(set.Memory) >= 0:
			fail("reserved", "want less than the %s that each device has, have %s", set.Memory.String(), q.String())
		case len(set.Partitions) > 0 || set.Sharing != nil:
			fail("reserved", "slices and shared devices reserve nothing; lower their memory instead")
		}
	}
	for _, x := range []struct {
		field string
		have  int
	}{{"uuids", len(set.UUIDs)}, {"numa", len(set.NUMA)}, {"pcie", len(set.PCIe)}, {"links", len(set.Links)}} {
		if x.have != 0 && x.have != set.Count {
			fail(x.field, "want one for each of the %d devices, have %d", set.Count, x.have)
		}
	}
	if set.Link != "" && len(set.Links) > 0 {
		fail("link", "link is for all devices, links for each; keep one")
	}
	for i, u := range set.UUIDs {
		if u == "" {
			r.errorf(at.Add("uuids", i), "a UUID is missing")
			ok = false
		}
	}
	for i, node := range set.NUMA {
		if node < -1 {
			r.errorf(at.Add("numa", i), "want a NUMA node, or -1 where unknown, have %d", node)
		}
	}
	for i, l := range set.Lost {
		if l < 0 || l >= set.Count {
			r.errorf(at.Add("lost", i), "there is no device %d among %d: devices count from 0", l, set.Count)
		}
	}
	for i, p := range set.Partitions {
		ok = checkPartition(&p, at.Add("partitions", i), r) && ok
	}
	return ok
}

func checkPartition(p *v1alpha1.Partition, at path, r reporter) bool {
	ok := checkProfile(p.Profile, at.Add("profile"), r)
	if p.Count != nil && (*p.Count < 1 || *p.Count > maxDevices) {
		r.errorf(at.Add("count"), "want from 1 to %d slices of each device, have %d", maxDevices, *p.Count)
		ok = false
	}
	return checkMemory(p.Memory, at.Add("memory"), r) > 0 && ok
}

// checkProfile checks a MIG profile, which is part of a resource name, and reports
// whether it is valid.
func checkProfile(profile string, at path, r reporter) bool {
	if profile == "" || !isName(profile) {
		r.errorf(at, "%s is not a MIG profile; write one such as 1g.10gb", phrase.Quote(profile))
		return false
	}
	return true
}

// physicalDevice returns device k of the entry, before it is divided into slices or
// replicas. Physical is its number among all devices of the node.
func physicalDevice(node string, set *v1alpha1.DeviceSet, k, physical int) cluster.Device {
	d := cluster.Device{
		DeviceSpec: &cluster.DeviceSpec{Product: set.Product, Type: deviceType(set), Memory: cluster.Bytes(set.Memory.Value()), NUMA: -1, Link: set.Link},
		UUID:       "GPU-" + node + "-" + strconv.Itoa(physical),
	}
	if set.Reserved != nil {
		d.Reserved = cluster.Bytes(set.Reserved.Value())
	}
	if len(set.UUIDs) > 0 {
		d.UUID = set.UUIDs[k]
	}
	if len(set.NUMA) > 0 {
		d.NUMA = set.NUMA[k]
	}
	if len(set.PCIe) > 0 {
		d.PCIe = set.PCIe[k]
	}
	if len(set.Links) > 0 {
		d.Link = set.Links[k]
	}
	for _, l := range set.Lost {
		d.Lost = d.Lost || l == k
	}
	return d
}

// devicesOfEach returns how many devices divide makes of each device of the entry.
func devicesOfEach(set *v1alpha1.DeviceSet, sharing cluster.Sharing) int {
	if len(set.Partitions) == 0 {
		return max(1, sharing.Replicas)
	}
	total := 0
	for _, p := range set.Partitions {
		total += sliceCount(&p)
	}
	return total
}

// sliceCount returns how many slices of each device the entry has: 1 unless it says otherwise.
func sliceCount(p *v1alpha1.Partition) int {
	if p.Count == nil {
		return 1
	}
	return *p.Count
}

// divide returns the slices or replicas of a device, or the device itself if it has
// neither.
func divide(node string, whole cluster.Device, set *v1alpha1.DeviceSet, physical int, sharing cluster.Sharing, at path, r reporter) []cluster.Device {
	if len(set.Partitions) > 0 {
		var out []cluster.Device
		var sum cluster.Bytes
		for _, p := range set.Partitions {
			for range sliceCount(&p) {
				d := whole
				d.UUID = fmt.Sprintf("MIG-%s-%d-%d", node, physical, len(out))
				d.OwnSpec()
				d.Parent = whole.UUID
				d.Profile, d.Memory = p.Profile, cluster.Bytes(p.Memory.Value())
				sum += d.Memory
				out = append(out, d)
			}
		}
		if sum > whole.Memory {
			r.errorf(at.Add("partitions"), "the slices take %s of a device that has %s", gibibytes(sum), gibibytes(whole.Memory))
		}
		return out
	}
	if sharing.Replicas < 2 {
		return []cluster.Device{whole}
	}
	return cluster.Replicate(whole, sharing)
}

func gibibytes(b cluster.Bytes) string { return fmt.Sprintf("%.4g GiB", float64(b)/(1<<30)) }
