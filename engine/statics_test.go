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
				spec := random.IntN(n + 50)
				want[spec] = random.Int64N(values) - 5
				s.score(spec, want[spec])
			}
			for spec, points := range want {
				if have, known := s.scored(spec); !known || have != points {
					t.Fatalf("%d values, spec %d: have %v, want %d points", values, spec, have, points)
				}
			}
			if few := values <= maxStaticValues; few != (s.points == nil) {
				t.Errorf("%d values: a number for each spec: %v", values, s.points != nil)
			}
		}
	}
}
