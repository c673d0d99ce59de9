package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// maxPartialNodes is the largest number of nodes of a form that leaves devices of its nodes
// to other tasks.
const maxPartialNodes = 8

// partialForms returns forms over several nodes that use equally many devices of each node,
// and not all. Their pipeline stages need no whole nodes, so nodes that are partly in use can
// serve such a replica. Of each product, there is one form for each number of devices of a
// node, on the fewest nodes. Forms on more than twice as many devices as the smallest are
// left out.
func (v *severalNodes) partialForms() []Form {
	var out []Form
	for _, product := range v.hardware.productsThatCombine() {
		out = append(out, v.partialOnProduct(product)...)
	}
	slices.SortStableFunc(out, byNodes)
	return out
}

// partialOnProduct returns the forms on devices of one product. More nodes never need more
// devices of each.
func (v *severalNodes) partialOnProduct(product string) []Form {
	var out []Form
	most, least := v.mostPartial(product), 0
	for nodes := 2; nodes <= maxPartialNodes && most > 0; nodes++ {
		f := v.partialOnNodes(product, nodes, most)
		if f == nil {
			continue
		}
		out, most = append(out, *f), f.Devices-1 // on equally many devices of a node, fewer nodes are enough
		if n := f.Devices * nodes; least == 0 || n < least {
			least = n
		}
	}
	return slices.DeleteFunc(out, func(f Form) bool { return f.Devices*f.Nodes > 2*least })
}

// mostPartial returns the largest number of devices of each node that is of use. If some devices
// of one node hold the replica, as many or more on each of several nodes are not: wherever they
// are free, the form on one node fits too.
func (v *severalNodes) mostPartial(product string) int {
	most := v.hardware.maxDevices()
	if v.spec.devicesGiven() > 0 {
		return most
	}
	for _, t := range v.parallel.tensorSizes(most) {
		f := Form{Tensor: t, Pipeline: 1}
		c, err := v.size.claim(&f, v.hardware.accelerator(product))
		if has, _ := v.hardware.largestOfProduct(product, t, c.Share); err == nil && has >= c.Enough {
			return t - 1
		}
	}
	return most
}

// partialOnNodes returns the form over this many nodes that uses the fewest devices of the product
// on each, at most the given number; nil if there is none.
func (v *severalNodes) partialOnNodes(product string, nodes, most int) *Form {
	for each := 1; each <= most && v.hardware.nodesWith(product, each) >= nodes; each++ {
		tensor, stages, ok := v.partialSplit(each, nodes)
		if !ok || v.parallel.problem(tensor, stages) != "" || v.hardware.isWholeNode(product, each) {
			continue
		}
		f := Form{Tensor: tensor, Pipeline: stages, Devices: each, Nodes: nodes}
		c, err := v.size.claim(&f, v.hardware.accelerator(product))
		if has, _ := v.hardware.largestOfProduct(product, each, c.Share); err == nil && has >= c.Enough {
			return v.withPartialTasks(f, product, c)
		}
	}
	return nil
}

// withPartialTasks returns the form with its name and tasks.
func (v *severalNodes) withPartialTasks(f Form, product string, c backend.Claim) *Form {
	f.Name = fmt.Sprintf("%d nodes with %d × %s (tp %d, pp %d)", f.Nodes, f.Devices, product, f.Tensor, f.Pipeline)
	shape := v.spec.shapeOn(v.hardware, product, f.Devices, c)
	f.tasks = []roleTasks{{"leader", 1, &shape}, {"worker", f.Nodes - 1, &shape}}
	return &f
}

// partialSplit returns the parallelism with this many devices of each node. It returns false if
// the spec fixes another one. Unless the spec fixes the number of devices, the devices of a
// node are one stage: many stages are slow.
func (v *severalNodes) partialSplit(each, nodes int) (tensor, stages int, ok bool) {
	s := v.spec
	if t, p := s.Serving.Tensor, s.Serving.Pipeline; t > 0 || p > 0 {
		if t == 0 {
			if p%nodes != 0 || each%(p/nodes) != 0 {
				return 0, 0, false
			}
			if t = each / (p / nodes); !slices.Contains(v.parallel.tensorSizes(t), t) {
				return 0, 0, false
			}
		}
		return t, each / t * nodes, each%t == 0 && (p == 0 || each/t*nodes == p)
	}
	tensor, stages = v.parallel.split(each)
	return tensor, stages * nodes, s.Place.Devices == 0 && stages == 1 || s.Place.Devices == each*nodes
}

// productsThatCombine returns the products of which several devices can serve one replica,
// sorted.
func (h *hardware) productsThatCombine() []string {
	var out []string
	for i := range h.classes {
		if h.classes[i].combines {
			out = append(out, h.classes[i].product)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodesWith returns how many nodes have at least this many devices of the product.
func (h *hardware) nodesWith(product string, devices int) int {
	n := 0
	var last *cluster.Group
	for i := range h.classes {
		if k := &h.classes[i]; k.product == product && k.combines && k.count >= devices && k.group != last {
			n, last = n+len(k.group.Nodes), k.group
		}
	}
	return n
}

// accelerator returns the properties of the largest devices of the product.
func (h *hardware) accelerator(product string) backend.Accelerator {
	var best *deviceClass
	for i := range h.classes {
		if k := &h.classes[i]; k.product == product && (best == nil || k.memory > best.memory) {
			best = k
		}
	}
	if best == nil {
		return backend.Accelerator{Product: product}
	}
	return best.accelerator
}

// largestDevice returns the memory of the largest device of the product.
func (h *hardware) largestDevice(product string) cluster.Bytes {
	most := cluster.Bytes(0)
	for i := range h.classes {
		if k := &h.classes[i]; k.product == product && k.combines {
			most = max(most, k.memory)
		}
	}
	return most
}

// isWholeNode reports whether no node has more devices of the product.
func (h *hardware) isWholeNode(product string, devices int) bool {
	return h.nodesWith(product, devices+1) == 0
}

// largestOfProduct returns how many bytes this share of a device of the product is on the
// nodes with the largest devices, if they have at least this many. reserved is true if it is less
// than the share because memory is reserved.
func (h *hardware) largestOfProduct(product string, devices int, share cluster.Milli) (most cluster.Bytes, reserved bool) {
	for i := range h.classes {
		if k := &h.classes[i]; k.product == product && k.combines && k.count >= devices {
			if has := k.shareBytes(share); has > most {
				most, reserved = has, has == k.memory && k.memory < k.total
			}
		}
	}
	return most, reserved
}
