package cluster

import (
	"cmp"
	"slices"
)

// Shortage is what a node's devices are short of for a shape.
type Shortage struct {
	Lack       Lack
	Devices    int // that Want and Have are of together; 0 and 1: of one device
	Want, Have int64
}

// Lack is the kind of a shortage.
type Lack int

// The kinds of shortage.
const (
	LackNothing Lack = iota
	LackKind         // the node has fewer devices of the kind than are wanted, idle or not
	LackDevices      // fewer devices have enough free
	LackNode         // fewer devices are free, where all of the node's are wanted
	LackShare        // thousandths of a device
	LackBytes        // device memory
	LackMemory       // memory of the node
)

func short(lack Lack, want, have int) Shortage {
	return Shortage{Lack: lack, Want: int64(want), Have: int64(have)}
}

// lackMemory is that the node has less memory than the shape requests and takes
// beside that.
func (v supply) lackMemory(beside int64) Shortage {
	out := Shortage{Lack: LackMemory, Want: v.s.Resources.Of(Memory) + beside}
	if l := v.n.Ledger(Memory); l != nil {
		out.Have = l.Free()
	}
	return out
}

// Short is what the node, on which no devices can be chosen for the shape, is short of.
func (s *Shape) Short(n *Node) Shortage {
	v := supplyOf(s, n)
	if v.unified {
		v.unified = false
		if claims, ok := v.choose(nil); ok { // the devices would do; it is the pot that they share with the node
			v.unified = true
			return v.lackMemory(v.host(claims))
		}
	}
	return s.set().short(v)
}

// Roomy is a quick yes to whether the node, with no task on it, has devices for the
// shape. A no means that a closer look is due.
func (s *Shape) Roomy(n *Node) bool {
	return s.Need.None() || !n.Unified && s.set().roomy(supplyOf(s, n))
}

// EverShort is what the node would be short of with no task on it and nothing found
// in use; false where that takes a look at Node.Emptied.
func (s *Shape) EverShort(n *Node) (Shortage, bool) {
	return s.set().empty(supplyOf(s, n))
}

// survey counts a node's devices for a shape: all that are of the kind, those of
// them that are large enough, and those of these that can take their part now.
// Where groups may not be mixed it is of the group that comes nearest.
type survey struct {
	supply
	group               string // "" is any
	once                bool   // replicas that share memory count as one device
	kind, large, takers int
}

func surveyOf(v supply) survey {
	if !v.s.bonded() {
		return surveyGroup(v, "")
	}
	var best survey
	last, set, want, one := "", v.s.set(), max(1, v.s.Need.Devices), v.isOneGroup()
	for i := range v.n.Devices {
		if i > 0 && one {
			break
		}
		group := v.s.group(&v.n.Devices[i])
		if i > 0 && group == last {
			continue
		}
		last = group
		t := surveyGroup(v, group)
		if i == 0 || best.less(t, want) || !t.less(best, want) && set.gives(t) > set.gives(best) {
			best = t
		}
	}
	return best
}

// less compares by what the groups could ever give of the wanted devices, then by what they give now.
func (t survey) less(o survey, want int) bool {
	return cmp.Or(
		cmp.Compare(min(t.kind, want), min(o.kind, want)),
		cmp.Compare(min(t.large, want), min(o.large, want)),
		cmp.Compare(t.takers, o.takers),
	) < 0
}

func surveyGroup(v supply, group string) survey {
	t := survey{supply: v, group: group}
	s, n := v.s, v.n
	alike, part := v.isOneGroup(), s.part()
	kind, big := false, false
	if alike && n.Unfilled() == 0 { // one look for all
		if t.includes(&n.Devices[0]) {
			t.kind = len(n.Devices)
			if part.suits(s, &n.Devices[0]) {
				t.large = t.kind
			}
		}
		return t
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if i == 0 || !alike {
			kind = t.includes(d)
			big = kind && part.suits(s, d)
		}
		if kind {
			t.kind++
		}
		if !big {
			continue
		}
		t.large++
		// The plain cases first: a device that is held whole takes nothing more.
		switch {
		case d.Use.Milli >= Whole:
		case d.Use.Leases == 0 && d.Use.Beside == 0 && d.Foreign == 0 && part.sure(), s.Takes(d):
			t.takers++
		}
	}
	return t
}

