package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/engine"
)

// choice says why it was this one of those that could have gone. It says only
// what was tried: plans are searched for within bounds.
func choice(d *engine.Decision, also []string) string {
	w := d.Weighing
	if w == nil || len(w.Rivals) == 0 {
		return ""
	}
	n, verb := len(w.Rivals), "gone"
	if w.Purpose == engine.Move {
		verb = "moved"
	}
	if n == 1 {
		return "No other workload could have " + verb + "."
	}
	all := fmt.Sprintf("Of %d workloads that could have %s, ", n, verb)
	failed := func(r engine.Rival) bool { return r.Tried && !r.Enough }
	if len(also) > 0 {
		together := "It goes together with " + List(also, 3) + "."
		if !slices.ContainsFunc(w.Rivals, func(r engine.Rival) bool { return !failed(r) }) {
			together += " " + all + "none alone would have been enough."
		}
		return together
	}
	var cheaper []string
	vain, firm := true, true
	for _, r := range w.Rivals {
		if r.Job != d.Task.Job && costs(&r, &w.Cost) < 0 {
			cheaper = append(cheaper, r.Job)
			vain, firm = vain && failed(r), firm && !r.Surplus
		}
	}
	switch {
	case len(cheaper) == 0:
		return all + superlative(w.Rivals, d.Task.Job, w.Cost) + "."
	case !vain && firm && spares(w.Rivals, d.Task.Job):
		return all + "it is one that can spare the task."
	case !vain:
		return ""
	case len(cheaper) == 1:
		return all + cheaper[0] + " was nearer to going, but would not have been enough."
	}
	return all + List(cheaper, 3) + " were nearer to going, but none of them alone would have been enough."
}

func spares(rivals []engine.Rival, job string) bool {
	return slices.ContainsFunc(rivals, func(r engine.Rival) bool { return r.Job == job && r.Surplus })
}

// costs compares what it takes to have the rival go with what the plan takes.
func costs(r *engine.Rival, plan *engine.Cost) int {
	var c engine.Cost
	c.Tasks[min(r.Tier.Rank(), len(c.Tasks)-1)] = r.Tasks
	return cmp.Or(
		slices.Compare(c.Tasks[:], plan.Tasks[:]),
		cmp.Compare(int64(r.Priority)*int64(r.Tasks), plan.Priority),
		cmp.Compare(plan.Youngest, r.Started),
	)
}

// superlative narrows the rivals down to the one that went, by what counts in turn.
func superlative(rivals []engine.Rival, job string, plan engine.Cost) string {
	left := slices.Clone(rivals)
	var those []string
	narrow := func(text string, better func(a, b *engine.Rival) int) bool {
		before := len(left)
		best := left[0]
		for i := range left {
			if better(&left[i], &best) < 0 {
				best = left[i]
			}
		}
		left = slices.DeleteFunc(left, func(r engine.Rival) bool { return better(&r, &best) != 0 })
		narrowed := len(left) < before
		if narrowed && text != "" {
			those = append(those, text)
		}
		return narrowed
	}
	one := slices.IndexFunc(rivals, func(r engine.Rival) bool { return r.Job == job })
	if one < 0 || rivals[one].Tasks != plan.Tasks[0]+plan.Tasks[1]+plan.Tasks[2] {
		return "none was nearer to going"
	}
	it := rivals[one]
	narrow(fmt.Sprintf("of the weakest tier (%s)", it.Tier), func(a, b *engine.Rival) int { return cmp.Compare(b.Tier.Rank(), a.Tier.Rank()) })
	narrow(fmt.Sprintf("with the fewest tasks (%d)", it.Tasks), func(a, b *engine.Rival) int { return cmp.Compare(a.Tasks, b.Tasks) })
	narrow(fmt.Sprintf("of the lowest priority (%d)", it.Priority), func(a, b *engine.Rival) int { return cmp.Compare(a.Priority, b.Priority) })
	youngest := narrow("", func(a, b *engine.Rival) int { return cmp.Compare(b.Started, a.Started) })
	if !slices.ContainsFunc(left, func(r engine.Rival) bool { return r.Job == job }) {
		return "none was nearer to going"
	}
	head := "the only one"
	switch {
	case len(left) > 1 && youngest:
		head = fmt.Sprintf("one of the %d youngest", len(left))
	case len(left) > 1:
		head = fmt.Sprintf("one of %d", len(left))
	case youngest:
		head = "the youngest"
	}
	switch {
	case len(left) == len(rivals):
		return "all are alike in what counts"
	case len(those) == 0:
		return "it is " + head
	case youngest:
		return "it is " + head + " of those " + List(those, len(those))
	}
	return "it is " + head + " " + List(those, len(those))
}
