package cluster

import "slices"

// rankGap is the distance between the ranks of neighbours after rerank. It can be halved
// 40 times, by nodes that are added in between, before rerank is needed again.
const rankGap = int64(1) << 40

// rankEnd bounds the ranks in both directions, so that the difference of two ranks does
// not overflow.
const rankEnd = int64(1) << 61

// addAll adds new nodes and sorts them in one step, which is cheaper than to insert
// them one by one.
func (f *fleet) addAll(nodes []*Node) {
	added := slices.Clone(nodes)
	slices.SortFunc(added, byName)
	for _, n := range nodes {
		n.normalize()
		f.takeSlot(n)
	}
	f.sorted = mergeByName(f.sorted, added)
	f.rerank()
	joined := map[*Group][]*Node{}
	for _, n := range added {
		if g := f.joinGroup(n); g != nil {
			joined[g] = append(joined[g], n)
		}
	}
	for g, list := range joined {
		g.Nodes = mergeByName(g.Nodes, list)
	}
	for _, n := range nodes {
		f.setFirstVersion(n)
		if f.journal.recording() {
			f.journal.recordUndo(func() { f.delete(n) })
		}
	}
}

// mergeByName merges two lists that are each sorted by name.
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

// insertSorted inserts the node into the list that is sorted by name and gives it a rank.
func (f *fleet) insertSorted(n *Node) {
	i, _ := slices.BinarySearchFunc(f.sorted, n, byName)
	f.sorted = slices.Insert(f.sorted, i, n)
	rank, ok := f.rankBetween(i)
	if !ok {
		f.rerank()
		return
	}
	f.ranks[n.slot] = rank
}

// rankBetween returns a rank for the node at index i of the sorted list, between the
// ranks of its neighbours. It returns false if there is no number left between them.
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

// rerank gives all nodes new ranks, rankGap apart. Their order stays the same.
func (f *fleet) rerank() {
	f.reranks++
	for i, n := range f.sorted {
		f.ranks[n.slot] = int64(i) * rankGap
	}
}
