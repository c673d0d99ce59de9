package engine

import "slices"

// statics keeps what the static hooks of a shape answered for each node. It has a byte for each
// node, and a number for each only if the points of static scores are of many different values.
type statics struct {
	answers []staticAnswer // by slot
	values  []int64        // the points of the answers from scored on
	points  []int64        // by slot, of answers that are scoredOtherwise; nil if there are none
}

// staticAnswer is what the static hooks answered for a node. From scored on, the static filters
// accept the node, and each answer stands for one value of the points of static scores.
type staticAnswer uint8

const (
	// unscored is a node without computed static scores, because it was not feasible since its spec
	// was last judged, or a slot without a node.
	unscored staticAnswer = iota
	staticallyRejected
	scoredOtherwise // with points that are not one of values
	scored
)

// maxStaticValues bounds how many values are compared with the points of a node.
const maxStaticValues = 16

// static is the answer of the static hooks for one node. The points have no meaning unless the
// node is scored.
type static struct {
	answer staticAnswer
	points int64
}

// reset forgets all answers, and makes room for n slots.
func (s *statics) reset(n int) {
	s.answers = slices.Grow(s.answers[:0], n)[:n]
	clear(s.answers)
	s.values, s.points = s.values[:0], nil
}

// grow adds slots without a node until there are n.
func (s *statics) grow(n int) {
	for len(s.answers) < n {
		s.answers = append(s.answers, unscored)
		if s.points != nil {
			s.points = append(s.points, 0)
		}
	}
}

// at returns the answer for the slot.
func (s *statics) at(slot int) static {
	switch a := s.answers[slot]; {
	case a >= scored:
		return static{a, s.values[a-scored]}
	case a == scoredOtherwise:
		return static{a, s.points[slot]}
	default:
		return static{a, 0}
	}
}

// set copies the answer for another slot.
func (s *statics) set(slot int, to static) {
	if s.answers[slot] = to.answer; to.answer == scoredOtherwise {
		s.points[slot] = to.points
	}
}

// score notes the points of static scores.
func (s *statics) score(slot int, points int64) {
	at := slices.Index(s.values, points)
	if at < 0 && len(s.values) < maxStaticValues {
		at, s.values = len(s.values), append(s.values, points)
	}
	if at >= 0 {
		s.answers[slot] = scored + staticAnswer(at)
		return
	}
	if s.points == nil {
		s.points = make([]int64, len(s.answers))
	}
	s.answers[slot], s.points[slot] = scoredOtherwise, points
}
