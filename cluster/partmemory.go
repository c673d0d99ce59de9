package cluster

// memoryPart is the devicePart of shapes that request an amount of memory of each device.
// A task also holds a proportional share of the device's time, so that neither memory
// nor time can be promised twice.
type memoryPart struct{ partial }

func (memoryPart) applies(s *Shape) bool { return s.Need.Memory > 0 }

func (memoryPart) suits(s *Shape, d *Device) bool { return s.Need.Memory <= d.Memory-d.Reserved }

func (memoryPart) takes(s *Shape, d *Device) bool {
	return s.Need.Memory <= d.Free() && d.Part(s.Need.Memory) <= d.FreeMilli()
}

func (memoryPart) claim(s *Shape, d *Device, _ Bytes) (Milli, Bytes) {
	return d.Part(s.Need.Memory), s.Need.Memory
}

func (memoryPart) mostHeldByOthers(*Shape) Milli { return Whole - 1 }

func (memoryPart) partsWithin(s *Shape, _ Milli, memory Bytes) int64 {
	return int64(memory / s.Need.Memory)
}

func (memoryPart) memory(s *Shape, _ *Device) (least, most Bytes) {
	return s.Need.Memory, s.Need.Memory
}

func (memoryPart) freeFraction(s *Shape, d *Device) (part, free int64) {
	return int64(s.Need.Memory), int64(d.Free())
}

func (memoryPart) price(s *Shape, d *Device) Milli { return d.Part(s.Need.Memory) }
func (memoryPart) cheapest(*Shape) (Milli, bool)   { return 1, false }

func (memoryPart) tooSmall(v survey, want int) Shortage {
	return Shortage{Lack: LackBytes, Want: int64(v.s.Need.Memory), Have: v.least(want, capacityOf)}
}

func (memoryPart) inUse(v survey, want int) Shortage {
	return Shortage{Lack: LackBytes, Want: int64(v.s.Need.Memory), Have: v.least(want, freeMemory)}
}

func capacityOf(_ *Shape, d *Device) int64 { return int64(d.Capacity()) }

func freeMemory(s *Shape, d *Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	return int64(d.Free())
}
