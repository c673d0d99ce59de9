package cluster

import (
	"cmp"
	"slices"
)

// Shortage says what a node lacks for the devices that a shape requests. The unit of
// Want and Have depends on Lack.
type Shortage struct {
	Lack       Lack
	Devices    int   // how many devices Want and Have are about together; 0 and 1 mean one device
	Meet, Of   int   // how many devices meet a requested share, of how many of the kind; 0 if no share is requested
	Want, Have int64 // what is requested, and what the node has of it
	// WantBytes and HaveBytes are a share that is requested, and what is free of it, in bytes of
	// the device that Have is about. They are set only if the shape also requests bytes.
	WantBytes, HaveBytes Bytes
}

// Lack is the kind of a shortage.
type Lack int

// The kinds of shortage.
const (
	LackNothing   Lack = iota
	LackKind           // devices of the requested kind, in use or not; in devices
	LackDevices        // devices with enough free; in devices
	LackLinked         // devices with enough free in one NVLink domain; in devices
	LackWholeNode      // free devices, if all devices of the node are requested; in devices
	LackShare          // a share of one device; in thousandths
	LackBytes          // device memory; in bytes
	LackMemory         // memory of the node; in bytes
)

func countShortage(lack Lack, want, have int) Shortage {
	return Shortage{Lack: lack, Want: int64(want), Have: int64(have)}
}

// lackMemory returns the shortage of a node that has less memory of its own than the
// shape requests plus what its devices take of it, which is beside, in bytes.
func (v supply) lackMemory(beside int64) Shortage {
	out := Shortage{Lack: LackMemory, Want: v.s.Resources.Of(Memory) + beside}
	if l := v.n.Ledger(Memory); l != nil {
		out.Have = l.Free()
	}
	return out
}

// Short returns what the node lacks for the shape. It must only be called if Node.Choose
// finds no devices for the shape.
func (s *Shape) Short(n *Node) Shortage {
	if (sameLink{}).applies(&s.Need) {
		if short, found := s.shortLinked(n); found {
			return short
		}
	}
	v := supplyOf(s, n)
	if v.unified {
		v.unified = false
		if claims, ok := v.choose(nil); ok { // the devices suffice; the memory that they share with the node does not
			v.unified = true
			return v.lackMemory(v.hostMemory(claims))
		}
	}
	return s.set().shortage(v)
}

// shortLinked returns what the node lacks for a shape that requires one NVLink domain: what
// it lacks without this requirement or, if that is nothing, free devices in one domain. It
// returns false if a domain has as many free devices as are needed.
func (s *Shape) shortLinked(n *Node) (Shortage, bool) {
	loose := *s
	if loose.Need.SameLink = false; !n.Feasible(&loose) {
		return loose.Short(n), true
	}
	takers, most := map[string]int{}, 0
	for i := range n.Devices {
		if d := &n.Devices[i]; s.Takes(d) {
			group := sameLink{}.group(&s.Need, d)
			takers[group]++
			most = max(most, takers[group])
		}
	}
	return countShortage(LackLinked, s.Need.Devices, most), most < s.Need.Devices
}

// FitsEmptied is a cheap test whether the node has devices for the shape if no task is on
// it. If it returns false, the node may have them nevertheless.
func (s *Shape) FitsEmptied(n *Node) bool {
	return s.Need.None() || !n.Unified && s.set().fitsEmptied(supplyOf(s, n))
}

// EverShort returns what the node would lack with no task on it and no foreign use. It
// returns false if it cannot tell, so that the caller has to look at Node.Emptied.
func (s *Shape) EverShort(n *Node) (Shortage, bool) {
	return s.set().shortageEmptied(supplyOf(s, n))
}

// survey counts the devices of a node for a shape.
type survey struct {
	supply
	group        string // only devices of this group count; "" means all
	onePerMemory bool   // replicas that share memory count as one device
	kind         int    // devices of the requested kind
	large        int    // of these, devices that are large enough
	takers       int    // of these, devices that have enough free now
}

// surveyOf returns the survey of all devices. If a groupRule forbids to mix groups of
// devices, it returns the survey of the group that misses the least.
func surveyOf(v supply) survey {
	if !v.s.mustMatch() {
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
		if i == 0 || best.less(t, want) || !t.less(best, want) && set.offered(t) > set.offered(best) {
			best = t
		}
	}
	return best
}

// less reports whether a survey is worse than another: by how many of the wanted devices
// the groups could ever offer, then by how many they offer now.
func (t survey) less(o survey, want int) bool {
	return cmp.Or(
		cmp.Compare(min(t.kind, want), min(o.kind, want)),
		cmp.Compare(min(t.large, want), min(o.large, want)),
		cmp.Compare(t.takers, o.takers),
	) < 0
}

// surveyGroup returns the survey of the devices of one group, or of all devices if the
// group is "".
func surveyGroup(v supply, group string) survey {
	t := survey{supply: v, group: group}
	s, n := v.s, v.n
	alike, part := v.isOneGroup(), s.part()
	kind, big, spare := false, false, part.mostHeldByOthers(s)
	if alike && n.Unfilled() == 0 { // all devices are equal and full, so that one answers for all
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
		// The cheap tests are made first: a device of which too much is held takes nothing more.
		switch {
		case d.Use.Milli > spare:
		case d.Use.Leases == 0 && d.Use.Beside == 0 && d.Foreign == 0 && part.idleSuffices(), s.Takes(d):
			t.takers++
		}
	}
	return t
}

