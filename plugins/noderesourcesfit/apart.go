package noderesourcesfit

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// apart is what fit would say of the node with nobody on it, for shares that must
// come to a sum: models ask for them in a thousand sizes, and a copy of every
// node for each would cost more than all else. It reports false where it does
// not know.
func apart(s *cluster.Shape, n *cluster.Node) (*engine.Rejection, bool) {
	need := &s.Need
	if need.SumAtLeast == 0 || need.Layers != nil || need.WholeNode || n.Unified || n.TimeSliced() {
		return nil, false
	}
	for i := range s.Resources {
		if want := &s.Resources[i]; want.Value > 0 && n.Capacity(want.Name) < want.Value {
			return nil, false
		}
	}
	want := max(1, need.Devices)
	var best tally
	most := int64(-1)
	for i := range n.Devices {
		product := n.Devices[i].Product
		if i > 0 && (!need.SameProduct || product == n.Devices[i-1].Product) {
			continue
		}
		if !need.SameProduct {
			product = ""
		}
		t := surveyOf(s, n, product)
		sum := t.most(s, n, want, idleClaim)
		if t.big >= want && sum >= int64(need.SumAtLeast) {
			return nil, true
		}
		t.takers = 0 // held or not
		if most < 0 || best.less(t, want) || !t.less(best, want) && sum > most {
			best, most = t, sum
		}
	}
	if best.kind < want || best.big < want {
		return tooFew(s, n, best, want, &forGood), true
	}
	return amount(GPUMemoryTooSmall, never, inSum(want), int64(need.SumAtLeast), most, engine.Bytes), true
}

// idleClaim is the memory that the shape would get of the device if nobody held any of it.
func idleClaim(s *cluster.Shape, d *cluster.Device) int64 {
	idle := *d
	idle.Use, idle.Foreign = cluster.DeviceUse{}, 0
	return claim(s, &idle)
}
