package engine

import (
	"math/rand/v2"
	"testing"
)

// TestStaticsKeepPoints compares statics with a list of all points, for few and for many values.
func TestStaticsKeepPoints(t *testing.T) {
	for _, values := range []int64{1, 3, maxStaticValues, maxStaticValues + 1, 1000} {
		random := rand.New(rand.NewPCG(1, uint64(values)))
		var s statics
		for round := range 3 {
			n := 100 * (round + 1)
			s.reset(n)
			s.grow(n + 50)
			want := map[int]int64{}
			for range 1000 {
				slot := random.IntN(n + 50)
				if from, known := want[slot]; known && random.IntN(2) == 0 {
					slot = random.IntN(n + 50)
					s.set(slot, s.at(slotWith(want, from)))
					want[slot] = from
					continue
				}
				want[slot] = random.Int64N(values) - 5
				s.score(slot, want[slot])
			}
			for slot, points := range want {
				if a := s.at(slot); a.answer < scoredOtherwise || a.points != points {
					t.Fatalf("%d values, slot %d: have %v, want %d points", values, slot, a, points)
				}
			}
			if few := values <= maxStaticValues; few != (s.points == nil) {
				t.Errorf("%d values: a number for each node: %v", values, s.points != nil)
			}
		}
	}
}

// slotWith returns a slot with the points.
func slotWith(points map[int]int64, value int64) int {
	for slot, p := range points {
		if p == value {
			return slot
		}
	}
	return -1
}
