package fillvalue

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// prices are the parameters that the plugin learns.
type prices struct {
	learntAt int64   // Demand.LearntAt of the workload that they are for
	arrived  int64   // Demand.Arrived when they were computed
	free     int64   // of all devices then, in thousandths
	release  int64   // the probability that a task on a node ends in the time that counts, in parts of certain; see releaseIn
	slots    []int64 // by slot of the workload, for one slot
	sets     []int64 // by set of products, for one thousandth of a device, multiplied by unit
}

// The prices of a slot and of products, as parts of what the devices hold.
const (
	slotPrice = 5         // times the devices of the slot, if it will certainly be lacking
	setPrice  = unit / 20 // a twentieth of the device, if the products will certainly be lacking
	settled   = 8         // a price stays if the new one differs by at most the highest price ÷ settled
)

// maxPrice is more than any price of a slot that fits on a node.
const maxPrice = 1 << 35

// notes is how many of the values of prices scores do not depend on: arrived and free.
const notes = 2

// values returns the prices as parameters.
func (p *prices) values() []int64 {
	out := []int64{p.arrived, p.free, p.learntAt, p.release, int64(len(p.slots))}
	out = append(out, p.slots...)
	return append(out, p.sets...)
}

// use takes parameters. Those that are not for the present workload are not used.
func (p *plugin) use(values []int64) {
	if !slices.Equal(p.given, values) {
		p.given = values
		p.change(p.pricesFrom(values))
	}
}

// change changes the prices. Values of rooms stay valid if they do not depend on what changes.
func (p *plugin) change(to prices) {
	was := &p.prices
	if was.learntAt != to.learntAt || was.release != to.release || !slices.Equal(was.slots, to.slots) || !slices.Equal(was.sets, to.sets) {
		p.epoch++
	}
	p.prices = to
	if to.slots != nil {
		p.fleet.countTasks(to.release > 0)
	}
}

// pricesFrom returns the prices that have these values; none if they are not for the present
// workload.
func (p *plugin) pricesFrom(values []int64) prices {
	slots, sets := len(p.work.slots), len(p.work.sets)
	if len(values) != 5+slots+sets || values[2] != p.view.Demand().LearntAt || values[4] != int64(slots) || values[3] > certain {
		return prices{}
	}
	for i, v := range values {
		if v < 0 || i > 4 && v > maxPrice {
			return prices{}
		}
	}
	return prices{arrived: values[0], free: values[1], learntAt: values[2], release: values[3], slots: values[5 : 5+slots], sets: values[5+slots:]}
}

// learn computes the prices again if enough tasks have arrived, or enough devices were taken or
// released, since they were computed. Otherwise it returns nil.
func (p *plugin) learn() []int64 {
	p.takeDemand()
	d := p.view.Demand()
	if d.LearntAt == 0 {
		return nil
	}
	p.count()
	old := &p.prices
	arrivals, change := max(1, int64(p.fleet.count)/24), max(int64(cluster.Whole), p.fleet.whole/172)
	if old.learntAt == d.LearntAt && distance(d.Arrived, old.arrived) < arrivals && distance(p.fleet.free, old.free) < change {
		return nil
	}
	now := p.compute(d)
	now.settle(old, &p.work)
	p.change(now)
	p.given = p.prices.values()
	return p.given
}

