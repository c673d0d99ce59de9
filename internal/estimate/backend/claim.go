package backend

import "github.com/berth-project/berth/cluster"

// besideStatic is the part of a device that is kept beside a static fraction.
const besideStatic cluster.Milli = 120

// Claim is how a backend takes its part of each device.
type Claim struct {
	Share  cluster.Milli // of each device; 0: memory is claimed as such
	Enough cluster.Bytes // that the claim on each device must come to

	// Of a static share: what must go into it, and how large it is.
	Static   cluster.Bytes
	Fraction cluster.Milli
}

// Claim turns what each device must give into what is claimed of it. Dynamic is
// the part that is neither weights nor cache; a share of 0 is the backend's own.
//
// vLLM and MindIE take their share and put everything into it. SGLang's share is
// for weights and cache alone; graphs and activations come on top.
func (b *Backend) Claim(share cluster.Milli, tensor int, each, dynamic cluster.Bytes) Claim {
	if share == 0 {
		share = b.Fraction(tensor)
	}
	if share == 0 || !b.Static {
		return Claim{Share: share, Enough: each}
	}
	whole, static := min(cluster.Whole, share+besideStatic), each-dynamic
	enough := cluster.Bytes(cluster.MulDiv(int64(static), int64(whole), int64(share)))
	if left := whole - share; dynamic > 0 && left > 0 {
		enough = max(enough, cluster.Bytes(cluster.MulDiv(int64(dynamic), int64(whole), int64(left))))
	}
	return Claim{Share: whole, Enough: enough + 2, Static: static, Fraction: share} // MulDiv rounds down, twice
}

// Of is what is claimed of a device with so much memory, of which so much is
// reserved; 0 where the share is not to be had.
func (c Claim) Of(memory, reserved cluster.Bytes) cluster.Bytes {
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

// Within is what of a claim the static share is.
func (c Claim) Within(claimed cluster.Bytes) cluster.Bytes {
	if c.Fraction == 0 {
		return claimed
	}
	return cluster.Bytes(cluster.MulDiv(int64(claimed), int64(c.Fraction), int64(c.Share)))
}