// includes reports whether the device is of the requested kind, selected and in the
// group, whatever its size.
func (t survey) includes(d *Device) bool {
	return t.s.Need.Kind(d) && t.s.Need.Selects(d) && (t.group == "" || t.group == t.s.group(d))
}

// least returns the smallest value among the given number of devices, if the devices with
// the largest values are taken.
func (t survey) least(devices int, value func(*Shape, *Device) int64) int64 {
	if devices == 1 {
		most := int64(0)
		for i := range t.n.Devices {
			if d := &t.n.Devices[i]; t.includes(d) {
				most = max(most, value(t.s, d))
			}
		}
		return most
	}
	var room [32]int64
	values := t.values(room[:0], value)
	return values[len(values)-devices]
}

// most returns the sum of the values of the given number of devices, if the devices with the
// largest values are taken. Whole replicas that share one memory count once.
func (t survey) most(devices int, value func(*Shape, *Device) int64) int64 {
	var room [32]int64
	var values []int64
	if t.n.sliced && !t.usesSharedMemory() {
		values = t.valuesPerMemory(value)
	} else {
		values = t.values(room[:0], value)
	}
	sum := int64(0)
	for _, v := range values[max(0, len(values)-devices):] {
		sum += v
	}
	return sum
}

// values appends the value of each device that is included to out, and sorts it, smallest
// first.
func (t survey) values(out []int64, value func(*Shape, *Device) int64) []int64 {
	if t.onePerMemory {
		return t.valuesPerMemory(value)
	}
	for i := range t.n.Devices {
		if d := &t.n.Devices[i]; t.includes(d) {
			out = append(out, value(t.s, d))
		}
	}
	slices.Sort(out)
	return out
}

// valuesPerMemory is values with one value for all replicas that share a memory: the
// largest.
func (t survey) valuesPerMemory(value func(*Shape, *Device) int64) []int64 {
	var out []int64
	at := map[string]int{}
	for i := range t.n.Devices {
		d := &t.n.Devices[i]
		if !t.includes(d) {
			continue
		}
		if k, again := at[d.Shares]; again && d.Shares != "" {
			out[k] = max(out[k], value(t.s, d))
			continue
		}
		at[d.Shares] = len(out)
		out = append(out, value(t.s, d))
	}
	slices.Sort(out)
	return out
}

// tooFew returns why fewer devices than wanted can take a task of the shape. It returns
// LackNothing if there are enough.
func (t survey) tooFew(want int) Shortage {
	switch {
	case t.kind < want:
		return countShortage(LackKind, want, t.kind)
	case t.large < want:
		return t.s.part().tooSmall(t, want)
	case t.takers < want:
		return t.s.part().inUse(t, want)
	}
	return Shortage{}
}

// sumShortage returns the shortage of devices whose memory is too little in sum. meet is how
// many of them are large enough, each on its own.
func (t survey) sumShortage(want, meet int, have int64) Shortage {
	out := Shortage{Lack: LackBytes, Devices: want, Want: t.needed(), Have: have}
	if t.s.Need.Share > 0 {
		out.Meet, out.Of = meet, t.kind
	}
	return out
}

// shortTogether returns what devices lack that could each take a task on their own, but
// not all together: memory that replicas share, or the requested sum of memory.
func (t survey) shortTogether(want int) Shortage {
	most := t.most(want, claimNow)
	out := t.sumShortage(want, t.takers, most)
	if !t.usesSharedMemory() || most < out.Want {
		return out
	}
	have := int64(0) // free memory of the devices that can take a task
	for _, v := range t.valuesPerMemory(freeOfTaker) {
		have += v
	}
	if have < most {
		out.Want, out.Have = most, have
		return out
	}
	// The memory suffices in sum, but the free pieces are too small for that many
	// devices. Report how many devices would fit.
	fewer := *t.s
	fewer.Need.WholeNode, fewer.Need.SumAtLeast, fewer.Need.Devices = false, 0, want-1
	for fewer.Need.Devices > 0 && !(supply{&fewer, t.n, t.unified}).feasible() {
		fewer.Need.Devices--
	}
	return countShortage(LackDevices, want, fewer.Need.Devices)
}

// needed returns the least memory of all claims together: the most that the need demands on
// any product of the group.
func (t survey) needed() int64 {
	out := t.s.Need.SumAtLeast
	if len(t.s.Need.Sums) == 0 {
		return int64(out)
	}
	last := ""
	for i := range t.n.Devices {
		d := &t.n.Devices[i]
		if i > 0 && d.Product == last {
			continue
		}
		last = d.Product
		if sum := t.s.Need.SumOn(d.Product); sum > out && t.includes(d) {
			out = sum
		}
	}
	return int64(out)
}

// freeOfTaker returns the free memory of a device that can take a task of the shape, and
// 0 for any other device.
func freeOfTaker(s *Shape, d *Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return freeMemory(s, d)
}
