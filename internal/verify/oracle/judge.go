package oracle

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxCompared is the largest number of possible victims for which the engine compares all
// plans.
const maxCompared = 12

// judge compares the turns of a session with the best possible plans.
type judge struct {
	kind      Kind
	objects   *objects
	placement *placement // at the beginning of the turn
	planner   *planner
	checker   *checker
}

func newJudge(k Kind, before *cluster.State, now int64) *judge {
	o := newObjects(before.View(), now)
	o.divide(before.View())
	c := newChecker(k, o)
	return &judge{kind: k, objects: o, placement: c.replay.reserved, planner: c.plans.planner, checker: c}
}

// verdict checks the turn, compares it with the best plan and then applies it.
func (j *judge) verdict(t *turn) Verdict {
	f := j.checker.findings
	broken, unchecked := len(f.broken), f.unchecked
	var v Verdict
	if p := j.checker.plans.check(t); p != nil {
		v = j.compare(t, p)
		v.Plan = p.plan.describe(j.objects)
		j.checker.replay.apply(t, p)
		if v.Relevant && !v.Placed && t.refusal != nil && t.refusal.Permanent {
			v.Why += ", and the refusal is permanent"
		}
	}
	v.Job, v.Illegal, v.Unchecked = t.job, f.broken[broken:], f.unchecked-unchecked
	return v
}

// compare compares the turn with the best possible plan, before the turn is applied.
func (j *judge) compare(t *turn, p *turnPlan) (v Verdict) {
	f := j.objects.find(t.job)
	if j.placement.hasAnyMinimum(f) {
		return v // no plan is required for surplus
	}
	if j.kind == Allocate {
		relevant, err := j.needsSearch(f)
		placed := len(t.placed) > 0
		return Verdict{Relevant: relevant, TooLarge: err != nil, Placed: placed, Minimal: placed, Why: "few placements of the tasks are possible"}
	}
	var spent *cost
	if p.plan.victims() != 0 {
		spent = &p.plan.cost
	}
	best, found, err := j.better(f, spent, p.lastResort)
	if v.LastResort = p.lastResort; spent == nil && !found && err == nil { // the last resort is allowed only if there is no other plan
		best, found, err = j.better(f, nil, true)
		v.LastResort = found
	}
	if v.TooLarge = err != nil; v.TooLarge {
		return v
	}
	v.Relevant, v.Placed, v.Minimal = found || spent != nil, spent != nil, !found
	if found {
		v.Best = best.describe(j.objects)
		if v.Why = j.whyMissed(f, &best); spent != nil {
			v.Why = spent.excess(best.cost)
		}
	}
	return v
}

// better returns the cheapest plan for the job that costs less than spent or, if spent is
// nil, the cheapest plan. It returns false if there is none, or if the job fits into the free
// room.
func (j *judge) better(f *form, spent *cost, lastResort bool) (plan, bool, error) {
	j.planner.placements.reset()
	if fits, err := j.planner.placements.minimumFits(f); fits || err != nil {
		return plan{}, false, err
	}
	return j.planner.cheapest(j.kind, f, spent, lastResort)
}

// needsSearch reports whether the minimum of the job fits into the free room, but is not
// found by placing one task after the other.
func (j *judge) needsSearch(f *form) (bool, error) {
	if g := (&greedy{j.placement}); g.findsMinimum(f) {
		return false, nil
	}
	return j.planner.placements.minimumFits(f)
}

// whyMissed returns what was needed to find the best plan, as the class of a plan that the
// engine did not find.
func (j *judge) whyMissed(f *form, best *plan) string {
	if j.candidates(f) > maxCompared {
		return fmt.Sprintf("there are more than %d possible victims", maxCompared)
	}
	if first := j.placement.minima(best.request.form)[0]; !slices.Equal(first, best.request.minimum) {
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
func (j *judge) candidates(f *form) int {
	count := 0
	for _, t := range j.objects.tasks {
		if t.task.Runs() && t.form.job.Preemptible && t.form.job != f.job {
			count++
		}
	}
	return count
}

// isRelevant reports whether the job is a relevant case of the kind.
func (j *judge) isRelevant(f *form) bool {
	j.planner.placements.reset()
	if j.kind == Allocate {
		needed, err := j.needsSearch(f)
		return needed && err == nil
	}
	best, found, err := j.better(f, nil, false)
	if !found || err != nil {
		return false
	}
	switch j.kind {
	case Combined:
		return j.needsSeveral(&best)
	case Costs:
		return j.dependsOnCosts(f, &best)
	}
	return true
}

// needsSeveral reports whether the plan needs more than one of Consolidate, Reclaim and
// Preempt.
func (j *judge) needsSeveral(p *plan) bool {
	if p.moved != 0 || p.evicted == 0 {
		return p.moved != 0 && p.evicted != 0
	}
	for _, plugin := range []Kind{Reclaim, Preempt} {
		evictedBy := map[*task]Kind{}
		for _, t := range j.objects.members(p.evicted) {
			evictedBy[t] = plugin
		}
		if j.planner.rules.violation(p, evictedBy) == "" {
			return false
		}
	}
	return true
}

// dependsOnCosts reports whether another plan would be the cheapest if victims had no costs.
func (j *judge) dependsOnCosts(f *form, cheapest *plan) bool {
	saved := make([]int64, len(j.objects.jobs))
	for i, k := range j.objects.jobs {
		saved[i], k.cost = k.cost, 0
	}
	other, found, err := j.better(f, nil, false)
	for i, k := range j.objects.jobs {
		k.cost = saved[i]
	}
	return found && err == nil && other.evicted != cheapest.evicted
}
