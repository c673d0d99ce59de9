package cluster

// whole is the part of those that take devices whole.
type whole struct{}

func (whole) asked(*Shape) bool   { return true }
func (whole) counted() bool       { return true }
func (whole) empties() bool       { return true }
func (whole) sure() bool          { return true }
func (whole) matters(*Shape) bool { return false }

func (whole) suits(_ *Shape, d *Device) bool { return d.Reserved <= d.Memory }
func (whole) takes(_ *Shape, d *Device) bool { return d.empty() && d.Reserved <= d.Memory }

func (whole) claim(_ *Shape, _ *Device, room Bytes) (Milli, Bytes) { return Whole, room }

func (whole) spare(*Shape) Milli                      { return 0 }
func (whole) times(*Shape, Milli, Bytes) int64        { return 1 }
func (whole) fill(*Shape, *Device) (part, free int64) { return 1, 1 }
func (whole) price(*Shape, *Device) Milli             { return Whole }
func (whole) cheapest(*Shape) (Milli, bool)           { return Whole, true }
func (whole) tooSmall(survey, int) Shortage           { return Shortage{Lack: LackBytes} }
func (whole) inUse(v survey, want int) Shortage       { return short(LackDevices, want, v.takers) }
func (whole) memory(_ *Shape, d *Device) (_, _ Bytes) { return 0, d.Room() }

// alone is the part of those whose isolation keeps others off their devices. They
// take them whole, and ask only for devices that have what they request of each.
type alone struct{ whole }

func (alone) asked(s *Shape) bool { return s.Isolation.Exclusive() }

// requested is the part that the shape would take if it tolerated others.
// Alone itself is the first.
func (alone) requested(s *Shape) part { return firstPart(s, partKinds[1:]) }

func (a alone) matters(s *Shape) bool { return a.requested(s).matters(s) }

func (a alone) suits(s *Shape, d *Device) bool { return a.requested(s).suits(s, d) }

func (a alone) takes(s *Shape, d *Device) bool {
	return d.empty() && s.Need.Memory <= d.Room() && a.suits(s, d)
}

func (a alone) tooSmall(v survey, want int) Shortage { return a.requested(v.s).tooSmall(v, want) }