// settle keeps the prices of old that differ little from the new ones, if both are for the same
// workload. Otherwise all nodes would be scored again for a difference that decides nothing: in a
// large cluster, most prices change by a thousandth of the highest price from one list to the next.
func (p *prices) settle(old *prices, w *workload) {
	if p.learntAt != old.learntAt {
		return
	}
	for i, was := range old.slots {
		if distance(was, p.slots[i]) <= slotPrice*w.requests[w.slots[i].request].milli*unit/settled {
			p.slots[i] = was
		}
	}
	for i, was := range old.sets {
		if distance(was, p.sets[i]) <= setPrice/settled {
			p.sets[i] = was
		}
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// compute returns the prices for what is free now.
func (p *plugin) compute(d *cluster.Demand) prices {
	w, f := &p.work, &p.fleet
	out := prices{learntAt: d.LearntAt, arrived: d.Arrived, free: f.free, slots: make([]int64, len(w.slots)), sets: make([]int64, len(w.sets))}
	if w.mean == 0 {
		return out
	}
	// ahead is how many arrivals the free room has room for, if all of them are placed.
	ahead := float64(f.free) * float64(w.weight) / float64(w.mean)
	out.release = f.releaseIn(ahead, d)
	there := make([]int64, len(w.slots))
	for _, r := range f.used {
		for i, n := range w.slotsOf(r) { // sums of integers, so that the order makes no difference
			there[i] += n * int64(r.nodes)
		}
	}
	unsure := ahead / float64(d.Arrived+1) // what is not known of the workload yet
	for i := range w.slots {
		s := &w.slots[i]
		wanted := ahead*float64(s.weight)/float64(w.weight) + unsure/2
		variance := float64(wanted*(1+unsure)) + 0.5 // the conversion keeps all machines from rounding once only
		lacking := chance(wanted-float64(there[i])+0.5, 2, variance)
		out.slots[i] = min(slotPrice*w.requests[s.request].milli*lacking, maxPrice)
	}
	for i := range w.sets {
		var confined, square float64
		for j := range w.requests {
			if q := &w.requests[j]; q.set >= 0 && within(w.sets[q.set], w.sets[i]) {
				confined += float64(float64(q.weight) * float64(q.milli))
				square += float64(float64(q.weight) * float64(q.milli) * float64(q.milli))
			}
		}
		part := ahead / float64(w.weight)
		lacking := chance(float64(confined*part)-float64(f.freeOf(w.sets[i])), 1, float64(square*part)+1)
		out.sets[i] = setPrice * lacking / unit
	}
	return out
}

// releaseIn returns the probability that a task on a node ends before the free room is full, which has
// room for the arrivals ahead. Tasks end meanwhile and release room. In a steady state the room is
// never full; then it is the probability for half the mean run time, in which, by Little's law, half as
// many tasks end as run: a node whose last task ends later is seldom kept free until then. It is in
// parts of certain, and in steps, so that few ends are none.
func (f *fleet) releaseIn(ahead float64, d *cluster.Demand) int64 {
	const step = certain / 16
	if f.running == 0 {
		return 0
	}
	running := float64(f.running)
	leaving := min(ahead*float64(d.Left)/float64(max(1, d.Arrived-d.Left)), running/2)
	release := int64(certain * leaving / (leaving + running))
	return release - release%step
}

// of returns the prices of the slots and products of a room, multiplied by unit.
func (p *prices) of(w *workload, kinds []cluster.Device, r *room) int64 {
	if p.slots == nil {
		return 0
	}
	var sum int64
	slots := w.slotsOf(r)
	for i, price := range p.slots {
		sum += price * slots[i] * unit
	}
	if drained := r.drained(p.release); drained > 0 {
		empty := w.slotsOfMachine(r.machine)
		for i, price := range p.slots {
			sum += price * ((empty[i] - slots[i]) * drained / (certain / unit))
		}
	}
	for i, price := range p.sets {
		if price > 0 {
			sum += price * r.freeOf(w.sets[i], kinds) * unit
		}
	}
	return sum
}

// freeOf returns how much of the devices of the products is free, in thousandths.
func (r *room) freeOf(products []string, kinds []cluster.Device) int64 {
	var sum int64
	for i, k := range r.machine.kinds {
		if slices.Contains(products, kinds[k].Product) {
			sum += int64(r.free[i])
		}
	}
	return sum
}

// freeOf returns how much of the devices of the products is free, in thousandths.
func (f *fleet) freeOf(products []string) int64 {
	var sum int64
	for _, r := range f.used {
		sum += r.freeOf(products, f.kinds) * int64(r.nodes)
	}
	return sum
}

// within reports whether all products of a are in b.
func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(p string) bool { return !slices.Contains(b, p) })
}

// chance returns the probability that a normally distributed amount is above 0, from 0 to unit. Its
// mean and variance are given; its standard deviation is multiplied by times.
func chance(mean float64, times int64, variance float64) int64 {
	const step = 16 // entries of normal for 1
	z := int64(min(max(mean*unit*step/(float64(times)*math.Sqrt(variance)), -1e9), 1e9))
	if size := max(z, -z); size < int64(len(normal)-1)*unit {
		i, part := size/unit, size%unit
		above := normal[i] + (normal[i+1]-normal[i])*part/unit
		if z < 0 {
			above = 2*half - above
		}
		return above * unit / (2 * half)
	}
	if z < 0 {
		return 0
	}
	return unit
}

const half = 1 << 19

// normal[i] is the probability that a normally distributed amount with the mean 0 and the variance
// 1 is below i ÷ 16, multiplied by 2 × half. It is computed once and rounded, so that all machines
// agree.
var normal = func() (out [64]int64) {
	for i := range out {
		out[i] = int64(math.Round((1 + math.Erf(float64(i)/16/math.Sqrt2)) * half))
	}
	return out
}()
