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

// fit is how many layers the device's free memory holds, if it need hold no more than all.
func (l *Layers) fit(d *Device) int { return min(l.room(d), l.Total) }

// room is how many layers of this size the device's free memory holds.
func (l *Layers) room(d *Device) int {
	free := min(d.Free(), Bytes(MulDiv(int64(d.Memory), int64(max(0, d.FreeMilli())), int64(Whole))))
	return l.Within(free)
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

// chooseLayers takes as few devices as hold all layers, those that hold most
// first, or as many as were asked for, and divides the layers among them in
// proportion to what they have free. What no device holds must be allowed to
// spill to the node's memory.
func (n *Node) chooseLayers(s *Shape, order []int) ([]Claim, bool) {
	need, l := &s.Need, s.Need.Layers
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.fit(&n.Devices[b]), l.fit(&n.Devices[a])) })
	if n.sliced {
		order = n.apart(order)
	}
	if need.Devices > 0 {
		if len(order) < need.Devices || l.Total < need.Devices {
			return nil, false
		}
		order = order[:need.Devices]
	}
	fits, all, pot := make([]int, 0, len(order)), 0, n.pot(s)
	for _, i := range order {
		if need.Devices == 0 && all >= l.Total {
			break
		}
		later := Bytes(max(0, need.Devices-len(fits)-1)) // devices that must have a layer each after this one
		fit := min(l.room(&n.Devices[i]), l.Within(pot-later*(l.Fixed+l.Bytes)))
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
	if spill := Bytes(l.Total-on) * l.Bytes; spill > 0 && !n.Unified { // affords looks at the pot
		m := n.Ledger(Memory)
		if m == nil || m.Free() < s.Resources.Of(Memory)+int64(spill) {
			return nil, false
		}
	}
	claims := make([]Claim, 0, len(fits))
	// Who wants to be alone holds devices whole, as far as the pot goes.
	rest := max(0, n.pot(s)-Bytes(len(fits))*l.Fixed-Bytes(l.Total)*l.Bytes)
	for i, k := range divide(on, fits, all) {
		d := &n.Devices[order[i]]
		memory := l.Fixed + Bytes(k)*l.Bytes
		milli := d.Part(memory)
		if s.Isolation.Exclusive() {
			more := min(d.Room()-memory, rest)
			milli, memory, rest = Whole, memory+more, rest-more
		}
		claims = append(claims, Claim{Device: order[i], Milli: milli, Memory: memory, Layers: k})
	}
	slices.SortFunc(claims, func(a, b Claim) int { return a.Device - b.Device })
	return claims, true
}

// divide gives each device one layer, and the rest of them in proportion to what
// each could hold beyond it. Remainders go to those that come first.
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
