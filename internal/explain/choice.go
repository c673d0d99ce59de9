package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
)

// choiceText returns why this workload was evicted and not another that could have been. Also
// are the workloads that are evicted with it. The text says only what is known: the engine
// tries only the first few rivals alone.
func choiceText(d *engine.Decision, also []string) string {
	w := d.PlanSearch
	if w == nil || len(w.Rivals) == 0 {
		return ""
	}
	n, verb, together := len(w.Rivals), "been evicted", "It is evicted together with "
	if w.Purpose == engine.Move {
		verb, together = "moved", "It moves together with "
	}
	text := ""
	if len(also) > 0 {
		text = together + List(also, 3) + ". "
	} else if n == 1 {
		return "No other workload could have " + verb + "."
	}
	clauses := objectionsTo(w, append([]string{d.Task.Job}, also...))
	if len(clauses) == 0 {
		return strings.TrimSpace(text)
	}
	return text + fmt.Sprintf("Of %d workloads that could have %s, ", n, verb) + strings.Join(clauses, "; ") + "."
}

// objectionsTo returns why the other rivals are not evicted, in the order in which plans are
// compared.
func objectionsTo(w *engine.PlanSearch, evicted []string) []string {
	byReason := make([][]string, len(objections))
	for i := range w.Rivals {
		r := &w.Rivals[i]
		if slices.Contains(evicted, r.Job) {
			continue
		}
		at := objection(w, r)
		byReason[at] = append(byReason[at], r.Job)
	}
	var out []string
	for at, jobs := range byReason {
		if len(jobs) == 0 {
			continue
		}
		one, many, _ := strings.Cut(objections[at], "|")
		if len(jobs) > 1 {
			one = many
		}
		out = append(out, strings.Replace(one, "{}", List(jobs, 3), 1))
	}
	return out
}

// objections are the texts for the constants below: why a rival was not evicted, for one rival
// and, after the |, for several. They are in the order in which plans are compared.
var objections = [...]string{
	"{} is of a stronger tier|{} are of a stronger tier",
	"{} has a higher priority|{} have higher priorities",
	"{} would cost more, according to plugins|{} would each cost more, according to plugins",
	"{} would free more room that is not needed|{} would each free more room that is not needed",
	"more tasks of {} would be evicted|more tasks of each of {} would be evicted",
	"{} would be evicted as a whole|{} would each be evicted as a whole",
	"{} has run for longer|{} have run for longer",
	"{} is equal in all that is compared|{} are equal in all that is compared",
	"{} alone would not have been enough|none of {} alone would have been enough",
	"{} was not tried alone|{} were not tried alone",
	"{} alone would have been enough|each of {} alone would have been enough",
}

const (
	strongerTier = iota
	higherPriority
	costsMore
	freesMore
	moreTasks
	wholeJob
	ranLonger
	alike
	notEnough
	notTried
	enough
)

// objection returns the first respect in which the rival alone would have been worse than the
// chosen plan.
func objection(w *engine.PlanSearch, r *engine.Rival) int {
	moves := w.Purpose == engine.Move
	tier := cmp.Compare(strongestTier(w.Cost.Tasks), r.Tier.Rank())
	switch {
	case r.Tried && !r.Enough:
		return notEnough
	case moves && !r.Tried:
		return notTried
	case !moves && tier > 0:
		return strongerTier
	case !moves && tier == 0 && r.Priority > w.Cost.Highest:
		return higherPriority
	case !moves && tier == 0 && r.Priority == w.Cost.Highest && r.VictimCost > w.Cost.VictimCost:
		return costsMore
	case !r.Tried:
		return notTried
	}
	whole := 1
	if r.Surplus || moves {
		whole = 0
	}
	movedCost := 0
	if r.Tasks == w.Cost.Moved { // otherwise the number of tasks decides
		movedCost = cmp.Compare(r.VictimCost, w.Cost.MovedCost)
	}
	for at, c := range map[bool][]int{
		false: {strongerTier: tier, higherPriority: cmp.Compare(r.Priority, w.Cost.Highest), costsMore: cmp.Compare(r.VictimCost, w.Cost.VictimCost), freesMore: cmp.Compare(r.Beyond, w.Cost.Beyond),
			moreTasks: cmp.Compare(r.Tasks, sum(w.Cost.Tasks)), wholeJob: cmp.Compare(whole, w.Cost.Jobs), ranLonger: cmp.Compare(w.Cost.Youngest, r.Started)},
		true: {strongerTier: 0, higherPriority: cmp.Compare(int64(r.Priority), w.Cost.Priority), costsMore: movedCost, freesMore: 0,
			moreTasks: cmp.Compare(r.Tasks, w.Cost.Moved), wholeJob: 0, ranLonger: cmp.Compare(w.Cost.Youngest, r.Started)},
	}[moves] {
		if c > 0 {
			return at
		}
		if c < 0 {
			return enough // the rival would have been better, but the search, which is bounded, did not find that plan
		}
	}
	return alike
}

func sum(tasks [3]int) int { return tasks[0] + tasks[1] + tasks[2] }

// strongestTier returns the rank of the strongest tier of which a task is evicted, where 0 is
// Guaranteed. It returns 3, one more than the rank of the weakest tier, if no task is evicted.
func strongestTier(tasks [3]int) int {
	for rank, n := range tasks {
		if n > 0 {
			return rank
		}
	}
	return len(tasks)
}
