package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fleet is the table of nodes. Every change of a node gives the node a new version.
type fleet struct {
	journal       *journal
	slots         slots[Node]
	byName        map[string]*Node      // the nodes that are known
	sorted        []*Node               // the same nodes, sorted by name
	ranks         []int64               // by slot: a number that sorts like the names, with gaps for new nodes
	reranks       uint64                // how often all nodes got new ranks
	addedVersions []uint64              // by slot: the version with which its current node was added
	lastAdded     uint64                // the highest of these
	absent        map[string]*Node      // nodes that were removed, or are not known yet, and have tasks on them
	avoiding      map[string]bool       // by name: the nodes that have entries in Avoids
	earmarks      map[string]*EarmarkOf // by name of the node, which may be removed; see Job.Earmarked
	groups        map[GroupKey]*Group
	unified       int              // how many nodes have unified memory
	linked        int              // see LinkedNodes
	kinds         map[kind]int     // how many devices of each kind there are, without lost ones
	samples       []Device         // one device of each kind, sorted
	sharedSamples map[kind]*Device // the devices that Node.Sample returns, which nodes share
	specs         deviceSpecs
	isolation     SupportedIsolation // that of the node that was added last
}

func newFleet(l *journal) fleet {
	return fleet{journal: l, byName: map[string]*Node{}, absent: map[string]*Node{}, avoiding: map[string]bool{}, earmarks: map[string]*EarmarkOf{}, groups: map[GroupKey]*Group{}, kinds: map[kind]int{}, sharedSamples: map[kind]*Device{}}
}

// find returns the node with the name, which may be absent, or nil.
func (f *fleet) find(name string) *Node {
	return cmp.Or(f.byName[name], f.absent[name])
}

// all returns all nodes, with the absent ones last.
func (f *fleet) all() []*Node { return slices.Concat(f.sorted, f.Absent()) }

// listAbsent adds the node to the list of absent nodes, or removes it, depending on
// whether the node is absent and has tasks.
func (f *fleet) listAbsent(n *Node) {
	switch {
	case !n.absent && f.absent[n.Name] != n:
	case n.absent && len(n.Tasks) > 0:
		f.absent[n.Name] = n
	default:
		delete(f.absent, n.Name)
	}
}

// Absent is View.Absent.
func (f *fleet) Absent() []*Node {
	return ordered(f.absent, byName)
}

// countKinds adds (sign +1) or subtracts (-1) the node's devices in the counts of kinds.
// It updates the samples if a kind is new or has no device any more.
func (f *fleet) countKinds(n *Node, sign int) {
	for i := 0; i < len(n.Devices); {
		d := &n.Devices[i]
		k, run := d.kind(), 0
		for ; i < len(n.Devices) && k == n.Devices[i].kind(); i++ {
			if !n.Devices[i].Lost {
				run++
			}
		}
		if run == 0 {
			continue
		}
		was := f.kinds[k]
		if f.kinds[k] = was + sign*run; f.kinds[k] == 0 {
			delete(f.kinds, k)
		}
		if was == 0 || was+sign*run == 0 {
			f.rebuildSamples()
		}
	}
}

// sharedSample returns the sample for nodes on which all devices are of the kind. All
// such nodes have the same pointer.
func (f *fleet) sharedSample(k kind) *Device {
	if f.sharedSamples[k] == nil {
		d := k.device()
		f.sharedSamples[k] = &d
	}
	return f.sharedSamples[k]
}

// rebuildSamples makes a new list of one device of every kind, sorted. It does not
// change the old list, which callers of View.Kinds may still have.
func (f *fleet) rebuildSamples() {
	f.samples = make([]Device, 0, len(f.kinds))
	for k := range f.kinds {
		f.samples = append(f.samples, k.device())
	}
	slices.SortFunc(f.samples, func(a, b Device) int {
		return strings.Compare(a.ProductResource+"\x00"+a.Profile+"\x00"+a.Type, b.ProductResource+"\x00"+b.Profile+"\x00"+b.Type)
	})
}

// add adds a new node.
func (f *fleet) add(n *Node) { undoable(f.journal, f, n, (*fleet).insert, (*fleet).delete) }

// remove removes a node that has no tasks on it.
func (f *fleet) remove(n *Node) { undoable(f.journal, f, n, (*fleet).delete, (*fleet).insert) }

