package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Layers describes work that splits over devices layer by layer.
type Layers struct {
	Total int   `json:"total,omitempty"` // how many there are
	Bytes Bytes `json:"bytes,omitempty"` // of each
	Fixed Bytes `json:"fixed,omitempty"` // on every device used, beside its layers
	Least int   `json:"least,omitempty"` // that must be on devices; the rest may spill to RAM
	Spill bool  `json:"spill,omitempty"` // whether the rest may spill at all
}

// Within is how many layers so much memory of one device holds.
func (l *Layers) Within(free Bytes) int {
	if room := free - l.Fixed; room > 0 && l.Bytes > 0 {
		return int(min(room/l.Bytes, math.MaxInt32))
	}
	return 0
}

// share is what so many layers take of each of so many devices, beside what is fixed.
func (l *Layers) share(layers int, devices int64) Bytes {
	return Bytes((int64(layers)+devices-1)/devices) * l.Bytes
}

// least is how many layers must be on devices.
func (l *Layers) least() int {
	if l.Spill {
		return l.Least
	}
	return l.Total
}

// layered is both part and set of divisible work: of each device it takes room for
// some of its layers, and as few devices as hold them all, or as many as requested.
type layered struct {
	partial
	number
}

func (layered) asked(s *Shape) bool { return s.Need.Layers != nil }

// The part.

func (layered) sure() bool { return false } // a layer may be too large

func (layered) suits(_ *Shape, d *Device) bool { return d.Reserved <= d.Memory }
func (layered) takes(s *Shape, d *Device) bool { return s.Need.Layers.Within(d.InStep()) > 0 }

// claim is that of a device for which layers are not counted.
func (layered) claim(_ *Shape, _ *Device, room Bytes) (Milli, Bytes) { return Whole, room }

func (layered) spare(*Shape) Milli { return Whole - 1 }

// times: a task takes a thousandth of a device at least.
func (layered) times(_ *Shape, milli Milli, _ Bytes) int64 { return int64(milli) }

func (layered) memory(s *Shape, d *Device) (least, most Bytes) {
	return s.Need.Layers.Fixed + s.Need.Layers.Bytes, d.Room()
}

// fill leaves out what a device holds beside its layers: it makes no difference to
// the order of devices.
func (layered) fill(s *Shape, d *Device) (part, free int64) {
	return MulDiv(int64(s.Need.Layers.Bytes), int64(s.Need.Layers.Total), 1), int64(d.Free())
}

func (layered) price(s *Shape, d *Device) Milli {
	l := s.Need.Layers
	if all := min(int64(d.Memory), int64(l.Fixed)+MulDiv(int64(l.Total), int64(l.Bytes), 1)); all > 0 {
		return d.Part(Bytes(all))
	}
	return Whole
}

func (layered) cheapest(*Shape) (Milli, bool) { return 1, false }
func (layered) tooSmall(survey, int) Shortage { return Shortage{Lack: LackBytes} }

func (layered) inUse(v survey, want int) Shortage { return short(LackDevices, want, v.takers) }

// The set.

func (layered) plain() bool         { return false }
func (layered) single() bool        { return true }
func (layered) sized() bool         { return false }
func (layered) open(s *Shape) bool  { return s.Need.Devices == 0 }
func (layered) matters(*Shape) bool { return true }

// lay takes as few devices as hold all layers, those that hold most first, or as
// many as were requested, and divides the layers among them in proportion to what
// they have free. What no device holds must be allowed to spill to the node's memory.
func (layered) lay(c choice, order []int) ([]Claim, bool) {
	need, l := &c.s.Need, c.s.Need.Layers
	room := func(i int) int { return l.Within(c.n.Devices[i].InStep()) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(min(room(b), l.Total), min(room(a), l.Total)) })
	if c.n.sliced {
		order = apart(c.n.Devices, order)
	}
	if need.Devices > 0 {
		if len(order) < need.Devices || l.Total < need.Devices {
			return nil, false
		}
		order = order[:need.Devices]
	}
	fits, all, pot := make([]int, 0, len(order)), 0, c.pot()
	for _, i := range order {
		if need.Devices == 0 && all >= l.Total {
			break
		}
		later := Bytes(max(0, need.Devices-len(fits)-1)) // devices that must have a layer each after this one
		fit := min(room(i), l.Within(pot-later*(l.Fixed+l.Bytes)))
		if fit == 0 {
			break // the pot is empty
		}
		pot -= l.Fixed + Bytes(fit)*l.Bytes
		fits, all = append(fits, fit), all+fit
	}
	on := min(all, l.Total)
	if on < l.least() || len(fits) < max(1, need.Devices) {
		return nil, false
	}
	if spill := Bytes(l.Total-on) * l.Bytes; spill > 0 && !c.unified { // affords looks at the pot
		m := c.n.Ledger(Memory)
		if m == nil || m.Free() < c.s.Resources.Of(Memory)+int64(spill) {
			return nil, false
		}
	}
	claims := make([]Claim, 0, len(fits))
	// A task that tolerates no other holds devices whole, as far as the pot allows.
	rest := max(0, c.pot()-Bytes(len(fits))*l.Fixed-Bytes(l.Total)*l.Bytes)
	for i, k := range divide(on, fits, all) {
		d := &c.n.Devices[order[i]]
		memory := l.Fixed + Bytes(k)*l.Bytes
		milli := d.Part(memory)
		if c.s.counted() {
			more := min(d.Room()-memory, rest)
			milli, memory, rest = Whole, memory+more, rest-more
		}
		claims = append(claims, Claim{Device: order[i], Milli: milli, Memory: memory, Layers: k})
	}
	sortClaims(claims)
	return claims, true
}