// counts reports whether the device is of the kind, whatever its size.
func (t survey) includes(d *Device) bool {
	return t.s.Need.Kind(d) && t.s.Need.Selects(d) && (t.group == "" || t.group == t.s.group(d))
}

// least is what the last of so many devices gives when those that give most are taken.
func (t survey) least(devices int, of func(*Shape, *Device) int64) int64 {
	if devices == 1 {
		most := int64(0)
		for i := range t.n.Devices {
			if d := &t.n.Devices[i]; t.includes(d) {
				most = max(most, of(t.s, d))
			}
		}
		return most
	}
	var room [32]int64
	values := t.values(room[:0], of)
	return values[len(values)-devices]
}

// most is what so many devices give together when those that give most are taken.
// Replicas that are taken whole give the memory that they share once.
func (t survey) most(devices int, of func(*Shape, *Device) int64) int64 {
	var room [32]int64
	var values []int64
	if t.n.sliced && !t.shares() {
		values = t.cards(of)
	} else {
		values = t.values(room[:0], of)
	}
	sum := int64(0)
	for _, v := range values[max(0, len(values)-devices):] {
		sum += v
	}
	return sum
}

// values are what the devices of the kind give, smallest first.
func (t survey) values(out []int64, of func(*Shape, *Device) int64) []int64 {
	if t.once {
		return t.cards(of)
	}
	for i := range t.n.Devices {
		if d := &t.n.Devices[i]; t.includes(d) {
			out = append(out, of(t.s, d))
		}
	}
	slices.Sort(out)
	return out
}

// cards are what the devices give, smallest first, replicas that share memory as one.
func (t survey) cards(of func(*Shape, *Device) int64) []int64 {
	var out []int64
	at := map[string]int{}
	for i := range t.n.Devices {
		d := &t.n.Devices[i]
		if !t.includes(d) {
			continue
		}
		if k, again := at[d.Shares]; again && d.Shares != "" {
			out[k] = max(out[k], of(t.s, d))
			continue
		}
		at[d.Shares] = len(out)
		out = append(out, of(t.s, d))
	}
	slices.Sort(out)
	return out
}

// tooFew is why fewer devices take the shape than it wants, if that is so.
func (t survey) tooFew(want int) Shortage {
	switch {
	case t.kind < want:
		return short(LackKind, want, t.kind)
	case t.large < want:
		return t.s.part().tooSmall(t, want)
	case t.takers < want:
		return t.s.part().inUse(t, want)
	}
	return Shortage{}
}

// together is what devices are short of that would each take their part: memory
// that replicas share, or the sum of what they give.
func (t survey) shortTogether(want int) Shortage {
	most := t.most(want, claimNow)
	out := Shortage{Lack: LackBytes, Devices: want, Want: int64(t.s.Need.SumAtLeast), Have: most}
	if !t.shares() || most < out.Want {
		return out
	}
	have := int64(0) // free of the devices that take their part
	for _, v := range t.cards(freeOfTaker) {
		have += v
	}
	if have < most {
		out.Want, out.Have = most, have
		return out
	}
	// There is as much, in pieces too small for so many: say how many have their part.
	fewer := *t.s
	fewer.Need.WholeNode, fewer.Need.SumAtLeast, fewer.Need.Devices = false, 0, want-1
	for fewer.Need.Devices > 0 && !(supply{&fewer, t.n, t.unified}).feasible() {
		fewer.Need.Devices--
	}
	return short(LackDevices, want, fewer.Need.Devices)
}

// freeOfTaker is what is free of a device that takes its part.
func freeOfTaker(s *Shape, d *Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return freeMemory(s, d)
}
