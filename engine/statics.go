package engine

import "slices"

// statics keeps what the static hooks of a shape answered for each spec, by its number. It has a byte
// for each spec, and a number for each only if the points of static scores are of many different values.
type statics struct {
	answers    []staticAnswer       // by spec
	values     []int64              // the points of the answers from scored on
	points     []int64              // by spec, of answers that are scoredOtherwise; nil if there are none
	rejections map[int]rejectedSpec // why the filters reject a spec that several nodes may have
}

// rejectedSpec is the key and the code of the nodes with a spec that static filters reject.
type rejectedSpec struct {
	key  int64
	code uint16
}

// staticAnswer is what the static hooks answered for a spec. From scored on, the static filters
// accept it, and each answer stands for one value of the points of static scores.
type staticAnswer uint8

const (
	// unjudged is a spec for which the static filters were not called.
	unjudged staticAnswer = iota
	// unscored is a spec without computed static scores, because no node that has it was feasible.
	unscored
	staticallyRejected
	scoredOtherwise // with points that are not one of values
	scored
)

// maxStaticValues bounds how many values are compared with the points of a spec.
const maxStaticValues = 16

// reset forgets all answers, and makes room for n specs.
func (s *statics) reset(n int) {
	s.answers = slices.Grow(s.answers[:0], n)[:n]
	clear(s.answers)
	s.values, s.points, s.rejections = s.values[:0], nil, nil
}

// grow adds specs that were not judged until there are n.
func (s *statics) grow(n int) {
	for len(s.answers) < n {
		s.answers = append(s.answers, unjudged)
		if s.points != nil {
			s.points = append(s.points, 0)
		}
	}
}

// scored returns the points of the static scores for the spec, and false if they were not computed.
func (s *statics) scored(spec int) (int64, bool) {
	switch a := s.answers[spec]; {
	case a >= scored:
		return s.values[a-scored], true
	case a == scoredOtherwise:
		return s.points[spec], true
	}
	return 0, false
}

// score notes the points of static scores.
func (s *statics) score(spec int, points int64) {
	at := slices.Index(s.values, points)
	if at < 0 && len(s.values) < maxStaticValues {
		at, s.values = len(s.values), append(s.values, points)
	}
	if at >= 0 {
		s.answers[spec] = scored + staticAnswer(at)
		return
	}
	if s.points == nil {
		s.points = make([]int64, len(s.answers))
	}
	s.answers[spec], s.points[spec] = scoredOtherwise, points
}

// keepRejection keeps why the static filters reject the spec.
func (s *statics) keepRejection(spec int, key int64, code uint16) {
	if s.rejections == nil {
		s.rejections = map[int]rejectedSpec{}
	}
	s.rejections[spec] = rejectedSpec{key, code}
}
