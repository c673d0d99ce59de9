package oracle

import (
	"fmt"
	"slices"
)

// sure is up to how many tasks that might leave the engine compares all plans.
const sure = 12

// diagnose puts a miss into a class: what finding the best plan would have taken.
func (g *game) diagnose(t *turn, best plan) string {
	b := g.promised
	b.steps = maxSteps
	j := b.find(t.job)
	if g.kind == Allocate {
		return "the tasks fit in few arrangements"
	}
	if n := b.candidates(j); n > sure {
		return fmt.Sprintf("more than %d tasks might leave", sure)
	}
	if first := b.minima(best.request.job)[0]; !slices.Equal(first, best.request.minimum) {
		return "other tasks make the minimum than the first"
	}
	switch {
	case best.evicted != 0 && best.moved != 0:
		return "some are evicted and others move"
	case best.moved != 0:
		return "some move"
	}
	return "some are evicted"
}

// candidates counts the tasks that run, are of other jobs and preemptible.
func (b *board) candidates(j *job) int {
	count := 0
	for _, t := range b.tasks {
		if t.Runs() && t.job.Preemptible && t.job.Job != j.Job {
			count++
		}
	}
	return count
}
