package noderesourcesfit

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// tally counts a node's devices for a shape: all that are of the kind, those of
// them that are big enough, and those of these that can take the claim now.
// Where products may not mix it is of the product that comes nearest.
type tally struct {
	product           string // "" is any
	kind, big, takers int
}

func survey(s *cluster.Shape, n *cluster.Node) tally {
	if !s.Need.SameProduct || s.Need.WholeNode {
		return surveyOf(s, n, "")
	}
	var best tally
	want := max(1, s.Need.Devices)
	for i := range n.Devices {
		if i > 0 && n.Devices[i].Product == n.Devices[i-1].Product {
			continue
		}
		t := surveyOf(s, n, n.Devices[i].Product)
		if i == 0 || best.less(t, want) || !t.less(best, want) && t.gives(s, n) > best.gives(s, n) {
			best = t
		}
	}
	return best
}

// gives is what the devices of the product hold together of what must come to a sum.
func (t *tally) gives(s *cluster.Shape, n *cluster.Node) int64 {
	need := &s.Need
	switch {
	case need.Layers != nil && need.Devices == 0:
		return t.most(s, n, t.kind, layers)
	case need.Layers != nil:
		return t.most(s, n, need.Devices, layers)
	case need.SumAtLeast > 0:
		return t.most(s, n, max(1, need.Devices), claim)
	}
	return 0
}

// less compares by what the products could ever give of the wanted devices, then by what they give now.
func (t tally) less(o tally, want int) bool {
	return cmp.Or(
		cmp.Compare(min(t.kind, want), min(o.kind, want)),
		cmp.Compare(min(t.big, want), min(o.big, want)),
		cmp.Compare(t.takers, o.takers),
	) < 0
}

func surveyOf(s *cluster.Shape, n *cluster.Node, product string) tally {
	t := tally{product: product}
	alike := n.Alike(s)
	kind, big := false, false
	if alike && n.Unfilled() == 0 { // one look for all
		if kind = t.counts(s, &n.Devices[0]); kind {
			t.kind = len(n.Devices)
		}
		if kind && s.Need.Usable(&n.Devices[0]) {
			t.big = len(n.Devices)
		}
		return t
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if i == 0 || !alike {
			kind = t.counts(s, d)
			big = kind && s.Need.Usable(d)
		}
		if kind {
			t.kind++
		}
		if !big {
			continue
		}
		t.big++
		// The plain cases first: what is held whole takes nothing more, and what
		// nobody holds takes everything but layers, which may be too large.
		switch {
		case d.Use.Milli >= cluster.Whole:
		case d.Use.Leases == 0 && d.Use.Beside == 0 && d.Foreign == 0 && s.Need.Layers == nil, s.Takes(d):
			t.takers++
		}
	}
	return t
}

// counts reports whether the device is of the kind, whatever its size.
func (t *tally) counts(s *cluster.Shape, d *cluster.Device) bool {
	return s.Need.Kind(d) && s.Need.Selects(d) && (t.product == "" || t.product == d.Product)
}

// least is what the last of so many devices gives when those that give most are taken.
func (t *tally) least(s *cluster.Shape, n *cluster.Node, devices int, of func(*cluster.Shape, *cluster.Device) int64) int64 {
	if devices == 1 {
		most := int64(0)
		for i := range n.Devices {
			if d := &n.Devices[i]; t.counts(s, d) {
				most = max(most, of(s, d))
			}
		}
		return most
	}
	var room [32]int64
	values := t.values(room[:0], s, n, of)
	return values[len(values)-devices]
}

// most is what so many devices give together when those that give most are taken.
// Replicas that are taken whole give the memory that they share once.
func (t *tally) most(s *cluster.Shape, n *cluster.Node, devices int, of func(*cluster.Shape, *cluster.Device) int64) int64 {
	var room [32]int64
	var values []int64
	if n.TimeSliced() && !n.SharesMemory(s) {
		values = t.cards(s, n, of)
	} else {
		values = t.values(room[:0], s, n, of)
	}
	sum := int64(0)
	for _, v := range values[max(0, len(values)-devices):] {
		sum += v
	}
	return sum
}

