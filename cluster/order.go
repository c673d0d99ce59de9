package cluster

import "slices"

// rankGap is the distance between the ranks of neighbours when all are given
// anew: so many times can the distance be halved before that happens again.
const rankGap = int64(1) << 40

// rankEnd bounds ranks, so that differences can be counted.
const rankEnd = int64(1) << 61

// addAll adds new nodes and puts them in order once.
func (f *fleet) addAll(nodes []*Node) {
	added := slices.Clone(nodes)
	slices.SortFunc(added, byName)
	for _, n := range nodes {
		n.normalize()
		f.seat(n)
	}
	f.sorted = mergeByName(f.sorted, added)
	f.rerank()
	joined := map[*Group][]*Node{}
	for _, n := range added {
		if g := f.join(n); g != nil {
			joined[g] = append(joined[g], n)
		}
	}
	for g, list := range joined {
		g.Nodes = mergeByName(g.Nodes, list)
	}
	for _, n := range nodes {
		f.arise(n)
		if f.journal.recording() {
			f.journal.cold(func() { f.delete(n) })
		}
	}
}

// merge makes one list of two that are each in the order of names.
func mergeByName(a, b []*Node) []*Node {
	out := make([]*Node, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Name < b[0].Name {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// order puts the node into the order by name.
func (f *fleet) order(n *Node) {
	i, _ := slices.BinarySearchFunc(f.sorted, n, byName)
	f.sorted = slices.Insert(f.sorted, i, n)
	rank, ok := f.rankBetween(i)
	if !ok {
		f.rerank()
		return
	}
	f.ranks[n.slot] = rank
}

// between finds a rank for the node at place i, between those of its neighbours;
// false where there is none left.
func (f *fleet) rankBetween(i int) (int64, bool) {
	var low, high int64
	if i > 0 {
		low = f.ranks[f.sorted[i-1].slot]
	}
	if i+1 < len(f.sorted) {
		high = f.ranks[f.sorted[i+1].slot]
	}
	switch {
	case len(f.sorted) == 1:
		return 0, true
	case i == 0:
		return high - rankGap, high > -rankEnd
	case i+1 == len(f.sorted):
		return low + rankGap, low < rankEnd
	}
	return low + (high-low)/2, high-low > 1
}

// rerank gives all nodes their rank anew, far apart.
func (f *fleet) rerank() {
	for i, n := range f.sorted {
		f.ranks[n.slot] = int64(i) * rankGap
	}
}
