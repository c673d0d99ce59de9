package fillvalue

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// room is what is free of a node. Nodes with equal devices and with about equal free amounts share a
// room, so that it is evaluated once.
type room struct {
	machine *machine
	pool    *pool           // nil if the devices are of several kinds or none of them is free
	cpu     int64           // free, in thousandths of a core, rounded
	memory  int64           // free, in bytes, rounded
	free    []cluster.Milli // of each device, in the order of the machine, the freest of a kind first
	milli   int64           // the sum of free
	tasks   int             // how many tasks are on the node, at most maxTasks; 0 if they are not counted
	nodes   int             // how many nodes have it now
	index   int             // in fleet.used, if nodes is not 0
	key     string          // in fleet.rooms

	worth    int64  // the fill value
	early    int64  // the fill value in which steps count by early
	filledAt uint64 // the number of the workload that worth and early are for
	slots    slotCounts
	value    int64  // see plugin.value
	valuedAt uint64 // the plugin.epoch that value is for
}

// machine is what nodes with equal devices and capacities have in common.
type machine struct {
	key    string
	cpu    int64
	memory cluster.Bytes
	kinds  []int32 // of each device: an index in fleet.kinds; devices of one kind are together
	slots  slotCounts
}

// cpuParts and memoryParts are in how many parts the cores and the memory of a machine are counted, at most
// 255. More parts make more rooms, and did not pack better on the traces of docs/replay.md. Free amounts are
// rounded to the nearest part, so that a slot may count that lacks half a part of the machine.
const (
	cpuParts    = 32
	memoryParts = 16
)

// rounded returns the amount rounded to the nearest part of the capacity, and how many parts that is.
func rounded(amount, capacity, parts int64) (nearest, count int64) {
	if capacity <= 0 {
		return 0, 0
	}
	count = (min(amount, capacity)*parts + capacity/2) / capacity
	return count * capacity / parts, count
}

// Rooms that are not used any more are forgotten when State has learnt other requests and more than
// enoughRooms were used since rooms were last forgotten, or more than maxRooms and twice as many as nodes
// have. So there are at most twice as many.
const (
	enoughRooms = 10_000
	maxRooms    = 250_000
)

// maxMachines is how many machines, or kinds of devices, are kept in addition to two for each node. More
// have been on nodes before.
const maxMachines = 8192

// maxTasks is how many tasks a room counts. That more of them end is too unlikely to make a difference.
const maxTasks = 12

// countTasks makes rooms count tasks, or not. If tasks do not end, rooms of nodes with different
// numbers of tasks are the same.
func (f *fleet) countTasks(counting bool) {
	if f.counting == counting {
		return
	}
	for _, r := range f.used {
		r.nodes = 0
	}
	for i := range f.nodes {
		k := &f.nodes[i]
		k.room, k.counted, k.tasks = nil, nil, 0 // the machine stays
	}
	f.next = nil
	f.counting, f.used, f.version = counting, nil, 0
	f.count, f.free, f.whole, f.running = 0, 0, 0, 0
}

// fleet keeps the rooms of the nodes.
type fleet struct {
	kinds    []cluster.Device // one idle device of every kind
	machines map[string]*machine
	rooms    aging[*room]
	pools    aging[*pool]
	used     []*room // the rooms that nodes have, in no order
	nodes    []known // by slot
	version  uint64  // the version of State up to which counts are known
	count    int     // how many nodes there are
	free     int64   // of all devices, in thousandths
	whole    int64   // all devices, in thousandths
	running  int64   // tasks on nodes
	counting bool    // whether rooms count tasks
	// Buffers.
	key       []byte
	next      map[taken][]*room // see after
	scratch   room              // that is compared with those that are known
	prices    []cluster.Milli   // see pricesOf
	pricedFor *cluster.Shape    // the shape that prices are for
}

// known is what is known of a node.
type known struct {
	version uint64 // of the node
	spec    uint64 // the version of the spec that machine and order are of
	machine *machine
	order   []int32 // the index in Node.Devices of each device of the machine
	room    *room
	left    int64 // see left
	counted *room // the room with which the node is counted; nil if it is not
	tasks   int64 // how many tasks it is counted with
}

// full reports whether there are too many machines or kinds of devices. They are numbered, so that they are
// forgotten with everything else.
func (f *fleet) full() bool {
	return max(len(f.machines), len(f.kinds)) > maxMachines+2*len(f.nodes)
}

func newFleet() fleet {
	return fleet{machines: map[string]*machine{}, rooms: newAging[*room](), pools: newAging[*pool]()}
}

