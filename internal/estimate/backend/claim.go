package backend

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// outsideStatic is the share of a device that is claimed in addition to a static share.
const outsideStatic cluster.Milli = 120

// Claim is what a backend claims of each device: a share of its memory, or bytes.
type Claim struct {
	Share  cluster.Milli // of each device; 0: bytes are claimed
	Enough cluster.Bytes // how many bytes a device must give at least, for the share to be large enough

	Unusable cluster.Bytes // how many of these bytes no program can allocate

	// Static is how many bytes a static share must hold, and Fraction the size of that
	// share; both are 0 if the backend has no static share. See Backend.Static.
	Static   cluster.Bytes
	Fraction cluster.Milli
}

// Claim returns what the backend claims of each device. each is how many bytes a device
// must give, and dynamic how many of them are neither weights nor cache. A share of 0
// stands for the backend's default. A share is one of all memory of a device, and some of
// it is not usable; therefore a share must be larger by its part of that memory. Bytes are
// larger in proportion: if tasks claim all memory of a device, they can allocate all that is
// usable.
//
// vLLM and MindIE put everything into their share. SGLang's share is for weights and
// cache only; activations, graphs and overhead are outside it. Its default leaves the rest
// of the device to them.
func (b *Backend) Claim(share cluster.Milli, m *estimate.Model, s estimate.Serving, d Accelerator, each, dynamic cluster.Bytes) Claim {
	whole := min(cluster.Whole, share+outsideStatic)
	if share == 0 {
		share, whole = b.Fraction(m, s, d), cluster.Whole
	}
	lost := d.unusable(share)
	switch {
	case share == 0:
		lost = d.UnusableBeside(each)
		return Claim{Enough: each + lost, Unusable: lost}
	case !b.Static:
		return Claim{Share: share, Enough: each + lost, Unusable: lost}
	}
	static := each - dynamic + lost
	enough := cluster.Bytes(cluster.MulDiv(int64(static), int64(whole), int64(share)))
	if left := whole - share; dynamic > 0 && left > 0 {
		dynamic += d.unusable(left)
		enough = max(enough, cluster.Bytes(cluster.MulDiv(int64(dynamic), int64(whole), int64(left))))
	}
	return Claim{Share: whole, Enough: enough + 2, Unusable: d.unusable(whole), Static: static, Fraction: share} // 2 bytes because MulDiv rounds down twice
}

// unusable returns which part of a share of the device is not usable.
func (d Accelerator) unusable(share cluster.Milli) cluster.Bytes {
	return cluster.Bytes(cluster.MulDivUp(int64(d.Unusable), int64(share), int64(cluster.Whole)))
}

// UnusableBeside returns how many bytes of the device are claimed in addition to bytes that are
// allocated, because they are not usable. It is more than the device has if so many bytes cannot
// be allocated.
func (d Accelerator) UnusableBeside(bytes cluster.Bytes) cluster.Bytes {
	usable := d.Memory - d.Unusable
	if usable <= 0 {
		return d.Unusable
	}
	return cluster.Bytes(cluster.MulDivUp(int64(bytes), int64(d.Unusable), int64(usable)))
}

// BytesOf returns how many bytes an idle device gives the claim: the share of its memory
// or, if less, all memory that is not reserved. If bytes are claimed, it is all memory that
// is not reserved.
func (c Claim) BytesOf(memory, reserved cluster.Bytes) cluster.Bytes {
	room := max(0, memory-reserved)
	if c.Share == 0 {
		return room
	}
	return min(room, cluster.Bytes(cluster.MulDiv(int64(memory), int64(c.Share), int64(cluster.Whole))))
}

// StaticBytes returns how many of the claimed bytes belong to the static share; all of
// them if there is no static share.
func (c Claim) StaticBytes(claimed cluster.Bytes) cluster.Bytes {
	if c.Fraction == 0 {
		return claimed
	}
	return cluster.Bytes(cluster.MulDiv(int64(claimed), int64(c.Fraction), int64(c.Share)))
}
