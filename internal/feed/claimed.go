package feed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/dra"
	resourcev1 "k8s.io/api/resource/v1"
)

// claimDevices sets what the pod requests of devices, by its containers and by its claims, and
// which devices it holds.
func (d *dynamic) claimDevices(p *pod) {
	need, devices, known := p.plain, p.annotated, true
	var claimed []cluster.Holding
	p.complete, p.problem, p.remarks = true, "", nil
	for i, name := range p.claims {
		c := d.claims[name]
		if c == nil {
			p.complete = false
			continue
		}
		if d.holder(c) != p {
			continue
		}
		held, listed := d.holdings(c.results)
		known = known && listed
		if extended := p.extended && i == len(p.claims)-1; extended {
			devices = mergeHoldings(append(slices.Clone(claimed), held...))
			continue
		}
		more := d.needOf(c, held)
		if !addNeed(&need, &more) {
			p.problem = fmt.Sprintf("the pod claims %s and %s; claim one kind of device, or split the pod", kindOf(&need), kindOf(&more))
		}
		claimed = mergeHoldings(append(claimed, held...))
		devices = claimed
		p.remarks = append(p.remarks, c.remarks()...)
	}
	if p.missing > 0 {
		known = false
		resource := d.resourceOf(p.place.Node)
		p.uncounted = resource == "" || !addNeed(&need, &cluster.Need{Devices: min(p.missing, cluster.MaxDevices), Resource: resource})
	}
	if !known || !need.WholeNode && len(devices) != need.Devices {
		devices = nil // some of them are not known
	}
	p.shape.Need, p.devices = need, devices
	p.isTask = p.taskIfValid && (p.problem == "" || p.taskIfInvalid)
}

// resourceOf returns the name of the resource of the devices of the node; "" if it has none.
func (d *dynamic) resourceOf(node string) string {
	if n := d.nodes[node]; n != nil && n.DeviceResource != "" {
		return n.DeviceResource
	}
	if devices, _ := d.inventory.Devices(node); len(devices) > 0 {
		return devices[0].Resource
	}
	return ""
}

// remarks returns which requests of the claim no device can ever satisfy: devices of the class
// exist, and the selectors of the request accept none of them.
func (c *claim) remarks() []string {
	var out []string
	for _, r := range c.requests {
		impossible := func(a alternative) bool { return a.class.Selection().Any && !a.query.Selection().Any }
		if len(c.results) == 0 && !slices.ContainsFunc(r.alternatives, func(a alternative) bool { return !impossible(a) }) {
			out = append(out, fmt.Sprintf("The selectors of request %s of ResourceClaim %s accept no device of its class in the cluster.", r.name, c.name.Name))
		}
	}
	return out
}

// kindOf returns the kind of device that is needed, as text.
func kindOf(n *cluster.Need) string {
	switch {
	case n.Partition != "":
		return "MIG slices " + n.Partition
	case n.Share > 0:
		return fmt.Sprintf("%d/1000 of %s", n.Share, n.Resource)
	}
	return n.Resource
}

// needOf returns what a pod requests by the claim. If it does not follow from the requests how
// many devices of which sort that is, it is what the claim holds, and nothing until it is
// allocated.
func (d *dynamic) needOf(c *claim, held []cluster.Holding) cluster.Need {
	var need cluster.Need
	for _, r := range c.requests {
		more, known := r.need()
		if !known || !addNeed(&need, &more) {
			need = cluster.Need{}
			break
		}
	}
	devices := len(held)
	if devices == 0 {
		devices = len(c.results) // no slice lists them
	}
	if devices > 0 && (need.None() || !need.WholeNode && need.Devices != devices) {
		return d.needOfResults(c, held, devices)
	}
	return need
}

// need returns the devices of Berth that the request selects. It returns false if they are of
// several sorts.
func (r *request) need() (cluster.Need, bool) {
	var out cluster.Need
	for _, a := range r.alternatives {
		s := a.query.Selection()
		if !s.Any {
			continue // it selects other devices, or none
		}
		if !s.Found {
			return out, false
		}
		one := cluster.Need{Devices: a.count, Resource: s.Resource, Partition: s.Profile, Products: s.Products}
		if s.Share < cluster.Whole {
			if one.Share = s.Share; a.count > 1 {
				return out, false // they may be parts of one device
			}
		}
		if a.all {
			one.Devices, one.WholeNode = 0, true
		}
		switch {
		case out.None():
			out = one
		case !sameKind(&out, &one):
			return out, false
		default:
			out.Devices, out.Products = min(out.Devices, one.Devices), union(out.Products, one.Products)
		}
	}
	return out, true
}

// sameKind reports whether both needs are for devices of one kind, of any product.
func sameKind(a, b *cluster.Need) bool {
	return a.Resource == b.Resource && a.Partition == b.Partition && a.Share == b.Share && a.WholeNode == b.WholeNode
}

// union returns the products of both lists. An empty list stands for all products.
func union(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// addNeed adds what more needs. It reports false, and adds nothing, if that cannot be expressed
// as one need.
func addNeed(need, more *cluster.Need) bool {
	switch {
	case more.None():
	case need.None():
		*need = *more
	case !sameKind(need, more) || need.WholeNode || need.Share > 0 || need.Memory != more.Memory || need.Devices+more.Devices > cluster.MaxDevices:
		return false
	default:
		need.Devices, need.Products = need.Devices+more.Devices, union(need.Products, more.Products)
	}
	return true
}

// needOfResults returns the need of a pod to which the devices of the claim are allocated.
func (d *dynamic) needOfResults(c *claim, held []cluster.Holding, devices int) cluster.Need {
	need := cluster.Need{Devices: devices, Resource: dra.Resource(c.results[0].Driver)}
	if found := d.inventory.Find(c.results[0]); found != nil {
		need.Resource, need.Partition = found.Sort().Resource, found.Sort().Profile
	}
	if len(held) > 0 && held[0].Milli < cluster.Whole {
		need.Share = held[0].Milli
	}
	return need
}

// Holdings returns which devices of Berth are held by what is allocated.
func (d *dynamic) Holdings(results []resourcev1.DeviceRequestAllocationResult) []cluster.Holding {
	var list []dra.ID
	for i := range results {
		if id, counts := resultID(&results[i]); counts {
			list = append(list, id)
		}
	}
	out, _ := d.holdings(list)
	return out
}

// holdings returns which devices of Berth are held if the devices are allocated. It returns false
// if no slice lists one of them.
func (d *dynamic) holdings(list []dra.ID) ([]cluster.Holding, bool) {
	var out []cluster.Holding
	for _, id := range list {
		found := d.inventory.Find(id)
		if found == nil {
			return nil, false
		}
		out = append(out, found.Holding())
	}
	return mergeHoldings(out), true
}

// mergeHoldings adds up the parts of one device, and sorts the devices by name.
func mergeHoldings(list []cluster.Holding) []cluster.Holding {
	slices.SortStableFunc(list, func(a, b cluster.Holding) int { return strings.Compare(a.Device, b.Device) })
	var out []cluster.Holding
	for _, h := range list {
		if last := len(out) - 1; last >= 0 && out[last].Device == h.Device {
			out[last].Milli, out[last].Memory = min(cluster.Whole, out[last].Milli+h.Milli), min(cluster.MaxDeviceMemory, out[last].Memory+h.Memory)
			continue
		}
		out = append(out, h)
	}
	return out
}
