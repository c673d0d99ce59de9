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
				want[slot] = random.Int64N(values) - 5
				s.score(slot, want[slot])
			}
			for slot, points := range want {
				if have, known := s.scored(slot); !known || have != points {
					t.Fatalf("%d values, slot %d: have %v, want %d points", values, slot, have, points)
				}
			}
			if few := values <= maxStaticValues; few != (s.points == nil) {
				t.Errorf("%d values: a number for each node: %v", values, s.points != nil)
			}
		}
	}
}
