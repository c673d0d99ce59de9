package model

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/instance"
)

// deviceClass is devices of one product and size on the nodes of one group.
type deviceClass struct {
	product  string
	profile  string        // the MIG profile by which the devices are requested; "": none
	memory   cluster.Bytes // of one device, without what is reserved
	total    cluster.Bytes // of one device, with what is reserved; shares are fractions of this
	count    int           // how many devices with at least this memory the node with the most of them has
	combines bool          // several of them can serve one replica
	// accelerator is what the settings of a backend depend on.
	accelerator backend.Accelerator
	group       *cluster.Group
	sample      *cluster.Device // one of the devices
}

// shareBytes returns what a share of a device comes to in bytes; 0 if the device cannot
// give that share.
func (k *deviceClass) shareBytes(of cluster.Milli) cluster.Bytes {
	return backend.Claim{Share: of}.BytesOf(k.total, k.total-k.memory)
}

// held returns how many of the layers n idle devices hold.
func (k *deviceClass) held(n int, l cluster.Layers) int {
	return l.Held(n, k.memory-l.FixedOnProduct(k.product)+l.Fixed)
}

// maxPerReplica returns how many devices of one node one replica can use.
func (k *deviceClass) maxPerReplica() int {
	if k.combines {
		return k.count
	}
	return min(1, k.count)
}

// deviceClassesOf returns the devices of the group that are of these types, or all
// devices if types is empty. Nodes of one group may differ in how much memory is
// reserved, so every node is examined.
func deviceClassesOf(g *cluster.Group, types []string) []deviceClass {
	var out []deviceClass
	fits := g.Key.Combines()
	for _, n := range g.Nodes {
		from := len(out)
		for i := range n.Devices {
			d := &n.Devices[i]
			if d.Lost || len(types) > 0 && !slices.Contains(types, d.Type) {
				continue
			}
			k := deviceClass{product: d.Product, profile: d.Profile, memory: d.Memory - d.Reserved, total: d.Memory, combines: fits && d.Profile == "", group: g}
			if !slices.ContainsFunc(out[from:], k.sameClass) {
				k.sample = d
				out = append(out, k)
			}
		}
		for i := from; i < len(out); i++ {
			for x := range n.Devices {
				if d := &n.Devices[x]; !d.Lost && d.Product == out[i].product && d.Profile == out[i].profile && d.Memory-d.Reserved >= out[i].memory {
					out[i].count++
				}
			}
		}
		out = slices.Concat(out[:from:from], mergeClasses(out[:from], out[from:]))
	}
	for i := range out {
		out[i].accelerator = AcceleratorOf(out[i].sample)
	}
	return out
}

// AcceleratorOf returns the properties of a device on which the settings of a backend
// depend. A slice of a device has as much usable memory as it reports.
func AcceleratorOf(d *cluster.Device) backend.Accelerator {
	out := backend.Accelerator{Product: d.Product, Type: d.Type, Memory: d.Memory}
	if d.Profile == "" && !strings.Contains(d.Product, "-MIG-") {
		out.Unusable = instance.Unusable(d.Product, d.Type, d.Memory)
	}
	return out
}

// mergeClasses raises the counts in known to those of equal classes in more, and returns
// the classes of more that are not in known.
func mergeClasses(known, more []deviceClass) []deviceClass {
	var out []deviceClass
	for _, k := range more {
		if at := slices.IndexFunc(known, k.sameClass); at >= 0 {
			known[at].count = max(known[at].count, k.count)
		} else {
			out = append(out, k)
		}
	}
	return out
}

// sameClass reports whether two classes of one group differ in nothing but their count.
func (k deviceClass) sameClass(o deviceClass) bool {
	return k.product == o.product && k.profile == o.profile && k.memory == o.memory && k.total == o.total
}

// canGive reports whether one node has n devices that give the claim when they are idle.
func (k *deviceClass) canGive(n int, c backend.Claim) bool {
	return k.maxPerReplica() >= n && k.shareBytes(c.Share) >= c.Enough
}

// isMixed reports whether the nodes of the group have devices of several products.
func isMixed(k cluster.GroupKey) bool { return strings.Contains(k.Product, "+") }
