package whatif

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/internal/wire"
)

// Cheapest returns the change that costs least of those that Why finds: the fewest workloads are
// removed or evicted, and of these it is the one that Why lists first. It returns nil if no change
// that was tried helps, or if the workload is not pending. It also returns how many steps that took, and
// leaves the State as it was.
func Cheapest(q Question) (cheapest *wire.Trial, steps int, err error) {
	defer undoAtEnd(q.State)()
	r, err := Why(q)
	if err != nil {
		return nil, 0, err
	}
	helps := slices.DeleteFunc(r.Trials, func(t wire.Trial) bool { return !t.Fits })
	if len(helps) == 0 {
		return nil, r.Notes.Steps, nil
	}
	slices.SortStableFunc(helps, func(a, b wire.Trial) int { return cmp.Compare(a.Loses, b.Loses) })
	return &helps[0], r.Notes.Steps, nil
}
