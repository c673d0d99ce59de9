package command

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/estimate/nodes"
	"github.com/berth-project/berth/internal/model"
)

// productDevices describes the devices of one product on the nodes of a group.
type productDevices struct {
	cluster.Device     // the device with the most memory that is not reserved
	perNode        int // the number of devices on the node that has the most of them
	nodes          int // the number of nodes with at least one device
}

// devicesByProduct returns the devices of a group, without those that are lost.
func devicesByProduct(g *cluster.Group) []*productDevices {
	var out []*productDevices
	for _, n := range g.Nodes {
		counts := map[string]int{}
		for i := range n.Devices {
			d := &n.Devices[i]
			if d.Lost {
				continue
			}
			at := slices.IndexFunc(out, func(k *productDevices) bool { return k.Product == d.Product })
			if at < 0 {
				out, at = append(out, &productDevices{Device: *d}), len(out)
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

// addGroup adds one row for each product of a group of a cluster: the devices of a
// replica are of one product.
func (v *estimateView) addGroup(g *cluster.Group) error {
	products := devicesByProduct(g)
	if len(products) == 0 {
		v.Devices = append(v.Devices, estimateRow{
			Product: g.Key.Product, Memory: cluster.Bytes(g.Key.Memory) << 20, Why: "all its devices are lost",
			Group: &groupRow{Devices: g.Key.Count, Nodes: len(g.Nodes)},
		})
	}
	for _, k := range products {
		v.addProduct(g, k, len(products) > 1)
	}
	return nil
}

func (v *estimateView) addProduct(g *cluster.Group, k *productDevices, mixed bool) {
	product, row := g.Key.Product, groupRow{Devices: k.perNode, Nodes: k.nodes}
	if mixed {
		product = k.Product
	}
	pool := fit.Pool{Accelerator: model.AcceleratorOf(&k.Device), Reserved: k.Reserved, PerNode: k.perNode, Nodes: k.nodes}
	switch {
	case !g.Key.Combines(): // a replica uses one device, as several cannot work together
		pool.PerNode, pool.Nodes = 1, 1
	case mixed: // a replica uses one node, as nodes with different devices cannot work together
		pool.Nodes = 1
	}
	refuse := func(why string) {
		v.Devices = append(v.Devices, estimateRow{Product: product, Memory: k.Memory, Why: why, Group: &row})
	}
	if err := v.backend.CheckType(v.version, k.Type); err != nil {
		refuse(err.Error())
		return
	}
	if err := v.add(product, pool); err != nil {
		refuse(err.Error())
		return
	}
	v.Devices[len(v.Devices)-1].Group = &row
	if v.model.Architecture == nil {
		row.Why = "the number of bytes per token is not known"
		return
	}
	r := nodes.Replica{Weights: v.model.PublishedSize() + v.loaded, BytesPerToken: int64(v.PerToken) * int64(max(1, v.Sequences)), Tokens: v.form.Context, Heads: v.model.Architecture.Heads}
	if plan, err := r.Divide(g.Key); err != nil {
		row.Why = err.Error()
	} else {
		row.PerReplica = plan.Nodes
	}
}
