package fairshare

import (
	"math"
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// demand is what pending tasks ask for, by queue, kept in step with the jobs that
// change. What a task will take of a device is known once it has one; until then
// the most that a device of its kind would give stands for it.
type demand struct {
	view   cluster.View
	known  uint64 // version of the jobs
	nodes  uint64 // version of the nodes that the asks of shapes are as of
	jobs   []pending
	asks   map[string]map[string]total
	shapes map[*cluster.Shape]*shapeAsk
}

// pending is what one job lacks.
type pending struct {
	queue  string
	shapes []*cluster.Shape // of its pending tasks
}

// shapeAsk is what one task of the shape asks for.
type shapeAsk struct {
	devices cluster.DeviceAsk
	all     cluster.Resources
	tasks   int
}

func newDemand(s cluster.View) demand {
	return demand{view: s, asks: map[string]map[string]total{}, shapes: map[*cluster.Shape]*shapeAsk{}}
}

// total is a sum of amounts that can be taken away again, however large it was.
type total struct{ high, low uint64 }

func (t total) plus(v int64) total {
	low, carry := bits.Add64(t.low, uint64(v), 0)
	return total{t.high + carry, low}
}

func (t total) minus(v int64) total {
	low, borrow := bits.Sub64(t.low, uint64(v), 0)
	return total{t.high - borrow, low}
}

// value is as much of the sum as can be counted.
func (t total) value() int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.low)
}

// follow takes in the jobs that changed, visits them, and returns the queues that ask
// for something else than before.
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
		for slot >= len(d.jobs) {
			d.jobs = append(d.jobs, pending{})
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

// stale reports whether some shape asks for other devices than it did: that
// depends on which nodes there are.
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
		if d.view.DeviceAsk(shape) != a.devices {
			return true
		}
	}
	return false
}

// lacks is what the job lacks, nothing where it is not pending.
func (d *demand) lacks(j *cluster.Job) pending {
	if j == nil || !d.view.Waits(j) {
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

// count adds what the job lacks, or takes it away.
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

func (d *demand) shape(s *cluster.Shape) *shapeAsk {
	a := d.shapes[s]
	if a == nil {
		a = &shapeAsk{devices: d.view.DeviceAsk(s)}
		for _, x := range s.Resources {
			a.all = a.all.With(x.Name, plus(a.all.Of(x.Name), x.Value))
		}
		if x := a.devices; x.Value > 0 {
			a.all = a.all.With(x.Name, plus(a.all.Of(x.Name), x.Value))
			if x.Product != "" {
				a.all = a.all.With(x.Product, plus(a.all.Of(x.Product), x.Value))
			}
		}
		d.shapes[s] = a
	}
	return a
}
