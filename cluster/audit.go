package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/paged"
)

// Audit recomputes everything that State derives from its objects (ledgers, lists,
// counts, the tree of queues), and returns an error that names the first difference
// from what State has. It costs as much as reading a snapshot. Tests call it; a running
// scheduler does not need to.
func (s *State) Audit() error {
	again, err := s.Snapshot().State()
	if err != nil {
		return fmt.Errorf("the snapshot of the State cannot be read: %w", err)
	}
	if a, b := s.Digest(), again.Digest(); a != b {
		return errors.New("the snapshot of the State gives a State with another digest")
	}
	for _, n := range s.fleet.all() {
		if err := auditNode(n, again.fleet.find(n.Name)); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	for _, q := range s.tree.byName {
		o := again.tree.byName[q.Name]
		if !slices.Equal(q.Used, o.Used) || !slices.Equal(q.UsedByFirm, o.UsedByFirm) || q.loose != o.loose || !slices.Equal(q.children, o.children) || !slices.Equal(q.quotas, o.quotas) {
			return fmt.Errorf("queue %s has used %v, firm %v, children %v, quotas %v; recomputed, these are %v, %v, %v, %v", q.Name, q.Used, q.UsedByFirm, q.children, q.quotas, o.Used, o.UsedByFirm, o.children, o.quotas)
		}
	}
	for _, j := range s.roster.jobs {
		o := again.roster.jobs[j.ID]
		if j.tasksOnNodes != o.tasksOnNodes || j.landings != o.landings || j.ended != o.ended || j.Chosen != o.Chosen {
			return fmt.Errorf("%s has %d tasks on nodes, %d landings and %d ended tasks, and alternative %d is chosen; recomputed, these are %d, %d, %d and %d", j.ID, j.tasksOnNodes, j.landings, j.ended, j.Chosen, o.tasksOnNodes, o.landings, o.ended, o.Chosen)
		}
	}
	if err := auditLists(s, again); err != nil {
		return err
	}
	return s.shapes.audit(&again.shapes)
}

func auditNode(n, o *Node) error {
	if !slices.Equal(n.Resources, o.Resources) || n.Isolated != o.Isolated || n.deviceUsed != o.deviceUsed || n.deviceCapacity != o.deviceCapacity || n.filled != o.filled || n.touched != o.touched {
		return fmt.Errorf("it has the ledgers %v; recomputed from its tasks, these are %v", n.Resources, o.Resources)
	}
	if n.uniform && !allAlike(n.Devices) || n.sample != nil && (!n.uniform || n.Devices[0].Lost || n.sample.kind() != n.Devices[0].kind()) {
		return fmt.Errorf("its devices are not all of one kind, or differ from its sample %v", n.sample)
	}
	if w := findWiring(n.Devices); (w == nil) != (n.wiring == nil) {
		return fmt.Errorf("its wiring is %v; recomputed, it is %v", n.wiring, w)
	}
	if n.preemptibleMilli != sumPreemptibleMilli(n) {
		return fmt.Errorf("running preemptible tasks hold %d thousandths of devices, and %d are counted", sumPreemptibleMilli(n), n.preemptibleMilli)
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		k := slices.IndexFunc(o.Devices, func(x Device) bool { return x.UUID == d.UUID })
		if k < 0 {
			if !d.Gone || !d.Idle() {
				return fmt.Errorf("device %s is missing from the snapshot of the node", d.UUID)
			}
			continue
		}
		if !d.Use.equal(o.Devices[k].Use) {
			has, want := d.Use, o.Devices[k].Use
			sessions := [...]string{has.SessionName(), want.SessionName()}
			has.Session, want.Session = nil, nil // a pointer would be printed as an address
			return fmt.Errorf("device %s has the ledger %+v of session %q; recomputed from its tasks, it is %+v of session %q", d.UUID, has, sessions[0], want, sessions[1])
		}
	}
	return nil
}

func auditLists(s, o *State) error {
	for name, pair := range map[string][2]int{
		"pending": {len(s.roster.pending), len(o.roster.pending)}, "nominated": {len(s.roster.nominated), len(o.roster.nominated)}, "moving": {len(s.roster.moving), len(o.roster.moving)},
		"releasing": {len(s.roster.releasing), len(o.roster.releasing)}, "retired": {len(s.roster.retired), len(o.roster.retired)}, "excess": {len(s.sets.excess), len(o.sets.excess)},
		"preemptible": {s.classes.preemptible, o.classes.preemptible}, "groups": {len(s.fleet.groups), len(o.fleet.groups)}, "kinds": {len(s.fleet.kinds), len(o.fleet.kinds)},
		"jobs below their minimum": {len(s.roster.belowMinimum), len(o.roster.belowMinimum)}, "tiers": {s.tree.Weakest(), o.tree.Weakest()}, "unified": {s.fleet.unified, o.fleet.unified}, "linked": {s.fleet.linked, o.fleet.linked}, "classes": {s.classes.audit(&s.fleet.slots.table), o.classes.audit(&o.fleet.slots.table)},
		"sets": {len(s.sets.byName), len(o.sets.byName)}, "terms": {len(s.tree.terms), len(o.tree.terms)}, "absent": {len(s.fleet.absent), len(o.fleet.absent)}, "earmarked": {len(s.roster.earmarked), len(o.roster.earmarked)}, "earmarks": {len(s.fleet.earmarks), len(o.fleet.earmarks)}, "avoiding": {len(s.fleet.avoiding), len(o.fleet.avoiding)},
	} {
		if pair[0] != pair[1] {
			return fmt.Errorf("the count of %s is %d; recomputed, it is %d", name, pair[0], pair[1])
		}
	}
	for id, j := range s.roster.jobs {
		if list := s.roster.byQueue[j.Queue]; list == nil || int(j.queueIndex) >= list.Len() || list.At(int(j.queueIndex)) != j {
			return fmt.Errorf("%s is not at its index in the list of queue %s", id, j.Queue)
		}
		if at := int(j.pendingAt); at > len(s.roster.pending) || at > 0 && s.roster.pending[at-1] != j {
			return fmt.Errorf("%s is not at its index in the list of pending jobs", id)
		}
	}
	listed := 0
	for _, list := range s.roster.byQueue {
		listed += list.Len()
	}
	if listed != len(s.roster.jobs) {
		return fmt.Errorf("%d jobs are listed by queue, and there are %d jobs", listed, len(s.roster.jobs))
	}
	for i, t := range s.roster.releasing {
		if int(t.releasing) != i || t.Status != Releasing {
			return fmt.Errorf("task %s is in the list of releasing tasks at a wrong index, or is not releasing", t.ID)
		}
	}
	for name, list := range s.tree.byParent {
		if !slices.Equal(list, o.tree.byParent[name]) {
			return fmt.Errorf("queues %v are listed below %s; recomputed, these are %v", list, name, o.tree.byParent[name])
		}
	}
	for i, j := range s.roster.pending {
		if of := o.roster.jobs[j.ID]; int(j.pendingAt) != i+1 || s.roster.jobs[j.ID] != j || of == nil || of.pendingAt == 0 {
			return fmt.Errorf("%s is listed as pending, and is not", j.ID)
		}
	}
	return nil
}

// sumPreemptibleMilli recomputes Node.PreemptibleMilli.
func sumPreemptibleMilli(n *Node) int64 {
	sum := int64(0)
	for _, t := range n.Tasks {
		if t.mayBeVictim() {
			sum += t.milli()
		}
	}
	return sum
}

// audit returns how many tasks are in all classes. It returns -1 if a class has a
// wrong figure for a node, or if nodes or classes are not sorted.
func (k *classes) audit(nodes *paged.Table[Node]) (count int) {
	for queue, list := range k.byQueue {
		for i, c := range list {
			tasks := c.audit(nodes)
			if tasks < 0 || c.Queue != queue || i > 0 && c.Priority <= list[i-1].Priority {
				return -1
			}
			count += tasks
		}
	}
	return count
}

// audit returns how many tasks are in the class. It returns -1 if one of its figures
// is wrong.
func (c *class) audit(nodes *paged.Table[Node]) (count int) {
	bounds := map[evictionBound]int{}
	if len(c.byAge.Items) != len(c.nodes) || len(c.nodes) == 0 {
		return -1
	}
	for i, r := range c.byAge.Items {
		n := nodes.At(int(r.slot))
		if n == nil || n.Name != r.name || c.nodes[r.slot] != r || r.heapIndex != i || r.before(c.byAge.Items[max(0, i-1)/2]) {
			return -1
		}
		now := classNode{slot: r.slot, name: r.name, heapIndex: i}
		for _, t := range n.Tasks {
			if t.mayBeVictim() && t.Job.Class() == c.Class {
				if t.elastic() {
					now.elastic++
				}
				now.add(t, now.count == 0)
				now.count++
			}
		}
		if now.whole = now.elastic == 0; now != *r {
			return -1
		}
		bounds[r.evictionBound]++
		count += r.count
	}
	if !maps.Equal(bounds, c.bounds) || lowestOf(bounds) != c.lowest {
		return -1
	}
	return count
}

func (h *shapes) audit(o *shapes) error {
	for key, e := range h.known {
		uses := 0
		if x := o.known[key]; x != nil {
			uses = x.uses
		}
		if e.uses != uses {
			return fmt.Errorf("a shape has %d uses, and %d are counted: %+v", uses, e.uses, *e.shape)
		}
	}
	return nil
}
