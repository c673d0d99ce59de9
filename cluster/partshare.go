package cluster

// sharePart is the devicePart of shapes that request a share of each device: the same
// share of its time and of its memory. What a task with a whole device must accept, it
// must accept too: reserved memory, and on an idle device a little foreign memory. If less
// memory is left than its share, it holds what is left. So a device that takes a larger
// share also takes a smaller one.
type sharePart struct{ partial }

func (sharePart) applies(s *Shape) bool { return s.Need.Share > 0 }

func (sharePart) suits(_ *Shape, d *Device) bool { return d.Reserved <= d.Memory }

func (sharePart) takes(s *Shape, d *Device) bool {
	return s.Need.Share <= d.FreeMilli() && d.Reserved <= d.Memory && (d.Of(s.Need.Share) <= d.Free() || d.offersAnyShare())
}

// offersAnyShare reports whether the device offers shares of any size: no task uses it or
// its memory, and its foreign memory is negligible.
func (d *Device) offersAnyShare() bool { return d.canBeTakenWhole() && d.Use.Beside == 0 }

func (sharePart) claim(s *Shape, d *Device, room Bytes) (Milli, Bytes) {
	return s.Need.Share, min(d.Of(s.Need.Share), room)
}

func (sharePart) mostHeldByOthers(s *Shape) Milli { return Whole - s.Need.Share }

func (sharePart) partsWithin(s *Shape, milli Milli, _ Bytes) int64 {
	return int64(milli / s.Need.Share)
}

func (sharePart) memory(s *Shape, d *Device) (least, most Bytes) {
	of := min(d.Of(s.Need.Share), d.Room())
	return of, of
}

func (sharePart) freeFraction(s *Shape, d *Device) (part, free int64) {
	if d.Memory <= 0 { // the memory of the device is not known
		return int64(s.Need.Share), int64(d.FreeMilli())
	}
	return int64(min(d.Of(s.Need.Share), d.Room())), int64(d.Free())
}

func (sharePart) price(s *Shape, _ *Device) Milli { return s.Need.Share }
func (sharePart) cheapest(s *Shape) (Milli, bool) { return s.Need.Share, true }

// tooSmall describes the device that misses the least. A device is too small for a share
// only if more memory is reserved for the system than it has.
func (sharePart) tooSmall(v survey, _ int) Shortage {
	out := Shortage{Lack: LackBytes}
	for i := range v.n.Devices {
		d := &v.n.Devices[i]
		if !v.includes(d) || v.s.Usable(d) {
			continue
		}
		want, have := int64(d.Of(v.s.Need.Share)), int64(d.Capacity())
		if out.Want == 0 || want-have < out.Want-out.Have {
			out.Want, out.Have = want, have
		}
	}
	return out
}

func (sharePart) inUse(v survey, want int) Shortage {
	out := Shortage{Lack: LackShare, Want: int64(v.s.Need.Share)}
	if v.n.Unfilled() > 0 { // otherwise nothing of any device is free
		out.Have = v.least(want, freeShare)
	}
	if v.s.Need.SumAtLeast > 0 && out.Have < out.Want {
		out.Devices, out.Meet, out.Of = want, v.takers, v.kind
		out.WantBytes, out.HaveBytes = v.shareBytes(out.Have)
	}
	return out
}

// shareBytes returns the requested share, and what is free of it, in bytes of the first device
// with this free share. Both are 0 if the memory of the device is not known.
func (t survey) shareBytes(free int64) (want, have Bytes) {
	for i := range t.n.Devices {
		if d := &t.n.Devices[i]; t.includes(d) && freeShare(t.s, d) == free {
			return min(d.Of(t.s.Need.Share), d.Capacity()), min(d.Of(Milli(free)), max(0, d.Free()))
		}
	}
	return 0, 0
}

// freeShare returns the share of the device, in thousandths, that is free of its time and
// of its memory: the smaller of the two.
func freeShare(s *Shape, d *Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	free := int64(max(0, d.FreeMilli()))
	if d.Memory > 0 && !d.offersAnyShare() {
		free = min(free, MulDiv(int64(max(0, d.Free())), int64(Whole), int64(d.Memory)))
	}
	return free
}

// fullSharePart is the devicePart of shapes that request a share of 100%. The device is
// held whole, but shortages are reported as a missing share, as the request is written.
type fullSharePart struct{ wholePart }

func (fullSharePart) applies(s *Shape) bool     { return s.Need.Share >= Whole && s.Need.Memory == 0 }
func (fullSharePart) needsEmpty() bool          { return false }
func (fullSharePart) choiceMatters(*Shape) bool { return true }

func (fullSharePart) freeFraction(s *Shape, d *Device) (part, free int64) {
	return sharePart{}.freeFraction(s, d)
}
func (fullSharePart) inUse(v survey, want int) Shortage { return sharePart{}.inUse(v, want) }