// insert is add without the journal, and delete is remove without it.
func (f *fleet) insert(n *Node) {
	f.takeSlot(n)
	f.insertSorted(n)
	if g := f.joinGroup(n); g != nil {
		g.Nodes = insert(g.Nodes, n, byName)
	}
	f.setFirstVersion(n)
}

// takeSlot gives the node a slot, and adds it to the maps by name.
func (f *fleet) takeSlot(n *Node) {
	slot := f.slots.take(n)
	if n.slot = int32(slot); slot == len(f.ranks) {
		f.ranks = append(f.ranks, 0)
		f.addedVersions = append(f.addedVersions, 0)
	}
	f.byName[n.Name] = n
	if len(n.Avoids) > 0 {
		f.avoiding[n.Name] = true
	}
}

// setFirstVersion gives the new node its first version.
func (f *fleet) setFirstVersion(n *Node) {
	f.touch(n)
	n.spec = n.version
	f.addedVersions[n.slot], f.lastAdded = n.version, n.version
}

func (f *fleet) delete(n *Node) {
	f.leaveGroup(n)
	f.touch(n) // readers that keep data by slot must see that it changed
	delete(f.byName, n.Name)
	delete(f.avoiding, n.Name)
	f.sorted = remove(f.sorted, n, byName)
	f.slots.free(n.Slot())
}

// shareIsolation makes the node share its lists of isolation classes with the node that was added
// before it, if they are equal. They are never written to.
func (f *fleet) shareIsolation(n *Node) {
	is, last := &n.SupportedIsolation, &f.isolation
	if slices.Equal(is.CPU, last.CPU) && slices.Equal(is.GPU, last.GPU) {
		is.CPU, is.GPU = last.CPU, last.GPU
	}
	f.isolation = *is
}

// joinGroup counts the devices of the node, and sets and returns its group, or nil if the
// node has no devices. The caller adds the node to Group.Nodes.
func (f *fleet) joinGroup(n *Node) *Group {
	f.specs.share(n, &f.slots.table)
	f.shareIsolation(n)
	f.countKinds(n, +1)
	if n.uniform && !n.Devices[0].Lost {
		n.sample = f.sharedSample(n.Devices[0].kind())
	}
	if n.Unified {
		f.unified++
	}
	if n.wiring.linked() {
		f.linked++
	}
	n.group = nil
	if k, ok := n.groupKey(); ok {
		if n.group = f.groups[k]; n.group == nil {
			n.group = &Group{Key: k}
			f.groups[k] = n.group
		}
	}
	return n.group
}

// leaveGroup undoes joinGroup, and removes the node from Group.Nodes.
func (f *fleet) leaveGroup(n *Node) {
	f.countKinds(n, -1)
	if n.Unified {
		f.unified--
	}
	if n.wiring.linked() {
		f.linked--
	}
	if g := n.group; g != nil {
		g.Nodes = remove(g.Nodes, n, byName)
		keepIf(len(g.Nodes) > 0, f.groups, g.Key, g)
		n.group = nil
	}
}

// touch gives the node a new version. It does nothing for an absent node, which has no
// slot.
func (f *fleet) touch(n *Node) {
	if n.absent {
		return
	}
	f.slots.Touch(n.Slot())
	n.version = f.slots.Version
}

// avoid notes that no task of the shape is to be placed on the node before the time
// until. If that is noted already, the later of the two times counts.
func (f *fleet) avoid(n *Node, shape *Shape, until int64) {
	list := slices.DeleteFunc(slices.Clone(n.Avoids), func(a Avoided) bool {
		if a.Shape.same(shape) {
			until = max(until, a.Until)
			return true
		}
		return false
	})
	list = append(list, Avoided{shape, until})
	slices.SortFunc(list, func(a, b Avoided) int { return strings.Compare(a.Shape.encoding(), b.Shape.encoding()) })
	f.setAvoids(n, list)
}

// expire removes the entries with a time that has passed from Node.Avoids.
func (f *fleet) expire(now int64) {
	for name := range f.avoiding {
		expired := func(a Avoided) bool { return a.Until <= now }
		if n := f.byName[name]; n != nil && slices.ContainsFunc(n.Avoids, expired) {
			f.setAvoids(n, slices.DeleteFunc(slices.Clone(n.Avoids), expired))
		}
	}
}

