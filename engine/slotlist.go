package engine

import (
	"slices"
	"sort"
)

// slotList is slots of nodes in the order of their ranks. Adding and removing one takes about the
// same time for long lists as for short ones, because a long list is divided into parts.
type slotList struct {
	head []int32   // empty only if the list is
	tail [][]int32 // none is empty
	n    int
}

// mostInPart limits the length of a part.
const mostInPart = 512

func (l *slotList) len() int { return l.n }

// first returns the slot with the lowest rank. The list must not be empty.
func (l *slotList) first() int { return int(l.head[0]) }

// part returns a part, from 0 on.
func (l *slotList) part(i int) []int32 {
	if i == 0 {
		return l.head
	}
	return l.tail[i-1]
}

func (l *slotList) setPart(i int, part []int32) {
	if i == 0 {
		l.head = part
	} else {
		l.tail[i-1] = part
	}
}

// find returns where a slot with the rank is or belongs: the part, and the place in it.
func (l *slotList) find(rank int64, ranks []int64) (part, at int) {
	part = sort.Search(len(l.tail), func(i int) bool { return ranks[l.tail[i][0]] > rank })
	list := l.part(part)
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; ranks[list[mid]] < rank {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return part, low
}

// insert adds a slot that is not in the list.
func (l *slotList) insert(slot int32, ranks []int64) {
	part, at := l.find(ranks[slot], ranks)
	list := slices.Insert(l.part(part), at, slot)
	l.n++
	if len(list) > mostInPart {
		l.tail = slices.Insert(l.tail, part, slices.Clone(list[mostInPart/2:]))
		list = list[:mostInPart/2]
	}
	l.setPart(part, list)
}

// remove removes a slot that is in the list.
func (l *slotList) remove(slot int32, ranks []int64) {
	l.removeAt(l.find(ranks[slot], ranks))
}

// retain removes the slots for which keep returns false. It reads no ranks.
func (l *slotList) retain(keep func(slot int32) bool) {
	drop := func(slot int32) bool { return !keep(slot) }
	l.head = slices.DeleteFunc(l.head, drop)
	for i := range l.tail {
		l.tail[i] = slices.DeleteFunc(l.tail[i], drop)
	}
	l.tail = slices.DeleteFunc(l.tail, func(part []int32) bool { return len(part) == 0 })
	if len(l.head) == 0 && len(l.tail) > 0 {
		l.head = l.tail[0]
		l.tail = slices.Delete(l.tail, 0, 1)
	}
	l.n = len(l.head)
	for _, part := range l.tail {
		l.n += len(part)
	}
}

func (l *slotList) removeAt(part, at int) {
	list := l.part(part)
	l.n--
	if at == 0 && len(list) > 16 { // the best node is often the first
		list = list[1:]
	} else {
		list = slices.Delete(list, at, at+1)
	}
	switch {
	case len(list) > 0:
		l.setPart(part, list)
	case part > 0:
		l.tail = slices.Delete(l.tail, part-1, part)
	case len(l.tail) > 0:
		l.head = l.tail[0]
		l.tail = slices.Delete(l.tail, 0, 1)
	default:
		l.head = list
	}
}

// position is a place in a list.
type position struct{ part, at int32 }

// slot returns the slot at the position.
func (l *slotList) slot(p position) int { return int(l.part(int(p.part))[p.at]) }

// next returns the position after p, and false if there is none.
func (l *slotList) next(p position) (position, bool) {
	if p.at++; int(p.at) < len(l.part(int(p.part))) {
		return p, true
	}
	return position{p.part + 1, 0}, int(p.part) < len(l.tail)
}
