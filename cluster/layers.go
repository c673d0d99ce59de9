package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Layers describes divisible work: layers, such as those of a model, that are
// distributed over the devices of a node.
type Layers struct {
	Total int   `json:"total,omitempty"` // how many layers there are
	Bytes Bytes `json:"bytes,omitempty"` // memory of each layer
	Fixed Bytes `json:"fixed,omitempty"` // memory that is needed on every device in addition to its layers
	Least int   `json:"least,omitempty"` // with Spill: how many layers must be on devices
	Spill bool  `json:"spill,omitempty"` // the other layers may be in the memory of the node
}

// Within returns how many layers fit into free bytes of one device.
func (l *Layers) Within(free Bytes) int {
	if room := free - l.Fixed; room > 0 && l.Bytes > 0 {
		return int(min(room/l.Bytes, math.MaxInt32))
	}
	return 0
}

// bytesPerDevice returns how much memory the layers take on each device if they are
// distributed evenly, rounded up to whole layers, without Fixed.
func (l *Layers) bytesPerDevice(layers int, devices int64) Bytes {
	return Bytes((int64(layers)+devices-1)/devices) * l.Bytes
}

// least returns how many layers must be on devices.
func (l *Layers) least() int {
	if l.Spill {
		return l.Least
	}
	return l.Total
}

// layersKind is both the devicePart and the deviceSet of divisible work. Of each device it
// takes memory for some of the layers. It takes as few devices as hold all layers, or as
// many as are requested. The two interfaces describe the methods.
type layersKind struct {
	partial
	countSet
}

func (layersKind) applies(s *Shape) bool { return s.Need.Layers != nil }

// Methods of devicePart.

func (layersKind) idleSuffices() bool { return false } // a layer may be larger than an idle device

func (layersKind) suits(_ *Shape, d *Device) bool { return d.Reserved <= d.Memory }
func (layersKind) takes(s *Shape, d *Device) bool { return s.Need.Layers.Within(d.InStep()) > 0 }

// claim returns the whole device. It is called only where the number of layers on the
// device is not known; claimInOrder computes the claims of divisible work.
func (layersKind) claim(_ *Shape, _ *Device, room Bytes) (Milli, Bytes) { return Whole, room }

func (layersKind) mostHeldByOthers(*Shape) Milli { return Whole - 1 }

// partsWithin returns milli, because a task takes at least one thousandth of a device.
func (layersKind) partsWithin(_ *Shape, milli Milli, _ Bytes) int64 { return int64(milli) }

func (layersKind) memory(s *Shape, d *Device) (least, most Bytes) {
	return s.Need.Layers.Fixed + s.Need.Layers.Bytes, d.Room()
}

// freeFraction ignores Layers.Fixed, which does not change the order of devices.
func (layersKind) freeFraction(s *Shape, d *Device) (part, free int64) {
	return MulDiv(int64(s.Need.Layers.Bytes), int64(s.Need.Layers.Total), 1), int64(d.Free())
}

func (layersKind) price(s *Shape, d *Device) Milli {
	l := s.Need.Layers
	if all := min(int64(d.Memory), int64(l.Fixed)+MulDiv(int64(l.Total), int64(l.Bytes), 1)); all > 0 {
		return d.Part(Bytes(all))
	}
	return Whole
}

func (layersKind) cheapest(*Shape) (Milli, bool) { return 1, false }
func (layersKind) tooSmall(survey, int) Shortage { return Shortage{Lack: LackBytes} }

func (layersKind) inUse(v survey, want int) Shortage {
	return countShortage(LackDevices, want, v.takers)
}

// Methods of deviceSet.

func (layersKind) countSuffices() bool        { return false }
func (layersKind) hasSingleChoice() bool      { return true }
func (layersKind) sized() bool                { return false }
func (layersKind) hasOpenCount(s *Shape) bool { return s.Need.Devices == 0 }
func (layersKind) choiceMatters(*Shape) bool  { return true }

// claimInOrder takes as few devices as hold all layers, or as many as are requested. It
// prefers devices that hold more layers, and distributes the layers over the devices in
// proportion to how many fit on each. Layers that do not fit on devices must be allowed
// to spill, and the node must have free memory for them.
func (layersKind) claimInOrder(c choice, order []int) ([]Claim, bool) {
	need, l := &c.s.Need, c.s.Need.Layers
	room := func(i int) int { return l.Within(c.n.Devices[i].InStep()) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(min(room(b), l.Total), min(room(a), l.Total)) })
	if c.n.sliced {
		order = onePerMemory(c.n.Devices, order)
	}
	if need.Devices > 0 {
		if len(order) < need.Devices || l.Total < need.Devices {
			return nil, false
		}
		order = order[:need.Devices]
	}
	fits, all, unified := make([]int, 0, len(order)), 0, c.freeUnified()
	for _, i := range order {
		if need.Devices == 0 && all >= l.Total {
			break
		}
		later := Bytes(max(0, need.Devices-len(fits)-1)) // how many more devices must have at least one layer each
		fit := min(room(i), l.Within(unified-later*(l.Fixed+l.Bytes)))
		if fit == 0 {
			break // no unified memory is left
		}
		unified -= l.Fixed + Bytes(fit)*l.Bytes
		fits, all = append(fits, fit), all+fit
	}
	on := min(all, l.Total)
	if on < l.least() || len(fits) < max(1, need.Devices) {
		return nil, false
	}
	if spill := Bytes(l.Total-on) * l.Bytes; spill > 0 && !c.unified { // for unified memory, claimsFit checks this
		m := c.n.Ledger(Memory)
		if m == nil || m.Free() < c.s.Resources.Of(Memory)+int64(spill) {
			return nil, false
		}
	}
	claims := make([]Claim, 0, len(fits))
	// An exclusive task holds its devices whole, as far as there is unified memory.
	rest := max(0, c.freeUnified()-Bytes(len(fits))*l.Fixed-Bytes(l.Total)*l.Bytes)
	for i, k := range divide(on, fits, all) {
		d := &c.n.Devices[order[i]]
		memory := l.Fixed + Bytes(k)*l.Bytes
		milli := d.Part(memory)
		if c.s.holdsWhole() {
			more := min(d.Room()-memory, rest)
			milli, memory, rest = Whole, memory+more, rest-more
		}
		claims = append(claims, Claim{Device: order[i], Milli: milli, Memory: memory, Layers: k})
	}
	sortClaims(claims)
	return claims, true
}

