package oracle

import (
	"fmt"
	"slices"
)

// maxCompared is the largest number of possible victims for which the engine compares all
// plans.
const maxCompared = 12

// diagnose returns the class of a missed plan, by what was needed to find the best plan.
func (g *checker) diagnose(t *turn, best plan) string {
	b := g.booked
	b.steps = maxSteps
	j := b.find(t.job)
	if g.kind == Allocate {
		return "few placements of the tasks are possible"
	}
	if n := b.candidates(j); n > maxCompared {
		return fmt.Sprintf("there are more than %d possible victims", maxCompared)
	}
	if first := b.minima(best.request.job)[0]; !slices.Equal(first, best.request.minimum) {
		return "the first tasks do not make the minimum"
	}
	switch {
	case best.evicted != 0 && best.moved != 0:
		return "tasks are evicted, and other tasks move"
	case best.moved != 0:
		return "tasks move"
	}
	return "tasks are evicted"
}

// candidates counts the running, preemptible tasks of other jobs.
func (b *board) candidates(j *job) int {
	count := 0
	for _, t := range b.tasks {
		if t.Runs() && t.job.Preemptible && t.job.Job != j.Job {
			count++
		}
	}
	return count
}
