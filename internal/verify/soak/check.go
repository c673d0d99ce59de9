package soak

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Check compares State with the site, and the sums in State with the tasks.
func (w *World) Check() error {
	if err := w.site.check(); err != nil {
		return err
	}
	if err := w.site.compareState(w.State, w.sent); err != nil {
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
					return fmt.Errorf("%s is on a node that does not exist any more", t.ID)
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
				if !isFreeing(t) {
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
			return fmt.Errorf("queue %s: State has a use of %v, and its tasks use %v", q.Name, q.Used, used[q.Name])
		}
		if !firm[q.Name].equal(q.UsedByFirm) {
			return fmt.Errorf("queue %s: State has a firm use of %v, and its firm tasks use %v", q.Name, q.UsedByFirm, firm[q.Name])
		}
	}
	return nil
}

// named returns the names of resources in the quotas, limits and weights of queues.
// Some of them are names of products.
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

// charge adds what the task holds to the use of its queue and of all its ancestors.
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

// host returns the memory of the node that the task uses beyond its request: for
// layers that are not on devices and, if memory is unified, for its devices.
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

// amounts has an amount for each resource.
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
	return seen == len(r) // r has no entries of 0
}

// holding is what tasks hold of one device. Booked is what bound and nominated tasks
// hold; physical is what bound and releasing tasks hold.
type holding struct {
	milli, physicalMilli   cluster.Milli
	memory, physicalMemory cluster.Bytes
	booked, holders        []*cluster.Task // the tasks of both kinds
}

// checkNode adds up what tasks hold of the node, booked and physical separately.
func (w *World) checkNode(n *cluster.Node) error {
	booked, physical, bound := map[string]int64{}, map[string]int64{}, map[string]int64{}
	devices := make([]holding, len(n.Devices))
	var isolated, isolatedThere int64
	for _, t := range n.Tasks {
		if t.Node != n {
			return fmt.Errorf("%s is in the list of this node, but is on another one", t.ID)
		}
		soon, there := !isFreeing(t), t.Status != cluster.Nominated // booked, physical
		for _, a := range t.Shape.Resources {
			v := a.Value
			if a.Name == cluster.Memory {
				v += host(n, t.Shape, t.Claims)
			}
			if soon {
				booked[a.Name] += v
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
				h.booked = append(h.booked, t)
			}
			if there {
				h.physicalMilli += c.Milli
				h.physicalMemory += c.Memory
				h.holders = append(h.holders, t)
			}
		}
	}
	tight, over := !w.site.shrunk[n.Name], false
	if all := n.SupportedIsolation.IsolableCores; isolated > all || isolatedThere > all {
		if over = true; tight {
			return fmt.Errorf("%d isolated cores are booked and %d held of %d", isolated, isolatedThere, all)
		}
	}
	for i := range n.Resources {
		l := &n.Resources[i]
		if l.Used != booked[l.Name] {
			return fmt.Errorf("%s: State has a use of %d, and tasks hold %d", l.Name, l.Used, booked[l.Name])
		}
		if l.Free() < 0 || physical[l.Name] > l.Capacity {
			if over = true; tight {
				return fmt.Errorf("%s: %d booked and %d held of %d", l.Name, l.Used, physical[l.Name], l.Capacity)
			}
		}
		if l.Releasing != physical[l.Name]-bound[l.Name] {
			return fmt.Errorf("%s: State has %d releasing, but %d are held, of which %d are not releasing", l.Name, l.Releasing, physical[l.Name], bound[l.Name])
		}
	}
	for i := range n.Devices {
		over = over || max(devices[i].memory, devices[i].physicalMemory) > n.Devices[i].Room()
	}
	over = over || checkShared(n) != nil
	if !over {
		delete(w.site.shrunk, n.Name) // its tasks fit again, and must fit from now on
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
		if d.Use.Milli != h.milli || d.Use.Memory != h.memory || int(d.Use.Leases) != len(h.booked) {
			return fmt.Errorf("device %d: State has a use of %+v, and tasks hold %d milli and %d bytes", i, d.Use, h.milli, h.memory)
		}
		if max(h.milli, h.physicalMilli) > cluster.Whole || !shrunk && max(h.memory, h.physicalMemory) > d.Room() {
			return fmt.Errorf("device %d is booked twice: %d milli booked, %d held; %d and %d bytes of %d", i, h.milli, h.physicalMilli, h.memory, h.physicalMemory, d.Room())
		}
		for _, holders := range [][]*cluster.Task{h.booked, h.holders} {
			if err := checkExclusive(holders); err != nil {
				return fmt.Errorf("device %d: %w", i, err)
			}
		}
	}
	if err := checkShared(n); err != nil && !shrunk {
		return err
	}
	if n.DeviceUsed() != used {
		return fmt.Errorf("devices: the node has a use of %d, and tasks hold %d", n.DeviceUsed(), used)
	}
	return nil
}