func (f *fleet) setAvoids(n *Node, list []Avoided) {
	was := n.Avoids
	if len(was) == len(list) && len(list) == 0 {
		return
	}
	set := func(list []Avoided) {
		n.Avoids = list
		keepIf(len(list) > 0, f.avoiding, n.Name, true)
		f.touch(n)
		n.spec = n.version
	}
	set(list)
	if f.journal.recording() {
		f.journal.recordUndo(func() { set(was) })
	}
}

// clone copies the fleet. Tasks in the copied nodes are still those of the original; the
// caller replaces them.
func (f *fleet) clone(l *journal) fleet {
	c := newFleet(l)
	c.byName = make(map[string]*Node, len(f.byName))
	c.slots, c.sorted, c.ranks, c.addedVersions = f.slots.clone(), make([]*Node, len(f.sorted)), slices.Clone(f.ranks), slices.Clone(f.addedVersions)
	c.lastAdded = f.lastAdded
	c.avoiding, c.unified, c.linked, c.kinds = maps.Clone(f.avoiding), f.unified, f.linked, maps.Clone(f.kinds)
	c.earmarks = maps.Clone(f.earmarks)
	c.samples = f.samples // the list is never changed in place
	for i, n := range f.sorted {
		m := n.clone()
		c.sorted[i], c.byName[m.Name] = m, m
		c.slots.table.Set(int(m.slot), m)
	}
	for name, n := range f.absent {
		c.absent[name] = n.clone()
	}
	for key, g := range f.groups {
		to := &Group{Key: g.Key, Nodes: make([]*Node, len(g.Nodes))}
		for i, n := range g.Nodes {
			to.Nodes[i] = c.slots.table.At(int(n.slot))
			to.Nodes[i].group = to
		}
		c.groups[key] = to
	}
	return c
}

// checkRoom returns the node and the claims for a task that is to be assigned or
// nominated. It returns an error unless the task is pending and the room is free, or
// the same room is reserved for the task already. It books nothing.
func (f *fleet) checkRoom(t *Task, node string, devices []Holding) (*Node, []Claim, error) {
	n := f.byName[node]
	if n == nil {
		return nil, nil, fmt.Errorf("no node %q", node)
	}
	claims, err := n.Resolve(devices)
	if err == nil {
		err = t.Held().CheckClaims(claims)
	}
	if err != nil {
		return nil, nil, err
	}
	if t.Status == Nominated && t.Node == n && slices.Equal(t.Claims, claims) {
		if !n.Keeps(t) {
			return nil, nil, fmt.Errorf("node %q no longer has the room that was reserved for task %s", node, t.ID)
		}
		return n, t.Claims, nil
	}
	if t.Status != Pending {
		return nil, nil, fmt.Errorf("task %s is %s, not pending", t.ID, t.Status)
	}
	if err := f.fits(t, n, claims); err != nil {
		return nil, nil, fmt.Errorf("task %s does not fit node %s: %w", t.ID, n.Name, err)
	}
	return n, claims, nil
}

// fits returns an error if the node does not have enough free resources, or if its
// devices do not have what is claimed.
func (f *fleet) fits(t *Task, n *Node, claims []Claim) error {
	if f.byName[n.Name] != n {
		return fmt.Errorf("the node was removed")
	}
	for _, a := range t.Shape.Resources {
		if want := a.Value + n.hostMemory(t.Shape, claims, a.Name); want > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < want {
				return fmt.Errorf("not enough %s", a.Name)
			}
		}
	}
	if t.Shape.Isolation.CPU == CPUStrictIsolated && n.Isolated+t.Shape.Cores() > n.SupportedIsolation.IsolableCores {
		return fmt.Errorf("not enough isolable cores")
	}
	for _, c := range claims {
		if c.Device >= 0 && c.Device < len(n.Devices) && n.Devices[c.Device].Lost {
			return fmt.Errorf("device %d is lost", c.Device)
		}
	}
	return n.holds(t.Shape, claims, false)
}

// resolve returns the node with the name, which may be absent, and the holdings as
// claims of its devices.
func (f *fleet) resolve(name string, holdings []Holding) (*Node, []Claim, error) {
	n := f.find(name)
	if n == nil {
		return nil, nil, fmt.Errorf("no node %q", name)
	}
	claims, err := n.Resolve(holdings)
	return n, claims, err
}
