package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// EqualNodes declares that the hook which the plugin registered last gives equal answers for equal
// nodes. The hook is a shape-form or static filter, a score of one of these forms, a bounded score
// or a device score. Two nodes are equal if they differ at most in their names, in the UUIDs and
// IDs of their devices, in their files, in which tasks are on them, and in labels other than those
// that the call names. What the tasks hold, and how many they are, must be equal. It is optional:
// the engine then calls the hook for one of many equal nodes that it has to judge.
//
// Combining: nodes are judged together for a shape only if every shape-form hook that is called for
// the shape, and every device score, has this declaration, and if the shape selects no devices by
// their IDs. While only one or two shapes are requested, nodes that changed are judged one by one,
// unless they are many. A Twin session judges each node on its own and fails if a declaration is
// wrong.
func EqualNodes(h *Hooks, labels ...string) {
	if h.opening == nil || h.lastPlugin != h.opening || h.lastEquality == nil {
		misused(h, "EqualNodes", "the plugin registered no filter or score of nodes or devices before it; call it after AddShapeFilter, AddStaticFilter, AddShapeScore, AddStaticScore, AddBoundedScore or AddDeviceScore")
		return
	}
	from := len(h.equalLabels)
	h.equalLabels = append(h.equalLabels, labels...)
	*h.lastEquality = equality{true, int32(from), int32(len(h.equalLabels))}
}

// equality is what a plugin declared with EqualNodes about a hook.
type equality struct {
	declared bool
	from, to int32 // its labels in Hooks.equalLabels
}

// patterns gives equal nodes the same number. No number is given to two patterns, so that an answer for
// a number stays good when nodes change. A pattern that has not been met for long may get another
// number.
type patterns struct {
	labels []string // the labels that hooks read, in the order in which they were declared first
	// numbers has the patterns that were met recently, and faded those of the time before. The last
	// number that was given is last.
	numbers, faded map[string]uint32
	last           uint32
	specs          map[string]int32 // the numbers of specs, which placing and evicting does not change
	ofSpec         []numbered       // by slot
	spelling       []byte
}

// numbered is the number of the spec of a node, and Node.SpecVersion plus one; 0: it was not computed.
type numbered struct {
	version uint64
	number  int32
}

// open prepares for a session. It reports whether equal nodes may be judged together, and whether
// nodes must be spelt in another way than before. A device score without a declaration excludes that
// they are judged together, because a score may depend on the devices that are chosen.
func (p *patterns) open(h *Hooks) (sharing, changed bool) {
	known := 0
	see := func(e *equality) {
		for _, l := range h.equalLabels[e.from:e.to] {
			if !slices.Contains(p.labels, l) {
				p.labels, changed = append(p.labels, l), true
			}
		}
	}
	for _, f := range h.filters {
		see(&f.equal)
	}
	for i := range h.shapeScores {
		see(&h.shapeScores[i].equal)
	}
	for i := range h.deviceScores {
		see(&h.deviceScores[i].equal)
		if h.deviceScores[i].equal.declared {
			known++
		}
	}
	return known == len(h.deviceScores), changed
}

// lastNumber is the last number that is given to a pattern.
const lastNumber = 1<<32 - 1<<24

// forget drops all numbers.
func (p *patterns) forget() {
	*p = patterns{labels: p.labels, spelling: p.spelling, numbers: map[string]uint32{}, faded: map[string]uint32{}, specs: map[string]int32{}}
}

// full reports whether most specs are those that nodes had before, or the numbers are used up.
func (p *patterns) full(slots int) bool {
	return len(p.specs) > 8192+2*slots || p.last > lastNumber
}

// begin prepares for looking at nodes in up to so many slots.
func (p *patterns) begin(slots int) {
	if more := slots - len(p.ofSpec); more > 0 {
		p.ofSpec = append(p.ofSpec, make([]numbered, more)...)
	}
	if len(p.numbers) > 8192+slots { // most of these patterns are of states that nodes had before
		p.numbers, p.faded = p.faded, p.numbers
		clear(p.numbers)
	}
}

// of returns the number of the pattern of the node in the slot, from 1 on, and that of its spec, from 0
// on.
func (p *patterns) of(n *cluster.Node, slot int) (pattern uint32, spec int32) {
	at := &p.ofSpec[slot]
	if v := n.SpecVersion() + 1; at.version != v {
		p.spelling = spellSpec(p.spelling[:0], n, p.labels)
		number, known := p.specs[string(p.spelling)]
		if !known {
			number = int32(len(p.specs))
			p.specs[string(p.spelling)] = number
		}
		at.version, at.number = v, number
	}
	p.spelling = spellUse(binary.AppendUvarint(p.spelling[:0], uint64(at.number)), n)
	number, known := p.numbers[string(p.spelling)]
	if known {
		return number, at.number
	}
	if number, known = p.faded[string(p.spelling)]; !known {
		p.last++
		number = p.last
	}
	p.numbers[string(p.spelling)] = number
	return number, at.number
}

