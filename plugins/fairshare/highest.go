package fairshare

import "github.com/berth-project/berth/internal/fairshare"

// highestRatios keeps the highest ratio among the children of each queue from session to
// session. Only queues that changed are read again, unless the queue with the highest ratio
// has a lower one now.
type highestRatios struct {
	tree     *fairshare.Tree
	byParent map[*fairshare.Queue]*highestRatio // the key is nil for the queues at the top
}

// highestRatio is the highest ratio among siblings.
type highestRatio struct {
	queue   *fairshare.Queue // a queue that has it
	ratio   ratio
	changed map[*fairshare.Queue]bool // siblings whose ratios may have changed since
}

// changed notes that the ratio of the queue may have changed.
func (h *highestRatios) changed(q *fairshare.Queue) {
	if top := h.byParent[q.Parent]; top != nil {
		top.changed[q] = true
	}
}

// of returns the highest ratio among the children of the queue, or among the queues at the
// top if it is nil.
func (h *highestRatios) of(t *fairshare.Tree, parent *fairshare.Queue) ratio {
	if h.tree != t {
		h.tree, h.byParent = t, map[*fairshare.Queue]*highestRatio{}
	}
	top := h.byParent[parent]
	if top == nil || top.changed[top.queue] && ratioWith(t, top.queue, nil).compare(top.ratio) < 0 {
		top = &highestRatio{ratio: ratio{total: 1}, changed: map[*fairshare.Queue]bool{}}
		for _, q := range childrenOf(t, parent) {
			top.include(t, q)
		}
		h.byParent[parent] = top
		return top.ratio
	}
	for q := range top.changed { // the order does not matter: only the highest ratio is used
		top.include(t, q)
	}
	clear(top.changed)
	return top.ratio
}

// include compares the queue with the highest ratio so far.
func (r *highestRatio) include(t *fairshare.Tree, q *fairshare.Queue) {
	if own := ratioWith(t, q, nil); r.queue == nil || q == r.queue || own.compare(r.ratio) > 0 {
		r.queue, r.ratio = q, own
	}
}

// childrenOf returns the children of the queue, or the queues at the top if it is nil.
func childrenOf(t *fairshare.Tree, parent *fairshare.Queue) []*fairshare.Queue {
	if parent == nil {
		return t.Roots
	}
	return parent.Children
}
