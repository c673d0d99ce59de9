package oracle

import (
	"fmt"
	"slices"
)

// sure is up to how many tasks that might go the engine compares all plans.
const sure = 12

// diagnose puts a miss into a class: what finding the best plan would have taken.
func (g *game) diagnose(t *turn, best plan) string {
	b := g.promised
	b.steps = maxSteps
	j := b.find(t.job)
	if g.kind == Allocate {
		return "the tasks fit in few arrangements"
	}
	first := b.minima(j)[0]
	if _, found, err := b.cheapestFor(&request{g.kind, j, asked(first)}, first, ^uint64(0)); !found && err == nil {
		return "the first tasks that make the minimum have no way, others have"
	}
	if !b.anyOrder(&request{g.kind, j, asked(best.minimum)}, best.victims, 0, map[uint64]bool{}) {
		return "the victims may go in some orders only"
	}
	seats := b.evict(best.victims)
	defer b.restore(best.victims, seats)
	switch {
	case !b.greedy(j, false) && !b.greedy(j, true):
		return "the tasks fit in few arrangements"
	case g.kind == Consolidate && slices.ContainsFunc(b.members(best.victims), func(v *task) bool { return b.waits(v.job, best.victims) }):
		return "a job has to move that has tasks waiting"
	case g.kind == Consolidate && !b.landsEasily(best, false) && !b.landsEasily(best, true):
		return "those who move land in few arrangements"
	case b.candidates(j) > sure:
		return fmt.Sprintf("more than %d tasks might go", sure)
	}
	return "no reason was found"
}

// waits reports whether the job has tasks that are pending, those aside who are about to move.
func (b *board) waits(j *job, moving uint64) bool {
	return slices.ContainsFunc(j.tasks, func(t *task) bool { return moving&t.bit() == 0 && b.pending(t) })
}

// landsEasily seats the job and then those who move, the largest first, one by one.
func (b *board) landsEasily(p plan, tightest bool) bool {
	movers := b.members(p.victims)
	slices.SortStableFunc(movers, func(x, y *task) int { return int(y.asks[gpu] - x.asks[gpu]) })
	all := append(slices.Clone(p.minimum), movers...)
	placed := b.seatEach(all, tightest)
	b.riseAll(placed)
	return len(placed) == len(all)
}

// candidates counts the tasks that run and are somebody else's and preemptible,
// those included who are gone from the board for now.
func (b *board) candidates(j *job) int {
	count := 0
	for _, t := range b.tasks {
		if t.Runs() && t.job.Preemptible && t.job != j {
			count++
		}
	}
	return count
}

// anyOrder reports whether the victims may all go, whoever goes first.
func (b *board) anyOrder(r *request, victims, gone uint64, seen map[uint64]bool) bool {
	if gone == victims || seen[gone] {
		return true
	}
	seen[gone] = true
	seats := b.evict(gone)
	var next []uint64
	for _, u := range b.units(r) {
		if u.set()&^victims == 0 && b.spares(r, &u) == "" {
			next = append(next, gone|u.set())
		}
	}
	b.restore(gone, seats)
	for _, set := range next {
		if !b.anyOrder(r, victims, set, seen) {
			return false
		}
	}
	return len(next) > 0
}