// values are what the devices of the kind give, smallest first. Layers are laid on
// one of the replicas that share memory.
func (t *tally) values(out []int64, s *cluster.Shape, n *cluster.Node, of func(*cluster.Shape, *cluster.Device) int64) []int64 {
	if s.Need.Layers != nil && n.TimeSliced() {
		return t.cards(s, n, of)
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; t.counts(s, d) {
			out = append(out, of(s, d))
		}
	}
	slices.Sort(out)
	return out
}

// cards are what the devices give, smallest first, replicas that share memory as one.
func (t *tally) cards(s *cluster.Shape, n *cluster.Node, of func(*cluster.Shape, *cluster.Device) int64) []int64 {
	var out []int64
	at := map[string]int{}
	for i := range n.Devices {
		d := &n.Devices[i]
		if !t.counts(s, d) {
			continue
		}
		if k, again := at[d.Shares]; again && d.Shares != "" {
			out[k] = max(out[k], of(s, d))
			continue
		}
		at[d.Shares] = len(out)
		out = append(out, of(s, d))
	}
	slices.Sort(out)
	return out
}

// shared is what the devices that take the claim have free together.
func (t *tally) shared(s *cluster.Shape, n *cluster.Node) int64 {
	sum := int64(0)
	for _, v := range t.cards(s, n, freeOfTaker) {
		sum += v
	}
	return sum
}

// freeOfTaker is what is free of a device that takes the claim.
func freeOfTaker(s *cluster.Shape, d *cluster.Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return freeMemory(s, d)
}

// nearest is what the shape takes of the device that is short of least, and what
// that gives, where all are of the kind and some keep too much for themselves.
func (t *tally) nearest(s *cluster.Shape, n *cluster.Node) (asks, has int64) {
	for i := range n.Devices {
		d := &n.Devices[i]
		if !t.counts(s, d) || s.Need.Usable(d) {
			continue
		}
		want := cluster.MulDiv(int64(d.Memory), int64(s.Need.Share), int64(cluster.Whole))
		if asks == 0 || want-roomOf(s, d) < asks-has {
			asks, has = want, roomOf(s, d)
		}
	}
	return asks, has
}

// roomOf is what anybody can ever have of the device.
func roomOf(_ *cluster.Shape, d *cluster.Device) int64 { return int64(max(0, d.Memory-d.Reserved)) }

func freeMemory(s *cluster.Shape, d *cluster.Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	return int64(d.Free())
}

// freeShare is what is free of both the device's time and its memory.
func freeShare(s *cluster.Shape, d *cluster.Device) int64 {
	if !d.Permits(s.Isolation) {
		return 0
	}
	free := int64(max(0, d.FreeMilli()))
	if d.Memory > 0 {
		free = min(free, cluster.MulDiv(int64(max(0, d.Free())), int64(cluster.Whole), int64(d.Memory)))
	}
	return free
}

// claim is the memory that the shape would get of the device.
func claim(s *cluster.Shape, d *cluster.Device) int64 {
	switch {
	case !s.Takes(d):
		return 0
	case s.Isolation.Exclusive():
		return int64(d.Room())
	case s.Need.Share > 0 && s.Need.Share < cluster.Whole:
		return cluster.MulDiv(int64(d.Memory), int64(s.Need.Share), int64(cluster.Whole))
	case s.Need.Memory > 0 && d.Memory > 0:
		return int64(s.Need.Memory)
	}
	return int64(d.Room())
}

// layers is how many layers the device has room for.
func layers(s *cluster.Shape, d *cluster.Device) int64 {
	if !s.Takes(d) {
		return 0
	}
	return int64(s.Need.Layers.Within(cluster.Bytes(layerMemory(s, d))))
}

// layerMemory is what layers can have of the device: they take of its time as
// they do of its memory.
func layerMemory(s *cluster.Shape, d *cluster.Device) int64 {
	return min(freeMemory(s, d), cluster.MulDiv(int64(d.Memory), int64(max(0, d.FreeMilli())), int64(cluster.Whole)))
}
