package fairshare

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Offered returns what queues divide: what the schedulable nodes have, held or not, without
// lost devices and without the devices of nodes that have a Defect.
func Offered(s cluster.View) cluster.Resources {
	var o offer
	return o.of(s)
}

// offer keeps the sum up to date. It looks again only at nodes that changed.
type offer struct {
	read  cluster.Since
	nodes []cluster.Resources // by slot
	sum   map[string]int64
	// products are those that are counted separately, because some queue names them.
	products []string
}

func (o *offer) of(s cluster.View) cluster.Resources {
	if !slices.Equal(o.products, s.Products()) {
		o.read = cluster.Since{} // nodes are counted by product, so all must be read again
	}
	begin := func() {
		o.nodes, o.sum, o.products = nil, map[string]int64{}, slices.Clone(s.Products())
	}
	o.read.Nodes(s, begin, func(slot int) {
		for slot >= len(o.nodes) {
			o.nodes = append(o.nodes, nil)
		}
		for _, a := range o.nodes[slot] {
			o.sum[a.Name] -= a.Value
		}
		o.nodes[slot] = o.has(o.nodes[slot][:0], s.At(slot))
		for _, a := range o.nodes[slot] {
			o.sum[a.Name] = Add(o.sum[a.Name], a.Value)
		}
	})
	var out cluster.Resources
	for name, v := range o.sum {
		if v > 0 {
			out = append(out, cluster.Amount{Name: name, Value: v})
		}
	}
	slices.SortFunc(out, func(a, b cluster.Amount) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// has appends what the node offers to out: nothing if the node was removed or is not
// schedulable, no lost devices, and no devices at all if the node has a Defect.
func (o *offer) has(out cluster.Resources, n *cluster.Node) cluster.Resources {
	if n == nil || n.Closed() {
		return out
	}
	for i := range n.Resources {
		out = append(out, cluster.Amount{Name: n.Resources[i].Name, Value: n.Resources[i].Capacity})
	}
	own := len(out)
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || n.Defect != nil {
			continue
		}
		out = addDevice(out, own, d.Resource, cluster.Whole)
		if slices.Contains(o.products, d.ProductResource) {
			out = addDevice(out, own, d.ProductResource, cluster.Whole)
		}
		if d.Fraction > 0 && d.Resource != cluster.DefaultDeviceResource {
			out = addDevice(out, own, cluster.DefaultDeviceResource, d.Fraction)
		}
	}
	return out
}

// addDevice adds a device, or a fraction of one, under the name to the amounts from index own on.
func addDevice(out cluster.Resources, own int, name string, part cluster.Milli) cluster.Resources {
	for i := own; i < len(out); i++ {
		if out[i].Name == name {
			out[i].Value += int64(part)
			return out
		}
	}
	return append(out, cluster.Amount{Name: name, Value: int64(part)})
}
