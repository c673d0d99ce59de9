package model

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// kind is the devices of one product that nodes of a group have.
type kind struct {
	product  string
	memory   cluster.Bytes // of the largest, less what is reserved
	whole    cluster.Bytes // of the same device, all of it: shares are of that
	count    int           // on the node that has most
	combines bool          // several can work on one replica
}

// share is what a part of a device comes to; 0 where it is not to be had.
func (k *kind) share(of cluster.Milli) cluster.Bytes {
	if of == 0 || of >= cluster.Whole {
		return k.memory
	}
	part := cluster.Bytes(cluster.MulDiv(int64(k.whole), int64(of), int64(cluster.Whole)))
	if part > k.memory {
		return 0
	}
	return part
}

// most is how many of them one replica can use on a node.
func (k *kind) most() int {
	if k.combines {
		return k.count
	}
	return min(1, k.count)
}

// kinds are the devices that the backend runs on, by group and product.
func (p *planner) kinds(groups []*cluster.Group) []kind {
	var out []kind
	for _, g := range groups {
		nodes := g.Nodes[:1] // all have the same devices
		if mixed(g.Key) {
			nodes = g.Nodes // but not where products are mixed
		}
		first := len(out)
		for _, n := range nodes {
			counts := map[string]int{}
			for i := range n.Devices {
				d := &n.Devices[i]
				if d.Lost || d.Profile != "" || len(p.types) > 0 && !slices.Contains(p.types, d.Type) {
					continue
				}
				counts[d.Product]++
				at := slices.IndexFunc(out[first:], func(k kind) bool { return k.product == d.Product })
				if at < 0 {
					out = append(out, kind{product: d.Product, combines: combines(g.Key)})
					at = len(out) - 1 - first
				}
				k := &out[first+at]
				k.count = max(k.count, counts[d.Product])
				if room := d.Memory - d.Reserved; room > k.memory {
					k.memory, k.whole = room, d.Memory
				}
			}
		}
	}
	return out
}

// mixed reports whether nodes of the group have several products.
func mixed(k cluster.Key) bool { return strings.Contains(k.Product, "+") }

// combines reports whether several devices of the group can work on one replica:
// MIG slices and shared replicas cannot.
func combines(k cluster.Key) bool {
	return k.Replicas <= 1 && !strings.Contains(k.Product, "-MIG-") && !strings.HasPrefix(k.Resource, cluster.PartitionResource)
}

// widest is the most devices of one node that can work on one replica.
func (p *planner) widest() int {
	most := 1
	for i := range p.have {
		most = max(most, p.have[i].most())
	}
	return most
}

// apart reports whether no two devices of the cluster can be combined.
func (p *planner) apart() bool {
	return len(p.have) > 0 && !slices.ContainsFunc(p.have, func(k kind) bool { return k.combines })
}

// noSuchKind is a product that nothing has, where only parts of devices are there:
// a form of several is then refused, and says so.
const noSuchKind = "a kind that can be combined"

// combined are the products that can be combined, nil where all can.
func (p *planner) combined() []string {
	var out []string
	all := true
	for _, k := range p.have {
		if k.combines {
			out = append(out, k.product)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	if len(out) == 0 {
		return []string{noSuchKind}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
