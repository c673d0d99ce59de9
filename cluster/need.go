package cluster

// Need is what a task asks of the devices of one node. What depends on the
// node's own devices is said here and worked out there.
type Need struct {
	Devices     int      // how many devices on this node; 0 with WholeNode or Layers means as many as it takes
	Memory      Bytes    // of each device, or
	Share       Milli    // of each device's own total; neither: whole devices
	SumAtLeast  Bytes    // all claims together must give this
	SameProduct bool     // no mix of products
	Products    []string // allowed products, sorted; empty: any
	Partition   string   // MIG profile
	Resource    string   // the name devices are asked for under; "": any
	WholeNode   bool     // every device of the node, all of them idle
	Layers      *Layers  // divisible work
}

// Layers describes work that splits over devices layer by layer.
type Layers struct {
	Total int   // how many there are
	Bytes Bytes // of each
	Fixed Bytes // on every device used, beside its layers
	Least int   // that must be on devices; the rest may spill to RAM
	Spill bool  // whether the rest may spill at all
}

// None reports whether the need asks for no device at all.
func (n *Need) None() bool { return n.Devices == 0 && !n.WholeNode && n.Layers == nil }

// whole reports whether each device is taken whole.
func (n *Need) whole() bool {
	return n.WholeNode || (n.Memory == 0 && n.Share == 0 && n.Layers == nil)
}

// Milli is the part of a device's time a claim takes of each device, as far as
// the need alone can say: a memory claim depends on the device it lands on.
func (n *Need) Milli() Milli {
	if n.Share > 0 {
		return n.Share
	}
	return Whole
}

// fit is how many layers the device's free memory holds.
func (l *Layers) fit(d *Device) int {
	free := min(d.Free(), Bytes(MulDiv(int64(d.Memory), int64(max(0, d.FreeMilli())), int64(Whole))))
	if room := free - l.Fixed; room > 0 && l.Bytes > 0 {
		return int(min(room/l.Bytes, Bytes(l.Total)))
	}
	return 0
}

// least is how many layers must be on devices.
func (l *Layers) least() int {
	if l.Spill {
		return l.Least
	}
	return l.Total
}
