package command

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/estimate/nodes"
)

// devicesOf is the devices of one product on the nodes of a group.
type devicesOf struct {
	cluster.Device     // the one with most room
	perNode, nodes int // on the node that has most, and how many nodes have any
}

// kinds are the devices of a group by product; lost ones do not count.
func kinds(g *cluster.Group) []*devicesOf {
	var out []*devicesOf
	for _, n := range g.Nodes {
		counts := map[string]int{}
		for i := range n.Devices {
			d := &n.Devices[i]
			if d.Lost {
				continue
			}
			at := slices.IndexFunc(out, func(k *devicesOf) bool { return k.Product == d.Product })
			if at < 0 {
				out, at = append(out, &devicesOf{Device: *d}), len(out)
			}
			k := out[at]
			if counts[d.Product]++; counts[d.Product] == 1 {
				k.nodes++
			}
			k.perNode = max(k.perNode, counts[d.Product])
			if d.Memory-d.Reserved > k.Memory-k.Reserved {
				k.Device = *d
			}
		}
	}
	return out
}

// addGroup works out one group of a cluster, each product by itself: one replica
// never mixes them.
func (v *estimateView) addGroup(g *cluster.Group) error {
	of := kinds(g)
	if len(of) == 0 {
		v.Devices = append(v.Devices, estimateRow{
			Product: g.Key.Product, Memory: cluster.Bytes(g.Key.Memory) << 20, Why: "all its devices are lost",
			Group: &groupRow{Devices: g.Key.Count, Nodes: len(g.Nodes)},
		})
	}
	for _, k := range of {
		v.addKind(g, k, len(of) > 1)
	}
	return nil
}

func (v *estimateView) addKind(g *cluster.Group, k *devicesOf, mixed bool) {
	product, row := g.Key.Product, groupRow{Devices: k.perNode, Nodes: k.nodes}
	if mixed {
		product = k.Product
	}
	pool := fit.Pool{Memory: k.Memory, Reserved: k.Reserved, PerNode: k.perNode, Nodes: k.nodes}
	switch {
	case !g.Key.Combines(): // what cannot be combined is one device
		pool.PerNode, pool.Nodes = 1, 1
	case mixed: // nor can nodes be whose devices differ
		pool.Nodes = 1
	}
	refuse := func(why string) {
		v.Devices = append(v.Devices, estimateRow{Product: product, Memory: k.Memory, Why: why, Group: &row})
	}
	if ok, err := v.backend.Runs("", k.Type); err == nil && !ok {
		refuse(fmt.Sprintf("%s does not run on %s", v.Backend, k.Type))
		return
	}
	if err := v.add(product, pool); err != nil {
		refuse(err.Error())
		return
	}
	v.Devices[len(v.Devices)-1].Group = &row
	if v.model.Architecture == nil {
		row.Why = "the bytes of a token are not known"
		return
	}
	r := nodes.Replica{Weights: v.model.Published() + v.loaded, BytesPerToken: int64(v.PerToken) * int64(max(1, v.Sequences)), Tokens: v.form.Context, Heads: v.model.Architecture.Heads}
	if plan, err := r.On(g.Key); err != nil {
		row.Why = err.Error()
	} else {
		row.PerReplica = plan.Nodes
	}
}
