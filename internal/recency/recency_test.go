package recency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSince compares what readers of several versions see with the whole history of changes.
func TestSince(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		var l List
		var history []int // the slot of each version
		for range 200 {
			if n := len(l.Versions); n == 0 || random.IntN(8) == 0 {
				l.Grow()
				l.Touch(n)
				history = append(history, n)
				continue
			}
			slot := random.IntN(len(l.Versions))
			l.Touch(slot)
			history = append(history, slot)
			if random.IntN(10) == 0 {
				l = l.Clone()
			}
			since := random.IntN(len(history) + 1)
			var want, got []int
			for i := len(history) - 1; i >= since; i-- {
				if !slices.Contains(want, history[i]) {
					want = append(want, history[i])
				}
			}
			l.Since(uint64(since), func(slot int) { got = append(got, slot) })
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: since %d: have %v, want %v", seed, since, got, want)
			}
		}
	}
}
