package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fleet is the nodes. Every change of a node gives it a new version.
type fleet struct {
	journal  *journal
	slots    slots[Node]
	byName   map[string]*Node
	sorted   []*Node          // by name
	ranks    []int64          // by slot: in the order of names, with gaps
	born     []uint64         // by slot: the version its present node came with
	absent   map[string]*Node // that are gone, or not known yet, and have tasks on them
	avoiding map[string]bool  // nodes that avoid shapes
	groups   map[Key]*Group
	unified  int              // nodes with unified memory
	kinds    map[kind]int     // devices that are not lost
	samples  []Device         // one of each kind, in order
	shared   map[kind]*Device // what nodes have as their sample
}

func newFleet(l *journal) fleet {
	return fleet{journal: l, byName: map[string]*Node{}, absent: map[string]*Node{}, avoiding: map[string]bool{}, groups: map[Key]*Group{}, kinds: map[kind]int{}, shared: map[kind]*Device{}}
}

// find finds a node by name, an absent one too.
func (f *fleet) find(name string) *Node {
	return cmp.Or(f.byName[name], f.absent[name])
}

// all are all nodes, the absent ones last.
func (f *fleet) all() []*Node { return slices.Concat(f.sorted, f.Absent()) }

// listAbsent keeps the list of absent nodes that tasks are on.
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

// countKinds adds (sign +1) or takes away (-1) the node's devices.
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
			f.sample()
		}
	}
}

// share is the device that all nodes have as their sample whose devices are of the kind.
func (f *fleet) share(k kind) *Device {
	if f.shared[k] == nil {
		d := k.device()
		f.shared[k] = &d
	}
	return f.shared[k]
}

// sample makes one device of every kind, in order. Earlier answers of Kinds stay as they are.
func (f *fleet) sample() {
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

// remove removes a node that no task is on.
func (f *fleet) remove(n *Node) { undoable(f.journal, f, n, (*fleet).delete, (*fleet).insert) }

// insert is add without the journal, and delete is remove without it.
func (f *fleet) insert(n *Node) {
	f.seat(n)
	f.order(n)
	if g := f.join(n); g != nil {
		g.Nodes = insert(g.Nodes, n, byName)
	}
	f.arise(n)
}

// seat gives the node a slot.
func (f *fleet) seat(n *Node) {
	if n.slot = f.slots.take(n); n.slot == len(f.ranks) {
		f.ranks = append(f.ranks, 0)
		f.born = append(f.born, 0)
	}
	f.byName[n.Name] = n
	if len(n.Avoids) > 0 {
		f.avoiding[n.Name] = true
	}
}

// arise gives the new node its first version.
func (f *fleet) arise(n *Node) {
	f.touch(n)
	n.spec = n.version
	f.born[n.slot] = n.version
}

func (f *fleet) delete(n *Node) {
	f.leave(n)
	f.touch(n) // caches learn that the slot changed
	delete(f.byName, n.Name)
	delete(f.avoiding, n.Name)
	f.sorted = remove(f.sorted, n, byName)
	f.slots.free(n.slot)
}

// join counts what the node has and returns its group, which does not list it
// yet; nil without devices.
func (f *fleet) join(n *Node) *Group {
	f.countKinds(n, +1)
	if n.uniform && !n.Devices[0].Lost {
		n.sample = f.share(n.Devices[0].kind())
	}
	if n.Unified {
		f.unified++
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

func (f *fleet) leave(n *Node) {
	f.countKinds(n, -1)
	if n.Unified {
		f.unified--
	}
	if g := n.group; g != nil {
		g.Nodes = remove(g.Nodes, n, byName)
		keepIf(len(g.Nodes) > 0, f.groups, g.Key, g)
		n.group = nil
	}
}

// touch gives the node a new version. An absent node has no slot, and nothing
// looks at its version.
func (f *fleet) touch(n *Node) {
	if n.absent {
		return
	}
	f.slots.touch(n.slot)
	n.version = f.slots.version
}

func (f *fleet) avoid(n *Node, shape *Shape, until int64) {
	list := slices.DeleteFunc(slices.Clone(n.Avoids), func(a Avoided) bool {
		if a.Shape.same(shape) {
			until = max(until, a.Until)
			return true
		}
		return false
	})
	list = append(list, Avoided{shape, until})
	slices.SortFunc(list, func(a, b Avoided) int { return strings.Compare(a.Shape.spell(), b.Shape.spell()) })
	f.setAvoids(n, list)
}

// expire has nodes take the shapes again that they avoided until now.
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
		f.journal.cold(func() { set(was) })
	}
}

// clone copies the fleet. Its nodes still have the tasks of the old one.
func (f *fleet) clone(l *journal) fleet {
	c := newFleet(l)
	c.byName = make(map[string]*Node, len(f.byName))
	c.slots, c.sorted, c.ranks, c.born = f.slots.clone(), make([]*Node, len(f.sorted)), slices.Clone(f.ranks), slices.Clone(f.born)
	c.avoiding, c.unified, c.kinds = maps.Clone(f.avoiding), f.unified, maps.Clone(f.kinds)
	c.samples = f.samples // never changed in place
	for i, n := range f.sorted {
		m := n.clone()
		c.sorted[i], c.slots.at[m.slot], c.byName[m.Name] = m, m, m
	}
	for name, n := range f.absent {
		c.absent[name] = n.clone()
	}
	for key, g := range f.groups {
		to := &Group{Key: g.Key, Nodes: make([]*Node, len(g.Nodes))}
		for i, n := range g.Nodes {
			to.Nodes[i] = c.slots.at[n.slot]
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
	claims, err := n.resolve(devices)
	if err == nil {
		err = t.Held().checkClaimCount(claims)
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

// fits checks the claims against the ledgers.
func (f *fleet) fits(t *Task, n *Node, claims []Claim) error {
	if f.byName[n.Name] != n {
		return fmt.Errorf("the node is gone")
	}
	for _, a := range t.Shape.Resources {
		if want := a.Value + n.host(t.Shape, claims, a.Name); want > 0 {
			if l := n.Ledger(a.Name); l == nil || l.Free() < want {
				return fmt.Errorf("not enough %s", a.Name)
			}
		}
	}
	if t.Shape.Isolation.CPU == CPUStrictIsolated && n.Isolated+t.Shape.Cores() > n.Advertised.IsolableCores {
		return fmt.Errorf("not enough isolable cores")
	}
	for _, c := range claims {
		if c.Device >= 0 && c.Device < len(n.Devices) && n.Devices[c.Device].Lost {
			return fmt.Errorf("device %d is lost", c.Device)
		}
	}
	return n.holds(t.Shape, claims, false)
}

// resolve resolves a node, an absent one too, and holdings of its devices.
func (f *fleet) resolve(name string, holdings []Holding) (*Node, []Claim, error) {
	n := f.find(name)
	if n == nil {
		return nil, nil, fmt.Errorf("no node %q", name)
	}
	claims, err := n.resolve(holdings)
	return n, claims, err
}
