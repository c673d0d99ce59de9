package model

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// findKinds finds what one node of some group has of one product that the backend runs
// on. A node with several products is in a group of all of them, which says how
// much its smallest device has; a replica on one node takes one product only.
func (p *planner) findKinds() {
	for _, g := range p.groups {
		if !mixed(g.Key) {
			p.kinds = append(p.kinds, g.Key)
			continue
		}
		for _, n := range g.Nodes { // the same sum may be made of other parts
			p.kinds = append(p.kinds, p.parted(g.Key, n)...)
		}
	}
	slices.SortFunc(p.kinds, cluster.Key.Compare)
	p.kinds = slices.Compact(p.kinds)
}

// parted are the products of a node, each as a group of that product alone.
func (p *planner) parted(key cluster.Key, n *cluster.Node) []cluster.Key {
	var out []cluster.Key
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || len(p.types) > 0 && !slices.Contains(p.types, d.Type) {
			continue
		}
		k := cluster.Key{Product: d.Product, Memory: int64(d.Memory >> 20), Resource: d.Resource, Strategy: key.Strategy, Replicas: key.Replicas}
		at := slices.IndexFunc(out, func(o cluster.Key) bool { o.Count = 0; return o == k })
		if at < 0 {
			at, out = len(out), append(out, k)
		}
		out[at].Count++
	}
	return out
}

// mixed reports whether nodes of the group have several products.
func mixed(k cluster.Key) bool { return strings.Contains(k.Product, "+") }

// combines reports whether several devices of the kind can work on one replica:
// MIG slices and shared replicas cannot.
func combines(k cluster.Key) bool {
	return k.Replicas <= 1 && !strings.Contains(k.Product, "-MIG-") && !strings.HasPrefix(k.Resource, cluster.PartitionResource)
}

// widest is the most devices of one node that can work on one replica.
func (p *planner) widest() int {
	most := 1
	for _, k := range p.kinds {
		if combines(k) {
			most = max(most, k.Count)
		}
	}
	return most
}

// combined are the products that can be combined, nil where all can.
func (p *planner) combined() []string {
	var out []string
	all := true
	for _, k := range p.kinds {
		if combines(k) {
			out = append(out, k.Product)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}
