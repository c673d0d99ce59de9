package noderesourcesfit

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// tone is how a node is turned down: for good, which is said of it with nobody on
// it, or for now.
type tone struct {
	cure                            engine.Cure
	resource, devices, share, bytes engine.Reason
}

var (
	forGood = tone{never, ResourceTooSmall, TooFewDevices, GPUMemoryTooSmall, GPUMemoryTooSmall}
	forNow  = tone{held, InsufficientResource, InsufficientDevices, InsufficientDeviceShare, GPUMemoryInUse}
)

// why says what the node is short of: resources first, then devices.
func why(s *cluster.Shape, n *cluster.Node, as *tone) *engine.Rejection {
	for _, want := range s.Resources {
		free := int64(0)
		if l := n.Ledger(want.Name); l != nil {
			free = l.Free()
		}
		if free < want.Value {
			return resource(as, want.Name, want.Value, free)
		}
	}
	if n.Unified {
		split := *n
		split.Unified = false
		claims, ok := split.Choose(s, nil)
		if ok { // the devices would do; it is the pot that they share with the node
			return memoryOf(as, n, s.Resources.Of(cluster.Memory)+inPot(s, claims))
		}
		n = &split
	}
	switch need := &s.Need; {
	case need.WholeNode:
		return wholeNode(s, n, as)
	case need.Layers != nil:
		return layered(s, n, as)
	}
	return devices(s, n, as)
}

// inPot is what claims take of a pot that devices share with the node.
func inPot(s *cluster.Shape, claims []cluster.Claim) int64 {
	var sum cluster.Bytes
	left := 0
	if s.Need.Layers != nil {
		left = s.Need.Layers.Total
	}
	for i := range claims {
		sum += claims[i].Memory
		left -= claims[i].Layers
	}
	if left > 0 {
		sum += cluster.Bytes(left) * s.Need.Layers.Bytes
	}
	return int64(sum)
}

// devices is for those who ask for a number of them.
func devices(s *cluster.Shape, n *cluster.Node, as *tone) *engine.Rejection {
	t := survey(s, n)
	want := max(1, s.Need.Devices)
	if r := tooFew(s, n, t, want, as); r != nil {
		return r
	}
	return together(s, n, t, want, as)
}

// together says what devices are short of that would each take their part: memory
// that replicas share, or the sum of what they give.
func together(s *cluster.Shape, n *cluster.Node, t tally, want int, as *tone) *engine.Rejection {
	most := t.most(s, n, want, claim)
	if !n.SharesMemory(s) || most < int64(s.Need.SumAtLeast) {
		return amount(as.bytes, as.cure, inSum(want), int64(s.Need.SumAtLeast), most, engine.Bytes)
	}
	if have := t.shared(s, n); have < most {
		return amount(as.bytes, as.cure, inSum(want), most, have, engine.Bytes)
	}
	// There is as much, in pieces too small for so many: say how many have their part.
	fewer := *s
	fewer.Need.WholeNode, fewer.Need.SumAtLeast, fewer.Need.Devices = false, 0, want-1
	for fewer.Need.Devices > 0 && !n.Feasible(&fewer) {
		fewer.Need.Devices--
	}
	return count(as.devices, as.cure, want, fewer.Need.Devices)
}

// tooFew says why fewer devices take the shape than it wants; nil where that is not so.
func tooFew(s *cluster.Shape, n *cluster.Node, t tally, want int, as *tone) *engine.Rejection {
	need := &s.Need
	switch {
	case t.kind < want:
		return count(TooFewDevices, never, want, t.kind)
	case t.big < want && need.Memory == 0:
		asks, has := t.nearest(s, n)
		return amount(as.bytes, as.cure, "", asks, has, engine.Bytes)
	case t.big < want:
		return amount(as.bytes, as.cure, "", int64(need.Memory), t.least(s, n, want, roomOf), engine.Bytes)
	case t.takers >= want:
		return nil
	case s.Isolation.Exclusive() || (need.Share == 0 && need.Memory == 0):
		return count(as.devices, as.cure, want, t.takers)
	case need.Share > 0:
		return amount(as.share, as.cure, "", int64(need.Share), t.least(s, n, want, freeShare), engine.Devices)
	}
	return amount(as.bytes, as.cure, "", int64(need.Memory), t.least(s, n, want, freeMemory), engine.Bytes)
}

func wholeNode(s *cluster.Shape, n *cluster.Node, as *tone) *engine.Rejection {
	t := survey(s, n)
	working := 0
	for i := range n.Devices {
		if !n.Devices[i].Lost {
			working++
		}
	}
	all := max(1, s.Need.Devices, working)
	switch {
	case t.kind == all && t.big == all && t.takers < all: // others have some of it
		return count(NodeInUse, as.cure, all, t.takers)
	case t.kind < all || t.big < all: // too few, too small, or of another kind
		return tooFew(s, n, t, all, as)
	}
	return together(s, n, t, all, as)
}

// layered is for work that splits over as many devices as it takes.
func layered(s *cluster.Shape, n *cluster.Node, as *tone) *engine.Rejection {
	need, l := &s.Need, s.Need.Layers
	t := survey(s, n)
	want := max(1, need.Devices)
	if t.kind < want {
		return count(TooFewDevices, never, want, t.kind)
	}
	if n.TimeSliced() {
		if cards := len(t.cards(s, n, layers)); cards < want {
			return count(TooFewDevices, never, want, cards)
		}
	}
	// What one device must give before anything else counts.
	if each := int64(l.Fixed + l.Bytes); t.least(s, n, want, layers) == 0 {
		return amount(as.bytes, as.cure, "", each, min(t.least(s, n, want, layerMemory), each-1), engine.Bytes)
	}
	least, most := l.Total, need.Devices
	if l.Spill {
		least = l.Least
	}
	if most == 0 {
		most = t.kind
	}
	on := min(t.most(s, n, most, layers), int64(l.Total))
	if on >= int64(least) { // the devices take their part, but the rest has nowhere to go
		return memoryOf(as, n, s.Resources.Of(cluster.Memory)+(int64(l.Total)-on)*int64(l.Bytes))
	}
	return amount(as.bytes, as.cure, inSum(most), int64(least)*int64(l.Bytes), on*int64(l.Bytes), engine.Bytes)
}

// inSum is the subject of the memory of so many devices.
func inSum(devices int) string {
	if devices == 1 {
		return ""
	}
	return fmt.Sprintf("%d devices together", devices)
}

func memoryOf(as *tone, n *cluster.Node, want int64) *engine.Rejection {
	free := int64(0)
	if l := n.Ledger(cluster.Memory); l != nil {
		free = l.Free()
	}
	return resource(as, cluster.Memory, want, free)
}

func resource(as *tone, name string, want, have int64) *engine.Rejection {
	return &engine.Rejection{Reason: as.resource, Cure: as.cure, Subject: name,
		Want: engine.AmountOf(name, want), Have: engine.AmountOf(name, max(0, have))}
}

func count(reason engine.Reason, cure engine.Cure, want, have int) *engine.Rejection {
	return amount(reason, cure, "", int64(want), int64(have), engine.Count)
}

func amount(reason engine.Reason, cure engine.Cure, subject string, want, have int64, unit engine.Unit) *engine.Rejection {
	return &engine.Rejection{Reason: reason, Cure: cure, Subject: subject,
		Want: engine.Quantity{Value: want, Unit: unit}, Have: engine.Quantity{Value: max(0, have), Unit: unit}}
}
