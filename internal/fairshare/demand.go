package fairshare

import (
	"math"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// demand holds what pending tasks request, by queue. It is updated from the jobs that
// change. What a task takes of a device is known only when it has one. Until then, the
// most that a device of its kind would give is used.
type demand struct {
	view   cluster.View
	known  uint64 // version of the jobs that was read
	nodes  uint64 // version of the nodes for which the requests of shapes are correct
	jobs   []pending
	asks   map[string]map[string]total
	shapes map[*cluster.Shape]*shapeRequest
}

// pending is what the pending tasks of one job request.
type pending struct {
	queue  string
	shapes []*cluster.Shape // of its pending tasks
}

// shapeRequest is what one task of the shape requests.
type shapeRequest struct {
	devices cluster.DeviceEstimate
	all     cluster.Resources
	tasks   int
}

func newDemand(s cluster.View) demand {
	return demand{view: s, asks: map[string]map[string]total{}, shapes: map[*cluster.Shape]*shapeRequest{}}
}

// total is a sum from which amounts can be subtracted again, even after it exceeded an int64.
type total struct{ high, low uint64 }

func (t total) plus(v int64) total {
	low, carry := bits.Add64(t.low, uint64(v), 0)
	return total{t.high + carry, low}
}

func (t total) minus(v int64) total {
	low, borrow := bits.Sub64(t.low, uint64(v), 0)
	return total{t.high - borrow, low}
}

// value returns the sum, or the largest int64 if the sum is larger.
func (t total) value() int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.low)
}

// follow reads the jobs that changed and calls visit for each of them. It returns the queues
// with changed requests.
func (d *demand) follow(s cluster.View, visit func(*cluster.Job)) map[string]bool {
	changed := map[string]bool{}
	if d.stale() {
		for name := range d.asks {
			changed[name] = true
		}
		*d = newDemand(s)
	}
	d.nodes = s.Version()
	s.Recent().Jobs(d.known, func(slot int) {
		if more := slot + 1 - len(d.jobs); more > 0 {
			d.jobs = append(d.jobs, make([]pending, more)...)
		}
		job := s.JobAt(slot)
		if job != nil {
			visit(job)
		}
		was, now := &d.jobs[slot], d.lacks(job)
		if was.queue == now.queue && slices.Equal(was.shapes, now.shapes) {
			return
		}
		d.count(was, total.minus, -1, changed)
		d.count(&now, total.plus, +1, changed)
		*was = now
	})
	d.known = s.Recent().JobsVersion()
	return changed
}

// stale reports whether some shape requests other devices than before. That depends on the
// nodes that exist.
func (d *demand) stale() bool {
	specs := false
	d.view.Recent().Nodes(d.nodes, func(slot int) {
		n := d.view.At(slot)
		specs = specs || n == nil || n.SpecVersion() > d.nodes
	})
	if !specs {
		return false
	}
	for shape, a := range d.shapes {
		if d.view.DeviceEstimate(shape) != a.devices {
			return true
		}
	}
	return false
}

// lacks returns what the pending tasks of the job request.
func (d *demand) lacks(j *cluster.Job) pending {
	if j == nil || !d.view.IsPending(j) {
		return pending{}
	}
	out := pending{queue: j.Queue}
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending {
			out.shapes = append(out.shapes, t.Shape)
		}
	}
	return out
}

// count adds what the job requests, or subtracts it.
func (d *demand) count(p *pending, by func(total, int64) total, tasks int, changed map[string]bool) {
	if len(p.shapes) == 0 {
		return
	}
	changed[p.queue] = true
	asks := d.asks[p.queue]
	if asks == nil {
		asks = map[string]total{}
		d.asks[p.queue] = asks
	}
	for _, shape := range p.shapes {
		a := d.shape(shape)
		if a.tasks += tasks; a.tasks == 0 {
			delete(d.shapes, shape)
		}
		for _, x := range a.all {
			asks[x.Name] = by(asks[x.Name], x.Value)
		}
		if x := a.devices; ofGPU(x, d.view.Queue(p.queue)) > 0 {
			asks[cluster.DefaultDeviceResource] = by(asks[cluster.DefaultDeviceResource], x.OfGPU)
		}
	}
}

func (d *demand) shape(s *cluster.Shape) *shapeRequest {
	a := d.shapes[s]
	if a == nil {
		a = &shapeRequest{devices: d.view.DeviceEstimate(s)}
		for _, x := range s.Resources {
			a.all = a.all.With(x.Name, Add(a.all.Of(x.Name), x.Value))
		}
		if x := a.devices; x.Value > 0 {
			a.all = a.all.With(x.Name, Add(a.all.Of(x.Name), x.Value))
			if x.Product != "" {
				a.all = a.all.With(x.Product, Add(a.all.Of(x.Product), x.Value))
			}
		}
		d.shapes[s] = a
	}
	return a
}
