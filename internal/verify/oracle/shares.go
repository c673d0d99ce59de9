package oracle

import (
	"cmp"
	"math/bits"
	"slices"
)

// shares compares what queues hold with their fair shares, for rule 5.
type shares struct {
	queues  []*queue
	divided [resources]bool
	total   vector // of all nodes
}

func newShares(o *objects) *shares {
	return &shares{queues: o.queues, divided: o.divided, total: o.total}
}

// ratio is what a queue holds of one resource, divided by its fair share.
type ratio struct{ held, share, total int64 }

// compare orders ratios. The ratio of a queue that holds a resource of which it has no share
// is higher than the ratios of all queues with a share.
func (a ratio) compare(o ratio) int {
	hasNoShare := func(r ratio) bool { return r.held > 0 && r.share <= 0 }
	switch {
	case hasNoShare(a) && hasNoShare(o):
		return compareProducts(a.held, o.total, o.held, a.total)
	case hasNoShare(a):
		return 1
	case hasNoShare(o):
		return -1
	}
	return compareProducts(a.held, max(1, o.share), o.held, max(1, a.share))
}

// compareProducts compares a times b with c times d.
func compareProducts(a, b, c, d int64) int {
	x, y := bits.Mul64(uint64(a), uint64(b))
	z, w := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(x, z), cmp.Compare(y, w))
}

// ratioOf returns the ratio of a queue that holds used, in the resource in which it is
// highest.
func (s *shares) ratioOf(q *queue, used vector) ratio {
	top := ratio{total: 1}
	for r := range used {
		if one := (ratio{used[r], q.share[r], s.total[r]}); s.divided[r] && used[r] > 0 && one.compare(top) > 0 {
			top = one
		}
	}
	return top
}

// heldWithin returns what the leaf queues hold within their shares, in millionths of the
// total, summed over the resources. used is what each queue holds.
func (s *shares) heldWithin(used []vector) (within int64) {
	for _, q := range s.queues {
		for r := range resourceNames {
			if s.divided[r] && len(q.children) == 0 && s.total[r] > 0 {
				within += min(used[q.index][r], q.share[r]) * 1_000_000 / s.total[r]
			}
		}
	}
	return within
}

// reaches returns the ratios that the queue and its siblings would have if each of them
// alone got everything that is idle, up to its request. The highest is first.
func (s *shares) reaches(q *queue, used []vector) (out []ratio) {
	idle := s.total
	for _, o := range s.queues {
		if o.parent == nil {
			idle = idle.plus(used[o.index], -1)
		}
	}
	for _, o := range s.queues {
		if o.parent != q.parent {
			continue
		}
		held := used[o.index]
		for r := range held {
			held[r] = min(held[r]+max(0, idle[r]), max(held[r], o.request[r]))
		}
		out = append(out, s.ratioOf(o, held))
	}
	slices.SortFunc(out, func(a, b ratio) int { return b.compare(a) })
	return out
}
