package cluster

import (
	"slices"
	"strings"
)

// rankGap is the distance between the ranks of neighbours when all are given
// anew: so many times can the distance be halved before that happens again.
const rankGap = int64(1) << 40

// rankEnd bounds ranks, so that differences can be counted.
const rankEnd = int64(1) << 61

// insertNodes adds new nodes and puts them in order once.
func (s *State) insertNodes(nodes []*Node) {
	added := slices.Clone(nodes)
	sortByName(added)
	for _, n := range nodes {
		n.normalize()
		s.seat(n)
	}
	s.sorted = merge(s.sorted, added)
	s.rerank()
	joined := map[*Group][]*Node{}
	for _, n := range added {
		if g := s.join(n); g != nil {
			joined[g] = append(joined[g], n)
		}
	}
	for g, list := range joined {
		g.Nodes = merge(g.Nodes, list)
	}
	for _, n := range nodes {
		s.arise(n)
		if s.journal.recording() {
			s.journal.cold(func() { s.deleteNode(n) })
		}
	}
}

// merge makes one list of two that are each in the order of names.
func merge(a, b []*Node) []*Node {
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

// insert puts the node into the order by name.
func (s *State) insert(n *Node) {
	i, _ := slices.BinarySearchFunc(s.sorted, n.Name, byName)
	s.sorted = slices.Insert(s.sorted, i, n)
	rank, ok := s.between(i)
	if !ok {
		s.rerank()
		return
	}
	s.ranks[n.slot] = rank
}

// between finds a rank for the node at place i, between those of its neighbours;
// false where there is none left.
func (s *State) between(i int) (int64, bool) {
	var low, high int64
	if i > 0 {
		low = s.ranks[s.sorted[i-1].slot]
	}
	if i+1 < len(s.sorted) {
		high = s.ranks[s.sorted[i+1].slot]
	}
	switch {
	case len(s.sorted) == 1:
		return 0, true
	case i == 0:
		return high - rankGap, high > -rankEnd
	case i+1 == len(s.sorted):
		return low + rankGap, low < rankEnd
	}
	return low + (high-low)/2, high-low > 1
}

// rerank gives all nodes their rank anew, far apart.
func (s *State) rerank() {
	for i, n := range s.sorted {
		s.ranks[n.slot] = int64(i) * rankGap
	}
}

func sortByName(nodes []*Node) {
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}