// room returns what is free of the node.
func (f *fleet) room(n *cluster.Node) *room {
	slot := n.Slot()
	for slot >= len(f.nodes) {
		f.nodes = append(f.nodes, known{})
	}
	k := &f.nodes[slot]
	if k.room != nil && k.version == n.Version() {
		return k.room
	}
	if k.machine == nil || k.spec != n.SpecVersion() {
		k.machine, k.order = f.machineOf(n)
		k.spec = n.SpecVersion()
	}
	k.version = n.Version()
	k.room = f.read(n, k)
	k.left = left(n, k.room)
	return k.room
}

// count takes in which nodes have which room now.
func (p *plugin) count() {
	f := &p.fleet
	if f.version == p.view.Version() && f.version > 0 {
		return
	}
	p.view.Recent().Nodes(f.version, func(slot int) {
		n := p.view.At(slot)
		if n == nil {
			if slot < len(f.nodes) {
				f.countNode(&f.nodes[slot], nil, 0)
				f.nodes[slot] = known{}
			}
			return
		}
		r := p.room(n)
		f.countNode(&f.nodes[slot], r, int64(len(n.Tasks)))
	})
	f.version = p.view.Version()
}

// countNode counts the node with the room and the number of tasks, and not with those that it was
// counted with before.
func (f *fleet) countNode(k *known, now *room, tasks int64) {
	if was := k.counted; was != nil {
		if was.nodes--; was.nodes == 0 {
			last := f.used[len(f.used)-1]
			f.used[was.index], last.index = last, was.index
			f.used = f.used[:len(f.used)-1]
		}
		f.count--
		f.free -= was.milli
		f.whole -= int64(len(was.free)) * int64(cluster.Whole)
		f.running -= k.tasks
	}
	if k.counted, k.tasks = now, tasks; now != nil {
		if now.nodes++; now.nodes == 1 {
			now.index = len(f.used)
			f.used = append(f.used, now)
		}
		f.count++
		f.free += now.milli
		f.whole += int64(len(now.free)) * int64(cluster.Whole)
		f.running += tasks
	}
}

// taken is a task of a shape that takes a part of a room.
type taken struct {
	room  *room
	shape *cluster.Shape
}

// maxNext bounds the memory for what may be left of rooms by shape. If there is more, all of it is
// forgotten.
const maxNext = 500_000

// forgetUnused forgets rooms that no node has and that were not looked up since the last call.
func (f *fleet) forgetUnused() {
	f.next = nil // it has rooms that may be forgotten
	f.rooms.turn()
	f.pools.turn()
	for _, r := range f.used {
		f.rooms.young[r.key] = r
		if r.pool != nil {
			f.pools.young[string(f.poolKey(r))] = r.pool
		}
	}
}

// machineOf returns the machine of the node, and the order of its devices. It has no devices that the node
// does not report any more, because State forgets them when it is restored.
func (f *fleet) machineOf(n *cluster.Node) (*machine, []int32) {
	m := &machine{cpu: capacity(n, cluster.CPU), memory: cluster.Bytes(capacity(n, cluster.Memory))}
	order := make([]int32, 0, len(n.Devices))
	kinds := make([]int32, len(n.Devices))
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Gone {
			order, kinds[i] = append(order, int32(i)), f.kindOf(d)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { // not by number: kinds are numbered in the order in which they are seen
		return compareKinds(&f.kinds[kinds[a]], &f.kinds[kinds[b]])
	})
	for _, i := range order {
		m.kinds = append(m.kinds, kinds[i])
	}
	key := binary.AppendVarint(nil, m.cpu)
	key = binary.AppendVarint(key, int64(m.memory))
	for _, k := range m.kinds {
		key = binary.AppendVarint(key, int64(k))
	}
	m.key = string(key)
	if same := f.machines[m.key]; same != nil {
		return same, order
	}
	m.key = string(binary.AppendUvarint(nil, uint64(len(f.machines)))) // short, because it begins the key of each room
	f.machines[string(key)] = m
	return m, order
}

func compareKinds(a, b *cluster.Device) int {
	return cmp.Or(
		strings.Compare(a.Product, b.Product), strings.Compare(a.Profile, b.Profile), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Type, b.Type),
		cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Reserved, b.Reserved), cmp.Compare(a.Fraction, b.Fraction),
	)
}

// unlimited is the amount of a resource of a node that does not say how much it has.
const unlimited = 1 << 50

func capacity(n *cluster.Node, resource string) int64 {
	if l := n.Ledger(resource); l != nil {
		return min(l.Capacity, unlimited)
	}
	return unlimited
}

