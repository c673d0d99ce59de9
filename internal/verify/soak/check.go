package soak

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Check holds the books against what is there and against what the tasks say.
func (w *World) Check() error {
	if err := w.site.check(); err != nil {
		return err
	}
	if err := w.site.agrees(w.State, w.sent); err != nil {
		return err
	}
	for _, n := range w.State.Nodes() {
		if err := w.checkNode(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	used, firm := map[string]amounts{}, map[string]amounts{}
	named := w.named()
	for _, j := range w.State.Jobs() {
		for a := range j.Alternatives {
			for _, t := range j.Alternatives[a].Tasks {
				if (t.Node == nil) != (t.Status == cluster.Pending || t.Ended()) {
					return fmt.Errorf("%s is %s on node %v", t.ID, t.Status, t.Node)
				}
				if t.Node == nil {
					continue
				}
				if a != j.Chosen {
					return fmt.Errorf("%s is placed, but alternative %d was chosen", t.ID, j.Chosen)
				}
				if w.State.Node(t.Node.Name) != t.Node && w.sent[t.ID] == nil {
					return fmt.Errorf("%s is on a node that is gone", t.ID)
				}
				if l := t.Landing(); l != nil {
					if t.Status != cluster.Releasing || l.Status != cluster.Nominated || l.ShadowOf() != t {
						return fmt.Errorf("%s is %s, and its landing is %s", t.ID, t.Status, l.Status)
					}
					w.charge(used, l, named)
					if !j.Preemptible {
						w.charge(firm, l, named)
					}
				}
				if !frees(t) {
					w.charge(used, t, named)
					if !j.Preemptible {
						w.charge(firm, t, named)
					}
				}
			}
		}
	}
	if err := w.checkSets(false); err != nil {
		return err
	}
	for _, q := range w.State.Queues() {
		if !used[q.Name].equal(q.Used) {
			return fmt.Errorf("queue %s: the ledger says %v, its tasks %v", q.Name, q.Used, used[q.Name])
		}
		if !firm[q.Name].equal(q.UsedByFirm) {
			return fmt.Errorf("queue %s: the ledger says that %v is firm, its tasks %v", q.Name, q.UsedByFirm, firm[q.Name])
		}
	}
	return nil
}

// named are the names in the queues' terms, products among them.
func (w *World) named() map[string]bool {
	out := map[string]bool{}
	for _, q := range w.State.Queues() {
		for _, list := range []cluster.Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
			for _, a := range list {
				out[a.Name] = true
			}
		}
	}
	return out
}

// charge adds what the task holds to its queue and to all above it.
func (w *World) charge(used map[string]amounts, t *cluster.Task, named map[string]bool) {
	charge := func(name string, v int64, counts func(*cluster.Queue) bool) {
		for q := t.Job.Queue; q != ""; q = w.State.Queue(q).Parent {
			if used[q] == nil {
				used[q] = amounts{}
			}
			if counts(w.State.Queue(q)) {
				used[q][name] += v
			}
		}
	}
	add := func(name string, v int64) { charge(name, v, func(*cluster.Queue) bool { return true }) }
	for _, a := range t.Shape.Resources {
		add(a.Name, a.Value)
	}
	add(cluster.Memory, host(t.Node, t.Shape, t.Claims))
	for _, c := range t.Claims {
		d := &t.Node.Devices[c.Device]
		add(d.Resource, int64(c.Milli))
		if product := d.Resource + ":" + d.Product; named[product] {
			add(product, int64(c.Milli))
		}
		if d.Profile == "1g.10gb" { // one of the seven slices of a GPU
			charge(cluster.DefaultDeviceResource, max(1, int64(c.Milli)*142/1000), func(q *cluster.Queue) bool { return !q.Names(d.Resource) })
		}
	}
}

func host(n *cluster.Node, shape *cluster.Shape, claims []cluster.Claim) int64 {
	var sum cluster.Bytes
	if l := shape.Need.Layers; l != nil {
		left := l.Total
		for _, c := range claims {
			left -= c.Layers
		}
		sum += cluster.Bytes(left) * l.Bytes
	}
	if n.Unified {
		for _, c := range claims {
			sum += c.Memory
		}
	}
	return int64(sum)
}

// amounts are of resources, by name.
type amounts map[string]int64

func (a amounts) equal(r cluster.Resources) bool {
	seen := 0
	for name, v := range a {
		if r.Of(name) != v {
			return false
		}
		if v != 0 {
			seen++
		}
	}
	return seen == len(r) // what falls back to 0 leaves no trace
}

// holding is who holds what of one thing: promises, and what is physically there.
type holding struct {
	milli, there             cluster.Milli
	memory, thereMemory      cluster.Bytes
	promisedTo, heldByReally []*cluster.Task
}

// checkNode adds up what tasks hold, promises and physical room apart.
func (w *World) checkNode(n *cluster.Node) error {
	promised, physical, bound := map[string]int64{}, map[string]int64{}, map[string]int64{}
	devices := make([]holding, len(n.Devices))
	var isolated, isolatedThere int64
	for _, t := range n.Tasks {
		if t.Node != n {
			return fmt.Errorf("%s is listed here but is elsewhere", t.ID)
		}
		soon, there := !frees(t), t.Status != cluster.Nominated
		for _, a := range t.Shape.Resources {
			v := a.Value
			if a.Name == cluster.Memory {
				v += host(n, t.Shape, t.Claims)
			}
			if soon {
				promised[a.Name] += v
			}
			if there {
				physical[a.Name] += v
			}
			if soon && there {
				bound[a.Name] += v
			}
		}
		if t.Shape.Isolation.CPU == cluster.CPUStrictIsolated {
			if soon {
				isolated += t.Shape.Cores()
			}
			if there {
				isolatedThere += t.Shape.Cores()
			}
		}
		for _, c := range t.Claims {
			h := &devices[c.Device]
			if soon {
				h.milli += c.Milli
				h.memory += c.Memory
				h.promisedTo = append(h.promisedTo, t)
			}
			if there {
				h.there += c.Milli
				h.thereMemory += c.Memory
				h.heldByReally = append(h.heldByReally, t)
			}
		}
	}
	tight, over := !w.site.shrunk[n.Name], false
	if all := n.SupportedIsolation.IsolableCores; isolated > all || isolatedThere > all {
		if over = true; tight {
			return fmt.Errorf("%d isolated cores promised and %d held of %d", isolated, isolatedThere, all)
		}
	}
	for i := range n.Resources {
		l := &n.Resources[i]
		if l.Used != promised[l.Name] {
			return fmt.Errorf("%s: the ledger says %d, tasks hold %d", l.Name, l.Used, promised[l.Name])
		}
		if l.Free() < 0 || physical[l.Name] > l.Capacity {
			if over = true; tight {
				return fmt.Errorf("%s: %d promised and %d held of %d", l.Name, l.Used, physical[l.Name], l.Capacity)
			}
		}
		if l.Releasing != physical[l.Name]-bound[l.Name] {
			return fmt.Errorf("%s: the ledger says that %d is releasing, of %d held tasks keep %d", l.Name, l.Releasing, physical[l.Name], bound[l.Name])
		}
	}
	for i := range n.Devices {
		over = over || max(devices[i].memory, devices[i].thereMemory) > n.Devices[i].Room()
	}
	over = over || checkShared(n) != nil
	if !over {
		delete(w.site.shrunk, n.Name) // it fits again, and must from now on
	}
	return checkDevices(n, devices, !tight)
}

func checkDevices(n *cluster.Node, devices []holding, shrunk bool) error {
	var used int64
	for i := range n.Devices {
		d, h := &n.Devices[i], &devices[i]
		if !d.Lost && d.Resource == n.DeviceResource {
			used += int64(h.milli)
		}
		if d.Use.Milli != h.milli || d.Use.Memory != h.memory || int(d.Use.Leases) != len(h.promisedTo) {
			return fmt.Errorf("device %d: the ledger says %+v, tasks hold %d milli and %d bytes", i, d.Use, h.milli, h.memory)
		}
		if max(h.milli, h.there) > cluster.Whole || !shrunk && max(h.memory, h.thereMemory) > d.Room() {
			return fmt.Errorf("device %d is booked twice: %d milli promised, %d held; %d and %d bytes of %d", i, h.milli, h.there, h.memory, h.thereMemory, d.Room())
		}
		for _, holders := range [][]*cluster.Task{h.promisedTo, h.heldByReally} {
			if err := checkExclusive(holders); err != nil {
				return fmt.Errorf("device %d: %w", i, err)
			}
		}
	}
	if err := checkShared(n); err != nil && !shrunk {
		return err
	}
	if n.DeviceUsed() != used {
		return fmt.Errorf("devices: the node says %d, tasks hold %d", n.DeviceUsed(), used)
	}
	return nil
}

// checkShared makes sure that what is asked for in bytes of memory that replicas
// share is there once, promised and physically.
func checkShared(n *cluster.Node) error {
	promised, held := map[string]cluster.Bytes{}, map[string]cluster.Bytes{}
	for _, t := range n.Tasks {
		need := &t.Shape.Need
		if t.Shape.Isolation.Exclusive() || need.Memory == 0 && need.Share == 0 && need.Layers == nil {
			continue
		}
		for _, c := range t.Claims {
			if !frees(t) {
				promised[n.Devices[c.Device].Shares] += c.Memory
			}
			if t.Status != cluster.Nominated {
				held[n.Devices[c.Device].Shares] += c.Memory
			}
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if most := max(promised[d.Shares], held[d.Shares]); d.Shares != "" && most > d.Memory-d.Reserved {
			return fmt.Errorf("device %d and others share %d bytes, and %d are promised or held", i, d.Memory-d.Reserved, most)
		}
	}
	return nil
}

// checkExclusive makes sure that exclusivity works both ways.
func checkExclusive(holders []*cluster.Task) error {
	for _, t := range holders {
		for _, o := range holders {
			if t == o {
				continue
			}
			if t.Shape.Need.WholeNode && o.Shape.Need.WholeNode {
				return fmt.Errorf("%s has the node, and so has %s", t.ID, o.ID)
			}
			ti, oi := t.Shape.Isolation, o.Shape.Isolation
			switch ti.GPU {
			case cluster.GPUDeviceExclusive, cluster.GPUPartitionExclusive:
				return fmt.Errorf("%s holds it exclusively, and so does %s hold it", t.ID, o.ID)
			case cluster.GPUSessionExclusive:
				if ti.Session == "" || oi.GPU != ti.GPU || oi.Session != ti.Session {
					return fmt.Errorf("%s holds it for its session, and %s holds it too", t.ID, o.ID)
				}
			}
		}
	}
	return nil
}

// held is what queues use, and how much of it is firm.
type held struct{ used, firm cluster.Resources }

func (w *World) held() map[string]held {
	out := map[string]held{}
	for _, q := range w.State.Queues() {
		out[q.Name] = held{slices.Clone(q.Used), slices.Clone(q.UsedByFirm)}
	}
	return out
}

// checkLimits makes sure that no decision took a queue beyond its limit, nor
// what is not preemptible beyond its quota. A bound that was lowered below what
// is used may stay exceeded, but not grow.
func (w *World) checkLimits(before map[string]held) error {
	for _, q := range w.State.Queues() {
		for _, l := range q.Limits {
			if used := q.Used.Of(l.Name) - w.late(q, l.Name, true); used > l.Value && used > before[q.Name].used.Of(l.Name) {
				return fmt.Errorf("queue %s uses %d of %s, its limit is %d", q.Name, used, l.Name, l.Value)
			}
		}
		for _, l := range q.Quota {
			if firm := q.UsedByFirm.Of(l.Name) - w.late(q, l.Name, false); firm > l.Value && firm > before[q.Name].firm.Of(l.Name) {
				return fmt.Errorf("queue %s: jobs that are not preemptible use %d of %s, its quota is %d", q.Name, firm, l.Name, l.Value)
			}
		}
	}
	return nil
}

// late is what tasks hold of the queue that were evicted and do not leave: that
// counts again, and no decision took it.
func (w *World) late(q *cluster.Queue, resource string, preemptible bool) (sum int64) {
	for _, t := range w.State.View().Releasing() {
		if !t.Overdue() || t.Job.Preemptible && !preemptible {
			continue
		}
		for above := w.State.Queue(t.Job.Queue); above != nil; above = w.State.View().Parent(above) {
			if above == q {
				sum += q.ChargeOf(t, resource)
			}
		}
	}
	return sum
}

// Dump writes the books down, versions aside.
func Dump(s *cluster.State) string {
	var b strings.Builder
	for _, q := range s.Queues() {
		fmt.Fprintf(&b, "queue %s %v firm %v\n", q.Name, q.Used, q.UsedByFirm)
	}
	for _, n := range s.Nodes() {
		fmt.Fprintf(&b, "node %s %v isolated=%d\n", n.Name, n.Resources, n.Isolated)
		for i := range n.Devices {
			fmt.Fprintf(&b, "  device %d lost=%v %+v\n", i, n.Devices[i].Lost, n.Devices[i].Use)
		}
		for _, t := range n.Tasks {
			fmt.Fprintf(&b, "  task %s\n", t.ID)
		}
	}
	for _, j := range s.Jobs() {
		fmt.Fprintf(&b, "%s chosen=%d placed=%d retired=%v\n", j.ID, j.Chosen, j.Placed(), j.Retired)
		for a := range j.Alternatives {
			for _, t := range j.Alternatives[a].Tasks {
				where := "nowhere"
				if t.Node != nil {
					where = t.Node.Name
				}
				fmt.Fprintf(&b, "  %s %s %s %v\n", t.ID, t.Status, where, t.Claims)
			}
		}
	}
	for _, j := range s.Pending() {
		fmt.Fprintf(&b, "pending %s\n", j.ID)
	}
	for _, name := range s.View().Sets().Names() {
		fmt.Fprintf(&b, "set %s home %v", name, s.View().Sets().Home(name))
		for _, j := range s.View().Sets().Jobs(name) {
			fmt.Fprintf(&b, " %s", j.ID)
		}
		b.WriteByte('\n')
	}
	for _, t := range s.View().Nominated() {
		fmt.Fprintf(&b, "nominated %s\n", t.ID)
	}
	return b.String()
}

// frees reports whether the task gives its room back: one that is overdue holds it.
func frees(t *cluster.Task) bool { return t.Status == cluster.Releasing && !t.Overdue() }