// divide gives each device one layer, and the rest of them in proportion to what
// each could hold beyond it. Those that come first have the remainders.
func divide(layers int, fits []int, all int) []int {
	out := make([]int, len(fits))
	rest, room := layers-len(fits), all-len(fits)
	left := rest
	for i, fit := range fits {
		out[i] = 1
		if room > 0 {
			k := int(MulDiv(int64(rest), int64(fit-1), int64(room)))
			out[i] += k
			left -= k
		}
	}
	for i := 0; left > 0; i = (i + 1) % len(fits) {
		if out[i] < fits[i] {
			out[i]++
			left--
		}
	}
	return out
}

// layersOn is how many layers the claims hold.
func layersOn(claims []Claim) int {
	on := 0
	for i := range claims {
		on += claims[i].Layers
	}
	return on
}

func (layered) spill(s *Shape, claims []Claim) Bytes {
	return Bytes(s.Need.Layers.Total-layersOn(claims)) * s.Need.Layers.Bytes
}

func (layered) maySpill(s *Shape) Bytes {
	l := s.Need.Layers
	return Bytes(l.Total-l.least()) * l.Bytes
}

func (layered) fewest(supply, []*Task) (int, bool) { return 1, true }

// count is that of as few devices as hold the layers, if they may.
func (layered) count(v supply, d *Device) int64 {
	need, l := &v.s.Need, v.s.Need.Layers
	if need.Devices > 0 {
		return int64(need.Devices)
	}
	each := int64(max(1, l.Within(d.Memory-d.Reserved)))
	return max(1, min(named(v.n, d), (int64(l.Total)+each-1)/each))
}

func (t layered) each(v supply, d *Device) Milli {
	if v.s.counted() {
		return Whole
	}
	l := v.s.Need.Layers
	return min(Whole, d.Part(l.Fixed+l.share(l.Total, t.count(v, d))))
}

// least takes into account that what is divided among several devices is rounded
// down on each.
func (t layered) least(v supply, d *Device) int64 {
	if v.s.counted() {
		return t.count(v, d) * int64(Whole)
	}
	l := v.s.Need.Layers
	part := int64(d.Part(l.Fixed + Bytes(l.least())*l.Bytes))
	return max(1, part-int64(len(v.n.Devices)-1))
}

func (layered) load(s *Shape, d *Device, capacity int64) int64 {
	if d.Memory == 0 {
		return capacity
	}
	l := s.Need.Layers
	memory := int64(max(1, s.Need.Devices))*int64(l.Fixed) + int64(l.Total)*int64(l.Bytes)
	return min(capacity, int64(d.Part(Bytes(memory))))
}

func (layered) roomy(supply) bool { return false }

// gives counts on one of the replicas that share memory.
func (layered) gives(v survey) int64 {
	v.once = v.n.sliced
	return v.most(cmp.Or(v.s.Need.Devices, v.kind), layersIn)
}

func (t layered) short(v supply) Shortage {
	need, l := &v.s.Need, v.s.Need.Layers
	has := surveyOf(v)
	want := max(1, need.Devices)
	if has.kind < want {
		return short(LackKind, want, has.kind)
	}
	if has.once = v.n.sliced; has.once {
		if cards := len(has.cards(layersIn)); cards < want {
			return short(LackKind, want, cards)
		}
	}
	// What one device must give before anything else counts.
	if each := int64(l.Fixed + l.Bytes); has.least(want, layersIn) == 0 {
		return Shortage{Lack: LackBytes, Want: each, Have: min(has.least(want, layerMemory), each-1)}
	}
	on := min(t.gives(has), int64(l.Total))
	if on >= int64(l.least()) { // the devices take their part, and the node has no room for the rest
		return v.lackMemory((int64(l.Total) - on) * int64(l.Bytes))
	}
	return Shortage{Lack: LackBytes, Devices: cmp.Or(need.Devices, has.kind), Want: int64(l.least()) * int64(l.Bytes), Have: on * int64(l.Bytes)}
}

// layersIn is how many layers the device has room for.
func layersIn(s *Shape, d *Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return int64(s.Need.Layers.Within(Bytes(layerMemory(s, d))))
}

// layerMemory is what layers can have of the device.
func layerMemory(s *Shape, d *Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	return int64(d.InStep())
}