// kindOf returns the kind of the device: an index in kinds.
func (f *fleet) kindOf(d *cluster.Device) int32 {
	for i := range f.kinds {
		if compareKinds(&f.kinds[i], d) == 0 {
			return int32(i)
		}
	}
	f.kinds = append(f.kinds, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: d.Product, Profile: d.Profile, Resource: d.Resource, Type: d.Type, Memory: d.Memory, Reserved: d.Reserved, Fraction: d.Fraction}})
	return int32(len(f.kinds) - 1)
}

// read returns the room of the node.
func (f *fleet) read(n *cluster.Node, k *known) *room {
	r := &f.scratch
	*r = room{machine: k.machine, cpu: free(n, cluster.CPU), memory: free(n, cluster.Memory), free: f.scratch.free[:0]}
	if f.counting {
		r.tasks = min(len(n.Tasks), maxTasks)
	}
	for _, i := range k.order {
		r.free = append(r.free, freeOf(&n.Devices[i]))
	}
	return f.share(r)
}

// free returns how much of the resource is free on the node.
func free(n *cluster.Node, resource string) int64 {
	if l := n.Ledger(resource); l != nil {
		return min(max(0, l.Free()), unlimited)
	}
	return unlimited
}

// freeOf returns which part of the device other tasks can have, in thousandths.
func freeOf(d *cluster.Device) cluster.Milli {
	if d.Lost || !d.Permits(cluster.Isolation{}) {
		return 0
	}
	milli := max(0, d.FreeMilli())
	if d.Foreign > 0 && d.Memory > 0 {
		milli = min(milli, cluster.Milli(max(0, d.Free())*cluster.Bytes(cluster.Whole)/d.Memory))
	}
	return milli
}

// share returns the room that is equal to r. If there is none, it keeps a copy of r.
func (f *fleet) share(r *room) *room {
	var cpu, memory int64
	r.cpu, cpu = rounded(r.cpu, r.machine.cpu, cpuParts)
	r.memory, memory = rounded(r.memory, int64(r.machine.memory), memoryParts)
	key := append(f.key[:0], r.machine.key...)
	key = append(key, byte(cpu), byte(memory), byte(r.tasks))
	from := 0
	for i := range r.free { // within each kind, the freest device first
		if r.machine.kinds[i] != r.machine.kinds[from] {
			from = i
		}
		for j := i; j > from && r.free[j] > r.free[j-1]; j-- {
			r.free[j], r.free[j-1] = r.free[j-1], r.free[j]
		}
	}
	for _, m := range r.free {
		key = append(key, byte(m), byte(m>>8))
	}
	f.key = key
	if same, ok := f.rooms.find(key); ok {
		return same
	}
	kept := &room{machine: r.machine, cpu: r.cpu, memory: r.memory, tasks: r.tasks, free: slices.Clone(r.free), key: string(key)}
	for _, m := range r.free {
		kept.milli += int64(m)
	}
	f.rooms.young[kept.key] = kept
	kept.pool = f.poolOf(kept)
	return kept
}

// poolOf returns the pool of the room, which other rooms may share.
func (f *fleet) poolOf(r *room) *pool {
	kinds := r.machine.kinds
	if r.milli == 0 || kinds[0] != kinds[len(kinds)-1] {
		return nil
	}
	key := f.poolKey(r)
	p, ok := f.pools.find(key)
	if !ok {
		p = &pool{kind: kinds[0], free: r.free[:r.notFull()], milli: r.milli}
		f.pools.young[string(key)] = p
	}
	return p
}

// poolKey returns the key of the pool of the room in fleet.pools. It is valid until the next call.
func (f *fleet) poolKey(r *room) []byte {
	key := binary.AppendVarint(f.key[:0], int64(r.machine.kinds[0]))
	for _, m := range r.free[:r.notFull()] {
		key = append(key, byte(m), byte(m>>8))
	}
	f.key = key
	return key
}

// notFull returns how many devices are not full, if all are of one kind.
func (r *room) notFull() int {
	n := len(r.free)
	for n > 0 && r.free[n-1] == 0 {
		n--
	}
	return n
}

// left measures what is left of a node with the room, in thousandths of a device: a machine of 128 cores
// and 8 devices has 2,000, in the unit of costs. Cores are not rounded.
func left(n *cluster.Node, r *room) int64 {
	return (min(free(n, cluster.CPU), manyCores)/128 + r.milli/8) * unit
}

// manyCores is more than a machine has. If the cores of a node are not limited, what is left must not count
// more than everything else.
const manyCores = 1 << 24
