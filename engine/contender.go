package engine

import "github.com/berth-project/berth/cluster"

// contender is a queue that has jobs in line, or queues below it that do.
type contender struct {
	queue *cluster.Queue
	above *contender
	below siblings // in line, the first at the top of the heap
	line  line     // of a leaf
	depth int
	loose bool // in no heap
	place int  // among those below the queue above, or among the leaves; -1: not in line
	moved int  // how many of those below are compared otherwise than before
}

// siblings are a heap of contenders.
type siblings struct {
	turns *turns
	list  []*contender
}

func (h *siblings) Len() int { return len(h.list) }
func (h *siblings) Less(i, j int) bool {
	return h.turns.session.siblings(h.list[i].queue, h.list[j].queue) < 0
}
func (h *siblings) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].place, h.list[j].place = i, j
}
func (h *siblings) Push(x any) {
	c := x.(*contender)
	c.place = len(h.list)
	h.list = append(h.list, c)
}
func (h *siblings) Pop() any {
	n := len(h.list) - 1
	c := h.list[n]
	h.list[n], h.list = nil, h.list[:n]
	c.place = -1
	return c
}
