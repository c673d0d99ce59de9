package soak

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Check holds the books against what the tasks say.
func (w *World) Check() error {
	for _, n := range w.State.Nodes() {
		if err := checkNode(n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	used := map[string]cluster.Resources{}
	for _, j := range w.State.Jobs() {
		placed := 0
		for a := range j.Alternatives {
			for _, t := range j.Alternatives[a].Tasks {
				if (t.Node == nil) != (t.Status == cluster.Pending) {
					return fmt.Errorf("%s is %s on node %v", t.ID, t.Status, t.Node)
				}
				if t.Node == nil {
					continue
				}
				if a != j.Chosen {
					return fmt.Errorf("%s is placed, but alternative %d was chosen", t.ID, j.Chosen)
				}
				if w.State.Node(t.Node.Name) != t.Node {
					return fmt.Errorf("%s is on a node that is gone", t.ID)
				}
				placed++
				if t.Status != cluster.Releasing {
					charge(used, t)
				}
			}
		}
		if placed > 0 && placed < j.Alternatives[j.Chosen].Min {
			return fmt.Errorf("%s: %d tasks placed, the minimum is %d", j.ID, placed, j.Alternatives[j.Chosen].Min)
		}
	}
	for _, q := range w.State.Queues() {
		if fmt.Sprint(nonzero(q.Used)) != fmt.Sprint(nonzero(used[q.Name])) {
			return fmt.Errorf("queue %s: the ledger says %v, its tasks %v", q.Name, q.Used, used[q.Name])
		}
	}
	return nil
}

func charge(used map[string]cluster.Resources, t *cluster.Task) {
	q := t.Job.Queue
	add := func(name string, v int64) { used[q] = used[q].With(name, used[q].Of(name)+v) }
	for _, a := range t.Shape.Resources {
		add(a.Name, a.Value)
	}
	add(cluster.Memory, spill(t))
	for _, c := range t.Claims {
		add(t.Node.Devices[c.Device].Resource, int64(c.Milli))
	}
}

func spill(t *cluster.Task) int64 {
	l := t.Shape.Need.Layers
	if l == nil {
		return 0
	}
	left := l.Total
	for _, c := range t.Claims {
		left -= c.Layers
	}
	return int64(left) * int64(l.Bytes)
}

func nonzero(r cluster.Resources) (out cluster.Resources) {
	for _, a := range r {
		if a.Value != 0 {
			out = append(out, a)
		}
	}
	return out
}

// checkNode adds up what tasks hold, promises and physical room apart.
func checkNode(n *cluster.Node) error {
	promised, physical := map[string]int64{}, map[string]int64{}
	milli, there := make([]cluster.Milli, len(n.Devices)), make([]cluster.Milli, len(n.Devices))
	memory := make([]cluster.Bytes, len(n.Devices))
	holders := make([][]*cluster.Task, len(n.Devices))
	isolated := int64(0)
	for _, t := range n.Tasks {
		if t.Node != n {
			return fmt.Errorf("%s is listed here but is elsewhere", t.ID)
		}
		for _, a := range t.Shape.Resources {
			v := a.Value
			if a.Name == cluster.Memory {
				v += spill(t)
			}
			if t.Status != cluster.Releasing {
				promised[a.Name] += v
			}
			if t.Status != cluster.Nominated {
				physical[a.Name] += v
			}
		}
		if t.Status != cluster.Releasing && t.Shape.Isolation.CPU == cluster.CPUStrictIsolated {
			isolated += t.Shape.Cores()
		}
		for _, c := range t.Claims {
			if t.Status != cluster.Releasing {
				milli[c.Device] += c.Milli
				memory[c.Device] += c.Memory
				holders[c.Device] = append(holders[c.Device], t)
			}
			if t.Status != cluster.Nominated {
				there[c.Device] += c.Milli
			}
		}
	}
	if isolated > n.Advertised.IsolableCores {
		return fmt.Errorf("%d isolated cores of %d", isolated, n.Advertised.IsolableCores)
	}
	for i := range n.Resources {
		l := &n.Resources[i]
		if l.Used != promised[l.Name] {
			return fmt.Errorf("%s: the ledger says %d, tasks hold %d", l.Name, l.Used, promised[l.Name])
		}
		if l.Used > l.Capacity || physical[l.Name] > l.Capacity {
			return fmt.Errorf("%s: %d promised and %d held of %d", l.Name, l.Used, physical[l.Name], l.Capacity)
		}
	}
	var used int64
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && d.Resource == n.DeviceResource {
			used += int64(milli[i])
		}
	}
	if n.DeviceUsed() != used {
		return fmt.Errorf("devices: the node says %d, tasks hold %d", n.DeviceUsed(), used)
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Use.Milli != milli[i] || d.Use.Memory != memory[i] || int(d.Use.Leases) != len(holders[i]) {
			return fmt.Errorf("device %d: the ledger says %+v, tasks hold %d milli and %d bytes", i, d.Use, milli[i], memory[i])
		}
		if milli[i] > cluster.Whole || there[i] > cluster.Whole || memory[i] > d.Memory {
			return fmt.Errorf("device %d is booked twice: %d milli promised, %d held, %d bytes of %d", i, milli[i], there[i], memory[i], d.Memory)
		}
		if err := checkExclusive(holders[i]); err != nil {
			return fmt.Errorf("device %d: %w", i, err)
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

func (w *World) used() map[string]cluster.Resources {
	out := map[string]cluster.Resources{}
	for _, q := range w.State.Queues() {
		out[q.Name] = append(cluster.Resources(nil), q.Used...)
	}
	return out
}

// checkLimits makes sure that no decision took a queue beyond its limit. A limit
// that was lowered below what is used may stay exceeded, but not grow.
func (w *World) checkLimits(before map[string]cluster.Resources) error {
	for _, q := range w.State.Queues() {
		for _, l := range q.Limits {
			if used := q.Used.Of(l.Name); used > l.Value && used > before[q.Name].Of(l.Name) {
				return fmt.Errorf("queue %s uses %d of %s, its limit is %d", q.Name, used, l.Name, l.Value)
			}
		}
	}
	return nil
}

// Dump writes the books down, versions aside.
func Dump(s *cluster.State) string {
	var b strings.Builder
	for _, q := range s.Queues() {
		fmt.Fprintf(&b, "queue %s %v\n", q.Name, q.Used)
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
		fmt.Fprintf(&b, "%s chosen=%d placed=%d\n", j.ID, j.Chosen, j.Placed())
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
	for _, t := range s.Nominated() {
		fmt.Fprintf(&b, "nominated %s\n", t.ID)
	}
	return b.String()
}
