package backend

import "github.com/berth-project/berth/cluster"

// outsideStatic is the share of a device that is claimed in addition to a static share.
const outsideStatic cluster.Milli = 120

// Claim is what a backend claims of each device: a share of its memory, or bytes.
type Claim struct {
	Share  cluster.Milli // of each device; 0: bytes are claimed
	Enough cluster.Bytes // how many bytes a device must give at least, for the share to be large enough

	// Static is how many bytes a static share must hold, and Fraction the size of that
	// share; both are 0 if the backend has no static share. See Backend.Static.
	Static   cluster.Bytes
	Fraction cluster.Milli
}

// Claim returns what the backend claims of each device. each is how many bytes a device
// must give, and dynamic how many of them are neither weights nor cache. A share of 0
// stands for the backend's default.
//
// vLLM and MindIE put everything into their share. SGLang's share is for weights and
// cache only; activations, graphs and overhead are outside it.
func (b *Backend) Claim(share cluster.Milli, tensor int, each, dynamic cluster.Bytes) Claim {
	if share == 0 {
		share = b.Fraction(tensor)
	}
	if share == 0 || !b.Static {
		return Claim{Share: share, Enough: each}
	}
	whole, static := min(cluster.Whole, share+outsideStatic), each-dynamic
	enough := cluster.Bytes(cluster.MulDiv(int64(static), int64(whole), int64(share)))
	if left := whole - share; dynamic > 0 && left > 0 {
		enough = max(enough, cluster.Bytes(cluster.MulDiv(int64(dynamic), int64(whole), int64(left))))
	}
	return Claim{Share: whole, Enough: enough + 2, Static: static, Fraction: share} // 2 bytes because MulDiv rounds down twice
}

// BytesOf returns how many bytes an idle device gives the claim. That is the share of its
// memory, and 0 if the memory that is not reserved is less than the share. If bytes are
// claimed, or the whole device, it is all memory that is not reserved.
func (c Claim) BytesOf(memory, reserved cluster.Bytes) cluster.Bytes {
	room := max(0, memory-reserved)
	if c.Share == 0 || c.Share >= cluster.Whole {
		return room
	}
	part := cluster.Bytes(cluster.MulDiv(int64(memory), int64(c.Share), int64(cluster.Whole)))
	if part > room {
		return 0
	}
	return part
}

// StaticBytes returns how many of the claimed bytes belong to the static share; all of
// them if there is no static share.
func (c Claim) StaticBytes(claimed cluster.Bytes) cluster.Bytes {
	if c.Fraction == 0 {
		return claimed
	}
	return cluster.Bytes(cluster.MulDiv(int64(claimed), int64(c.Fraction), int64(c.Share)))
}
