package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSlotList compares random operations with a sorted list, and the walk over all positions. The
// list becomes long enough to have parts, and empty again.
func TestSlotList(t *testing.T) {
	const slots = 3000
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		ranks := make([]int64, slots)
		for i, rank := range r.Perm(slots) {
			ranks[i] = int64(rank) * 5
		}
		byRank := func(a, b int32) int { return cmp.Compare(ranks[a], ranks[b]) }
		var l slotList
		var want []int32
		for step := range 12_000 {
			slot := int32(r.IntN(slots))
			at, has := slices.BinarySearchFunc(want, slot, byRank)
			grows := step/3000%2 == 0
			switch remove := r.IntN(4); {
			case !has && (grows || remove == 0):
				l.insert(slot, ranks)
				want = slices.Insert(want, at, slot)
			case has && (!grows || remove == 0):
				l.remove(slot, ranks)
				want = slices.Delete(want, at, at+1)
			case !grows && len(want) > 0: // the first one is removed most often
				l.remove(want[0], ranks)
				want = slices.Delete(want, 0, 1)
			}
			if step%700 == 0 {
				kept := func(slot int32) bool { return slot%7 != int32(seed)%7 }
				l.retain(kept)
				want = slices.DeleteFunc(want, func(slot int32) bool { return !kept(slot) })
			}
			if l.len() != len(want) || len(want) > 0 && l.first() != int(want[0]) {
				t.Fatalf("seed %d, step %d: length %d, want %d", seed, step, l.len(), len(want))
			}
			if step%500 > 0 || len(want) == 0 {
				continue
			}
			var got []int32
			var p position
			for ok := true; ok; p, ok = l.next(p) {
				got = append(got, int32(l.slot(p)))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: the walk differs from the list", seed, step)
			}
		}
	}
}
