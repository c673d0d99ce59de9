package live

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// QueueShares has the queues at one position, with what each of them is entitled to, holds
// and requests. It is immutable, and shares nothing with a State.
type QueueShares struct {
	Position uint64
	Queues   []QueueShare // by name
}

// QueueShare is one queue. Amounts are sorted by name, and are those of the queue and of all
// queues below it, in the units of State: cores and devices are in thousandths.
type QueueShare struct {
	Name, Parent string
	Revision     uint64            // of its last QueuePut, as the source of the queue numbers them
	Loose        bool              // see cluster.Queue.Loose
	Quota        cluster.Resources // see cluster.View.Quotas
	Used         cluster.Resources // what placed tasks hold
	// Share is the fair share as the profile computes it. It names the resources that queues
	// divide, and of which the queue has a request or a quota above 0. It is empty if no
	// plugin of the profile computes shares.
	Share cluster.Resources
	// Pending is what pending tasks request. What a task takes of a device is known only when
	// it has one. Until then, it is the most that a device of its kind would be charged, or
	// the number of devices if the cluster has none of the kind.
	Pending     cluster.Resources
	PendingJobs int // how many jobs have pending tasks
}

// QueueShares returns the queues at the newest position, with their fair shares at the given
// time. It takes longer than View: it reads all pending jobs, and opens a session on an
// engine of its own.
func (f *Follower) QueueShares(now int64) (*QueueShares, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.follow(); f.err != nil {
		return nil, f.err
	}
	shares, err := f.shares(now)
	if err != nil {
		return nil, err
	}
	pending := pendingByQueue(f.state.View())
	out := &QueueShares{Position: f.position}
	for _, q := range f.state.Queues() {
		out.Queues = append(out.Queues, QueueShare{
			Name: q.Name, Parent: q.Parent, Revision: q.Revision(), Loose: q.Loose(),
			Quota: slices.Clone(f.state.View().Quotas(q)), Used: slices.Clone(q.Used), Share: shares[q.Name],
			Pending: pending[q.Name].resources(), PendingJobs: pending[q.Name].count(),
		})
	}
	return out, nil
}

// shares returns the fair shares by queue. The caller holds the mutex. A hook that panics
// must not end a scheduler that decides without this answer, so that a panic is returned as
// an error.
func (f *Follower) shares(now int64) (out map[string]cluster.Resources, err error) {
	defer func() {
		if p := recover(); p != nil {
			f.engine = nil // its plugins may be in any state
			out, err = nil, fmt.Errorf("the fair shares of queues at position %d cannot be computed: panic: %v", f.position, p)
		}
	}()
	if f.engine == nil {
		if f.engine, err = f.newEngine(); err != nil {
			return nil, err
		}
	}
	s := f.engine.Open(f.state, engine.Options{Now: now})
	out = map[string]cluster.Resources{}
	for _, q := range f.state.Queues() {
		for _, st := range s.Standings(q.Name) {
			if st.Queue == q.Name { // the others are of the queues above it
				out[q.Name] = out[q.Name].With(st.Resource, st.Share)
			}
		}
	}
	return out, s.Close()
}

// pendingSum is what the pending tasks of a queue request.
type pendingSum struct {
	jobs    int
	amounts map[string]int64
}

// pendingByQueue returns what pending tasks request, by queue. It counts under the same
// names as State counts what placed tasks hold.
func pendingByQueue(v cluster.View) map[string]*pendingSum {
	out := map[string]*pendingSum{}
	devices := map[*cluster.Shape]cluster.DeviceEstimate{}
	for _, j := range v.Pending() {
		for q := v.Queue(j.Queue); q != nil; q = v.Parent(q) {
			sum := out[q.Name]
			if sum == nil {
				sum = &pendingSum{amounts: map[string]int64{}}
				out[q.Name] = sum
			}
			sum.jobs++
			for _, t := range j.Tasks() {
				if t.Status != cluster.Pending {
					continue
				}
				estimate, known := devices[t.Shape]
				if !known {
					estimate = estimateDevices(v, t.Shape)
					devices[t.Shape] = estimate
				}
				sum.add(t.Shape.Resources, estimate, q)
			}
		}
	}
	return out
}

// estimateDevices returns what a task of the shape may be charged for devices. If no node has
// devices that fit, such as in a cluster that adds nodes on demand, it is the number of
// devices that the shape requests.
func estimateDevices(v cluster.View, shape *cluster.Shape) cluster.DeviceEstimate {
	need := &shape.Need
	out := v.DeviceEstimate(shape)
	if out.Value > 0 || need.Devices == 0 {
		return out
	}
	out.Name, out.Value = cmp.Or(need.Resource, cluster.DefaultDeviceResource), int64(need.Devices)*int64(cmp.Or(need.Share, cluster.Whole))
	if need.Resource == "" && need.Partition != "" {
		out.Name = cluster.PartitionResource + need.Partition
	}
	return out
}

// add adds what one task requests. Slices for which the queue has no terms count as a
// fraction of nvidia.com/gpu too.
func (p *pendingSum) add(list cluster.Resources, devices cluster.DeviceEstimate, q *cluster.Queue) {
	plus := func(name string, v int64) {
		sum, ok := cluster.AddOverflow(p.amounts[name], v)
		if !ok {
			sum = math.MaxInt64
		}
		p.amounts[name] = sum
	}
	for _, a := range list {
		plus(a.Name, a.Value)
	}
	if devices.Value <= 0 {
		return
	}
	plus(devices.Name, devices.Value)
	if devices.Product != "" {
		plus(devices.Product, devices.Value)
	}
	if devices.OfGPU > 0 && !q.Names(devices.Name) {
		plus(cluster.DefaultDeviceResource, devices.OfGPU)
	}
}

func (p *pendingSum) count() int {
	if p == nil {
		return 0
	}
	return p.jobs
}

// resources returns the amounts above 0, sorted by name.
func (p *pendingSum) resources() cluster.Resources {
	if p == nil {
		return nil
	}
	var out cluster.Resources
	for _, name := range slices.Sorted(maps.Keys(p.amounts)) {
		if v := p.amounts[name]; v > 0 {
			out = append(out, cluster.Amount{Name: name, Value: v})
		}
	}
	return out
}
