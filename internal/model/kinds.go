package model

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// kind is devices of one product and one size that nodes of a group have.
type kind struct {
	product  string
	profile  string        // of MIG slices that are asked for by it; "": none
	memory   cluster.Bytes // less what is reserved
	whole    cluster.Bytes // all of it: shares are of that
	count    int           // on the node that has most, those with more room included
	combines bool          // several can work on one replica
	group    *cluster.Group
}

// share is what a part of a device comes to; 0 where it is not to be had.
func (k *kind) share(of cluster.Milli) cluster.Bytes {
	return backend.Claim{Share: of}.Of(k.whole, k.whole-k.memory)
}

// most is how many of them one replica can use on a node.
func (k *kind) most() int {
	if k.combines {
		return k.count
	}
	return min(1, k.count)
}

// kindsOf are the devices of the group that are of these types, of any if there are
// none. Nodes of a group may differ in what is reserved of them, so that all are
// looked at.
func kindsOf(g *cluster.Group, types []string) []kind {
	var out []kind
	fits := g.Key.Combines()
	for _, n := range g.Nodes {
		from := len(out)
		for i := range n.Devices {
			d := &n.Devices[i]
			if d.Lost || len(types) > 0 && !slices.Contains(types, d.Type) {
				continue
			}
			k := kind{product: d.Product, profile: d.Profile, memory: d.Memory - d.Reserved, whole: d.Memory, combines: fits && d.Profile == "", group: g}
			if !slices.ContainsFunc(out[from:], k.like) {
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
		out = slices.Concat(out[:from:from], news(out[:from], out[from:]))
	}
	return out
}

// news folds what one node has into what is known, and returns the rest.
func news(known, more []kind) []kind {
	var out []kind
	for _, k := range more {
		if at := slices.IndexFunc(known, k.like); at >= 0 {
			known[at].count = max(known[at].count, k.count)
		} else {
			out = append(out, k)
		}
	}
	return out
}

// like reports whether the devices differ in nothing but their number.
func (k kind) like(o kind) bool {
	return k.product == o.product && k.profile == o.profile && k.memory == o.memory && k.whole == o.whole
}

// gives reports whether so many of its devices can give what is claimed of each.
func (k *kind) gives(n int, c backend.Claim) bool {
	return k.most() >= n && k.share(c.Share) >= c.Enough
}

// mixed reports whether nodes of the group have several products.
func mixed(k cluster.GroupKey) bool { return strings.Contains(k.Product, "+") }
