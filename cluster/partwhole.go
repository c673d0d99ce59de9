package cluster

// wholePart is the devicePart of shapes that request whole devices.
type wholePart struct{}

func (wholePart) applies(*Shape) bool       { return true }
func (wholePart) holdsWhole() bool          { return true }
func (wholePart) needsEmpty() bool          { return true }
func (wholePart) idleSuffices() bool        { return true }
func (wholePart) choiceMatters(*Shape) bool { return false }

func (wholePart) suits(_ *Shape, d *Device) bool { return d.Reserved <= d.Memory }
func (wholePart) takes(_ *Shape, d *Device) bool {
	return d.canBeTakenWhole() && d.Reserved <= d.Memory
}

func (wholePart) claim(_ *Shape, _ *Device, room Bytes) (Milli, Bytes) { return Whole, room }

func (wholePart) mostHeldByOthers(*Shape) Milli                   { return 0 }
func (wholePart) partsWithin(*Shape, Milli, Bytes) int64          { return 1 }
func (wholePart) freeFraction(*Shape, *Device) (part, free int64) { return 1, 1 }
func (wholePart) price(*Shape, *Device) Milli                     { return Whole }
func (wholePart) cheapest(*Shape) (Milli, bool)                   { return Whole, true }
func (wholePart) tooSmall(survey, int) Shortage                   { return Shortage{Lack: LackBytes} }
func (wholePart) inUse(v survey, want int) Shortage {
	return countShortage(LackDevices, want, v.takers)
}
func (wholePart) memory(_ *Shape, d *Device) (_, _ Bytes) { return 0, d.Room() }

// exclusivePart is the devicePart of shapes with an isolation that allows no other task
// on their devices. A task holds its devices whole. A request for a share or for memory
// only decides which devices are large enough.
type exclusivePart struct{ wholePart }

func (exclusivePart) applies(s *Shape) bool { return s.Isolation.Exclusive() }

// withoutIsolation returns the devicePart that the shape would have if its isolation
// allowed other tasks. exclusivePart itself is the first of deviceParts.
func (exclusivePart) withoutIsolation(s *Shape) devicePart { return firstPart(s, deviceParts[1:]) }

func (a exclusivePart) choiceMatters(s *Shape) bool { return a.withoutIsolation(s).choiceMatters(s) }

func (a exclusivePart) suits(s *Shape, d *Device) bool { return a.withoutIsolation(s).suits(s, d) }

func (a exclusivePart) takes(s *Shape, d *Device) bool {
	return d.canBeTakenWhole() && s.Need.Memory <= d.Room() && a.suits(s, d)
}

func (a exclusivePart) tooSmall(v survey, want int) Shortage {
	return a.withoutIsolation(v.s).tooSmall(v, want)
}