// divide distributes the layers over devices that can hold fits layers each, and all
// together. Each device gets one layer, and the others in proportion to how many more it
// can hold. Layers that remain because of rounding are given to the first devices. The
// result has the number of layers of each device.
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

// layersOn returns how many layers are on the claimed devices.
func layersOn(claims []Claim) int {
	on := 0
	for i := range claims {
		on += claims[i].Layers
	}
	return on
}

func (layersKind) spill(s *Shape, claims []Claim) Bytes {
	return Bytes(s.Need.Layers.Total-layersOn(claims)) * s.Need.Layers.Bytes
}

func (layersKind) maySpill(s *Shape) Bytes {
	l := s.Need.Layers
	return Bytes(l.Total-l.least()) * l.Bytes
}

func (layersKind) fewest(supply, []*Task) (int, bool) { return 1, true }

func (layersKind) fewestBySummary(*Shape, int, int, int) (int, bool) { return 1, true }

// chargedDevices returns how many devices like d hold all layers, at most as many as the
// node has, or the number that is requested.
func (layersKind) chargedDevices(v supply, d *Device) int64 {
	need, l := &v.s.Need, v.s.Need.Layers
	if need.Devices > 0 {
		return int64(need.Devices)
	}
	each := int64(max(1, l.Within(d.Memory-d.Reserved)))
	return max(1, min(countNamed(v.n, d), (int64(l.Total)+each-1)/each))
}

func (t layersKind) chargePerDevice(v supply, d *Device) Milli {
	if v.s.holdsWhole() {
		return Whole
	}
	l := v.s.Need.Layers
	return min(Whole, d.Part(l.Fixed+l.bytesPerDevice(l.Total, t.chargedDevices(v, d))))
}

// leastCharge subtracts one thousandth for each further device, because the part of each
// device is rounded down.
func (t layersKind) leastCharge(v supply, d *Device) int64 {
	if v.s.holdsWhole() {
		return t.chargedDevices(v, d) * int64(Whole)
	}
	l := v.s.Need.Layers
	part := int64(d.Part(l.Fixed + Bytes(l.least())*l.Bytes))
	return max(1, part-int64(len(v.n.Devices)-1))
}

func (layersKind) load(s *Shape, d *Device, capacity int64) int64 {
	if d.Memory == 0 {
		return capacity
	}
	l := s.Need.Layers
	memory := int64(max(1, s.Need.Devices))*int64(l.Fixed) + int64(l.Total)*int64(l.Bytes)
	return min(capacity, int64(d.Part(Bytes(memory))))
}

func (layersKind) fitsEmptied(supply) bool { return false }

// offered returns how many layers the devices can hold together. Of replicas that share
// memory it counts one.
func (layersKind) offered(v survey) int64 {
	v.onePerMemory = v.n.sliced
	return v.most(cmp.Or(v.s.Need.Devices, v.kind), layersIn)
}

func (t layersKind) shortage(v supply) Shortage {
	need, l := &v.s.Need, v.s.Need.Layers
	has := surveyOf(v)
	want := max(1, need.Devices)
	if has.kind < want {
		return countShortage(LackKind, want, has.kind)
	}
	if has.onePerMemory = v.n.sliced; has.onePerMemory {
		if memories := len(has.valuesPerMemory(layersIn)); memories < want {
			return countShortage(LackKind, want, memories)
		}
	}
	// Each device must have memory for at least one layer; check this first.
	if each := int64(l.Fixed + l.Bytes); has.least(want, layersIn) == 0 {
		return Shortage{Lack: LackBytes, Want: each, Have: min(has.least(want, layerMemory), each-1)}
	}
	on := min(t.offered(has), int64(l.Total))
	if on >= int64(l.least()) { // the devices hold enough layers, and the node has too little memory for the others
		return v.lackMemory((int64(l.Total) - on) * int64(l.Bytes))
	}
	return Shortage{Lack: LackBytes, Devices: cmp.Or(need.Devices, has.kind), Want: int64(l.least()) * int64(l.Bytes), Have: on * int64(l.Bytes)}
}

// layersIn returns how many layers fit on the device now.
func layersIn(s *Shape, d *Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return int64(s.Need.Layers.Within(Bytes(layerMemory(s, d))))
}

// layerMemory returns how much memory of the device layers can have now.
func layerMemory(s *Shape, d *Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	return int64(d.InStep())
}
