package cluster

import (
	"cmp"
	"slices"
)

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
func (layersKind) takes(s *Shape, d *Device) bool {
	return d.InStep()-s.Need.Layers.fixedOn(d) >= max(1, s.layers().smallest)
}

// claim returns the whole device. It is called only where the number of layers on the
// device is not known; claimInOrder computes the claims of divisible work.
func (layersKind) claim(_ *Shape, _ *Device, room Bytes) (Milli, Bytes) { return Whole, room }

func (layersKind) mostHeldByOthers(*Shape) Milli { return Whole - 1 }

// partsWithin returns milli, because a task takes at least one thousandth of a device.
func (layersKind) partsWithin(_ *Shape, milli Milli, _ Bytes) int64 { return int64(milli) }

func (layersKind) memory(s *Shape, d *Device) (least, most Bytes) {
	return s.Need.Layers.Fixed + s.layers().smallest, d.Room()
}

// freeFraction ignores Layers.Fixed, which does not change the order of devices. If several
// devices are requested, each holds its part of the layers.
func (layersKind) freeFraction(s *Shape, d *Device) (part, free int64) {
	return int64(s.layers().all()) / int64(max(1, s.Need.Devices)), int64(d.Free())
}

func (layersKind) price(s *Shape, d *Device) Milli {
	if all := min(d.Memory, s.Need.Layers.fixedOn(d)+s.layers().all()); all > 0 {
		return d.Part(all)
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
// prefers the devices with the best scores if as many as are requested hold all layers, and
// else devices that hold more layers. It distributes the layers over the devices in
// proportion to the memory that each has for them. Layers that do not fit on devices must
// be allowed to spill, and the node must have free memory for them.
func (layersKind) claimInOrder(c choice, order []int) ([]Claim, bool) {
	need, l, t := &c.s.Need, c.s.Need.Layers, c.s.layers()
	rows := rowsOn(c.supply, order)
	if n := need.Devices; n > 0 && n < len(order) { // the devices with the best scores, if they hold all layers
		if best := rowsOn(c.supply, slices.Clone(order[:n])); len(best) == n && best.held(l.Total) == l.Total {
			rows = best
		}
	}
	on := rows.held(l.Total)
	if len(rows) < max(1, need.Devices) || on < l.least() {
		return nil, false
	}
	if spill := t.sum(l.Total - on); spill > 0 && !c.unified { // for unified memory, claimsFit checks this
		m := c.n.Ledger(Memory)
		if m == nil || m.Free() < c.s.Resources.Of(Memory)+int64(spill) {
			return nil, false
		}
	}
	rows.divide(t)
	claims := make([]Claim, 0, len(rows))
	// An exclusive task holds its devices whole, as far as there is unified memory.
	rest := c.freeUnified() - t.all()
	for _, r := range rows {
		rest -= l.fixedOn(&c.n.Devices[r.device])
	}
	rest = max(0, rest)
	for i, r := range rows {
		d := &c.n.Devices[r.device]
		end := rows[i+1:].first(l.Total) // where the next row begins
		memory := l.fixedOn(d) + t.sum(end) - t.sum(r.start)
		milli := d.Part(memory)
		if c.s.holdsWhole() {
			more := min(d.Room()-memory, rest)
			milli, memory, rest = Whole, memory+more, rest-more
		}
		claims = append(claims, Claim{Device: r.device, Milli: milli, Memory: memory, Layers: end - r.start})
	}
	return claims, true
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
	return s.layers().sum(s.Need.Layers.Total - layersOn(claims))
}

func (layersKind) maySpill(s *Shape) Bytes {
	l := s.Need.Layers
	return s.layers().sum(l.Total - l.least())
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
	most := countNamed(v.n, d)
	return max(1, int64(v.s.layers().devicesFor(int(most), d.Memory-d.Reserved-l.fixedOn(d))))
}

func (t layersKind) chargePerDevice(v supply, d *Device) Milli {
	if v.s.holdsWhole() {
		return Whole
	}
	each := v.s.layers().largestPart(int(t.chargedDevices(v, d)))
	return min(Whole, d.Part(v.s.Need.Layers.fixedOn(d)+each))
}

// leastCharge subtracts one thousandth for each further device, because the part of each
// device is rounded down.
func (t layersKind) leastCharge(v supply, d *Device) int64 {
	if v.s.holdsWhole() {
		return t.chargedDevices(v, d) * int64(Whole)
	}
	l, table := v.s.Need.Layers, v.s.layers()
	part := int64(d.Part(l.Fixed + table.all() - table.sum(l.Total-l.least())))
	return max(1, part-int64(len(v.n.Devices)-1))
}

func (layersKind) load(s *Shape, d *Device, capacity int64) int64 {
	if d.Memory == 0 {
		return capacity
	}
	memory := Bytes(max(1, s.Need.Devices))*s.Need.Layers.fixedOn(d) + s.layers().all()
	return min(capacity, int64(d.Part(memory)))
}

func (layersKind) fitsEmptied(supply) bool { return false }

// offered returns how many layers the devices can hold together. Of replicas that share
// memory it counts one.
func (layersKind) offered(v survey) int64 { return int64(v.layerRows().held(v.s.Need.Layers.Total)) }

// layerRows puts as many layers as possible on the devices of the survey.
func (t survey) layerRows() layerRows {
	var order []int
	for i := range t.n.Devices {
		if d := &t.n.Devices[i]; t.includes(d) && t.s.Takes(d) {
			order = append(order, i)
		}
	}
	return rowsOn(t.supply, order)
}

func (layersKind) shortage(v supply) Shortage {
	need, l, t := &v.s.Need, v.s.Need.Layers, v.s.layers()
	has := surveyOf(v)
	want := max(1, need.Devices)
	if has.kind < want {
		return countShortage(LackKind, want, has.kind)
	}
	if has.onePerMemory = v.n.sliced; has.onePerMemory {
		if memories := len(has.valuesPerMemory(layerMemory)); memories < want {
			return countShortage(LackKind, want, memories)
		}
	}
	// Each device must have memory for at least one layer; check this first.
	if each := int64(l.Fixed + max(1, t.smallest)); has.least(want, takesLayer) == 0 {
		return Shortage{Lack: LackBytes, Want: each, Have: min(has.least(want, layerMemory), each-1)}
	}
	rows := has.layerRows()
	on := rows.held(l.Total)
	switch {
	case len(rows) < want: // a device has memory for the smallest layer, but not for those that it would get
		each := int64(l.Fixed + l.Bytes)
		return Shortage{Lack: LackBytes, Want: each, Have: min(has.least(want, layerMemory), each-1)}
	case on >= l.least(): // the devices hold enough layers, and the node has too little memory for the others
		return v.lackMemory(int64(t.sum(l.Total - on)))
	}
	return Shortage{Lack: LackBytes, Devices: cmp.Or(need.Devices, has.kind), Want: int64(t.all() - t.sum(l.Total-l.least())), Have: int64(t.all() - t.sum(l.Total-on))}
}

// takesLayer returns 1 if the device can hold the smallest layer now, and else 0.
func takesLayer(s *Shape, d *Device) int64 {
	if s.Takes(d) {
		return 1
	}
	return 0
}

// layerMemory returns how much memory of the device layers can have now.
func layerMemory(s *Shape, d *Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	return int64(d.InStep())
}
