package fairshare

import "github.com/berth-project/berth/cluster"

// requests are what pending tasks ask for, by queue. What a task will take of a
// device is known once it has one; until then the most that a device of its kind
// would give stands for it.
type requests struct {
	state  *cluster.State
	total  cluster.Resources
	asks   map[string]map[string]int64
	shapes map[*cluster.Shape]request
}

func pendingRequests(s *cluster.State, total cluster.Resources) map[string]map[string]int64 {
	r := requests{s, total, map[string]map[string]int64{}, map[*cluster.Shape]request{}}
	for _, j := range s.Pending() {
		asks := r.asks[j.Queue]
		if asks == nil {
			asks = map[string]int64{}
			r.asks[j.Queue] = asks
		}
		for _, t := range j.Tasks() {
			if t.Status != cluster.Pending {
				continue
			}
			for _, a := range t.Shape.Resources {
				asks[a.Name] = plus(asks[a.Name], a.Value)
			}
			if d := r.devices(t.Shape); d.Value > 0 {
				asks[d.Name] = plus(asks[d.Name], d.Value)
				if d.product != "" {
					asks[d.product] = plus(asks[d.product], d.Value)
				}
			}
		}
	}
	return r.asks
}

// request is what a shape asks of devices.
type request struct {
	cluster.Amount        // in thousandths
	product        string // the only one that would do, if some queue has terms for it
}

// devices is what the shape asks of devices, and under which name: of several,
// the one that the cluster has most of.
func (r *requests) devices(s *cluster.Shape) request {
	if s.Need.None() {
		return request{}
	}
	if a, known := r.shapes[s]; known {
		return a
	}
	var best request
	first, several := "", false // products that would do
	for _, g := range r.state.Groups() {
		n := g.Nodes[0] // nodes of a group have the same devices
		for i := range n.Devices {
			d := &n.Devices[i]
			if !s.Need.Usable(d) {
				continue
			}
			if first == "" {
				first = d.ProductResource
			}
			several = several || d.ProductResource != first
			if d.Resource != best.Name && best.Name != "" && r.total.Of(d.Resource) <= r.total.Of(best.Name) {
				continue
			}
			a := cluster.Amount{Name: d.Resource, Value: count(s, n, d.Resource) * each(s, d)}
			if d.Resource == best.Name {
				a.Value = max(a.Value, best.Value)
			}
			best.Amount = a
		}
	}
	if !several && r.state.Named(first) {
		best.product = first
	}
	r.shapes[s] = best
	return best
}

// count is how many devices the shape takes of the node.
func count(s *cluster.Shape, n *cluster.Node, name string) int64 {
	if s.Need.Devices > 0 {
		return int64(s.Need.Devices)
	}
	if !s.Need.WholeNode {
		return 1 // layers take as many as they must: at least one
	}
	var all int64
	for i := range n.Devices {
		if n.Devices[i].Resource == name {
			all++
		}
	}
	return all
}

// each is what the shape takes of the device, in thousandths.
func each(s *cluster.Shape, d *cluster.Device) int64 {
	need := &s.Need
	if need.WholeNode || need.Layers != nil || need.Share > 0 || need.Memory == 0 || s.Isolation.Exclusive() {
		if s.Isolation.Exclusive() {
			return int64(cluster.Whole)
		}
		return int64(need.Milli())
	}
	return int64(d.Part(need.Memory))
}