// spellSpec appends what hooks may read of a node that placing and evicting tasks does not change.
func spellSpec(b []byte, n *cluster.Node, labels []string) []byte {
	for _, l := range labels {
		value, ok := n.Labels[l]
		b = appendText(appendBool(b, ok), value)
	}
	b = appendText(b, n.Cell)
	b = binary.AppendUvarint(b, uint64(len(n.Taints)))
	for _, t := range n.Taints {
		b = appendText(appendText(appendText(b, t.Key), t.Value), string(t.Effect))
	}
	b = appendText(appendBool(appendBool(b, n.Unschedulable), n.Unified), string(n.Phase))
	b = binary.AppendUvarint(b, uint64(len(n.Resources)))
	for i := range n.Resources {
		b = binary.AppendVarint(appendText(b, n.Resources[i].Name), n.Resources[i].Capacity)
	}
	b = binary.AppendVarint(appendText(appendText(b, n.DeviceResource), n.Sharing.Strategy), int64(n.Sharing.Replicas))
	isolation := &n.SupportedIsolation
	b = binary.AppendUvarint(b, uint64(len(isolation.CPU)))
	for _, c := range isolation.CPU {
		b = appendText(b, string(c))
	}
	b = binary.AppendUvarint(b, uint64(len(isolation.GPU)))
	for _, c := range isolation.GPU {
		b = appendText(b, string(c))
	}
	b = binary.AppendVarint(appendText(b, string(isolation.Share)), isolation.IsolableCores)
	if b = appendBool(b, n.Defect != nil); n.Defect != nil {
		b = appendText(appendText(b, n.Defect.Label), n.Defect.Problem)
	}
	if b = appendBool(b, len(n.Avoids) > 0); len(n.Avoids) > 0 {
		b = binary.AppendUvarint(appendText(b, n.Name), n.SpecVersion()) // such nodes are few: each is equal only to itself, until what it avoids changes
	}
	return spellDevices(b, n.Devices)
}

// spellDevices appends what hooks may read of devices, apart from their use. A device that is equal
// to the one before it, as most are, is spelt as one byte.
func spellDevices(b []byte, devices []cluster.Device) []byte {
	b = binary.AppendUvarint(b, uint64(len(devices)))
	for i := range devices {
		d := &devices[i]
		same := i > 0 && isSpeltAlike(d, &devices[i-1])
		if b = appendBool(b, same); same {
			continue
		}
		for _, s := range [...]string{d.Product, d.Profile, d.Resource, d.Type, d.Link, d.PCIe, d.Shares, d.Parent} {
			b = appendText(b, s)
		}
		for _, v := range [...]int64{int64(d.Memory), int64(d.Reserved), int64(d.NUMA)} {
			b = binary.AppendVarint(b, v)
		}
		for _, v := range [...]bool{d.Lost, d.ByCount, d.Replica, d.Gone} {
			b = appendBool(b, v)
		}
	}
	return b
}

func isSpeltAlike(d, o *cluster.Device) bool {
	if d.DeviceSpec == o.DeviceSpec { // equal devices of a State share a spec
		return d.Lost == o.Lost && d.Gone == o.Gone
	}
	return d.Product == o.Product && d.Profile == o.Profile && d.Resource == o.Resource && d.Type == o.Type && d.Link == o.Link && d.PCIe == o.PCIe && d.Shares == o.Shares && d.Parent == o.Parent &&
		d.Memory == o.Memory && d.Reserved == o.Reserved && d.NUMA == o.NUMA && d.Lost == o.Lost && d.ByCount == o.ByCount && d.Replica == o.Replica && d.Gone == o.Gone
}

// spellUse appends what tasks and foreign processes hold of the node.
func spellUse(b []byte, n *cluster.Node) []byte {
	b = binary.AppendUvarint(b, uint64(len(n.Tasks)))
	b = binary.AppendVarint(b, n.Isolated)
	for i := range n.Resources {
		l := &n.Resources[i]
		for _, v := range [...]int64{l.Used, l.LeftOut, l.Releasing, l.Foreign} {
			b = binary.AppendVarint(b, v)
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		u := d.Use
		if u == (cluster.DeviceUse{}) && d.Foreign == 0 {
			b = append(b, idleDevice)
			continue
		}
		milli, memory, leases := int64(u.Milli), int64(u.Memory), int64(u.Leases)
		u.Milli, u.Memory, u.Leases = 0, 0, 0
		simple := u == (cluster.DeviceUse{}) && d.Foreign == 0
		if simple {
			b = append(b, simplyUsed)
		} else {
			b = append(b, otherwiseUsed)
		}
		for _, v := range [...]int64{milli, memory, leases} {
			b = binary.AppendVarint(b, v)
		}
		if simple {
			continue
		}
		for _, v := range [...]int64{
			int64(u.Exclusive), int64(u.Sessions), int64(u.Nodes), int64(u.Beside), int64(u.ReleasingMilli), int64(u.ReleasingMemory), int64(u.ReleasingLeases), int64(d.Foreign),
		} {
			b = binary.AppendVarint(b, v)
		}
		b = appendText(b, u.SessionName())
	}
	return b
}

// How the use of a device is spelt.
const (
	idleDevice byte = iota
	simplyUsed
	otherwiseUsed
)