// checkShared checks devices that share their memory, such as replicas by
// time-slicing: requests in bytes must not exceed the memory of all of them together.
func checkShared(n *cluster.Node) error {
	booked, held := map[string]cluster.Bytes{}, map[string]cluster.Bytes{}
	for _, t := range n.Tasks {
		need := &t.Shape.Need
		if t.Shape.Isolation.Exclusive() || need.Memory == 0 && need.Share == 0 && need.Layers == nil {
			continue
		}
		for _, c := range t.Claims {
			if !isFreeing(t) {
				booked[n.Devices[c.Device].Shares] += c.Memory
			}
			if t.Status != cluster.Nominated {
				held[n.Devices[c.Device].Shares] += c.Memory
			}
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if most := max(booked[d.Shares], held[d.Shares]); d.Shares != "" && most > d.Memory-d.Reserved {
			return fmt.Errorf("device %d and others share %d bytes, and %d are booked or held", i, d.Memory-d.Reserved, most)
		}
	}
	return nil
}

// checkExclusive checks that a task with an exclusive device or node is its only holder.
func checkExclusive(holders []*cluster.Task) error {
	for _, t := range holders {
		for _, o := range holders {
			if t == o {
				continue
			}
			if t.Shape.Need.WholeNode && o.Shape.Need.WholeNode {
				return fmt.Errorf("%s and %s both have the whole node", t.ID, o.ID)
			}
			ti, oi := t.Shape.Isolation, o.Shape.Isolation
			switch ti.GPU {
			case cluster.GPUDeviceExclusive, cluster.GPUPartitionExclusive:
				return fmt.Errorf("%s holds it exclusively, and %s holds it as well", t.ID, o.ID)
			case cluster.GPUSessionExclusive:
				if ti.Session == "" || oi.GPU != ti.GPU || oi.Session != ti.Session {
					return fmt.Errorf("%s holds it exclusively for its session, and %s holds it as well", t.ID, o.ID)
				}
			}
		}
	}
	return nil
}

// queueUse is what a queue uses, and the part of it that is not preemptible.
type queueUse struct{ used, firm cluster.Resources }

func (w *World) queueUses() map[string]queueUse {
	out := map[string]queueUse{}
	for _, q := range w.State.Queues() {
		out[q.Name] = queueUse{slices.Clone(q.Used), slices.Clone(q.UsedByFirm)}
	}
	return out
}

// checkLimits checks that no decision made the use of a queue exceed its limit, nor
// its firm use exceed its quota. If a limit or quota was lowered below the use, the
// use may stay as it is, but must not grow.
func (w *World) checkLimits(before map[string]queueUse) error {
	for _, q := range w.State.Queues() {
		for _, l := range q.Limits {
			if used := q.Used.Of(l.Name) - w.overdueUse(q, l.Name, true); used > l.Value && used > before[q.Name].used.Of(l.Name) {
				return fmt.Errorf("queue %s uses %d of %s, its limit is %d", q.Name, used, l.Name, l.Value)
			}
		}
		for _, l := range q.Quota {
			if firm := q.UsedByFirm.Of(l.Name) - w.overdueUse(q, l.Name, false); firm > l.Value && firm > before[q.Name].firm.Of(l.Name) {
				return fmt.Errorf("queue %s: jobs that are not preemptible use %d of %s, its quota is %d", q.Name, firm, l.Name, l.Value)
			}
		}
	}
	return nil
}

// overdueUse returns what overdue tasks of the queue hold. These were evicted and
// did not stop in time, so that their room counts as used again without a decision.
func (w *World) overdueUse(q *cluster.Queue, resource string, preemptible bool) (sum int64) {
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

// Dump writes State as text, without versions.
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

// isFreeing reports whether the room of the task counts as becoming free. The room of
// an overdue task counts as used.
func isFreeing(t *cluster.Task) bool { return t.Status == cluster.Releasing && !t.Overdue() }
