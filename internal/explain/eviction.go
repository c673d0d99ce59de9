package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// evictions groups the evictions among the decisions for which about returns true: tasks of one
// workload that are evicted by the same plan are one Eviction.
func (ph Phrases) evictions(s *cluster.State, decisions []engine.Decision, about func(*engine.Decision) bool) []Eviction {
	var out []Eviction
	type plan struct {
		job    string
		w      *engine.PlanSearch
		reason engine.Reason
		forJob string
	}
	at := map[plan]int{}
	var first []*engine.Decision
	for i := range decisions {
		d := &decisions[i]
		if d.Action != engine.EvictTask || !about(d) {
			continue
		}
		key := plan{d.Task.Job, d.PlanSearch, d.Reason, d.For}
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, Eviction{Eviction: wire.Eviction{Workload: d.Task.Job, For: d.For, Reason: string(d.Reason), PlanSearch: wire.NewPlanSearch(d.PlanSearch)}, plan: d.PlanSearch})
			first = append(first, d)
		}
		e := &out[n]
		e.Tasks = append(e.Tasks, d.Task.Name)
		if !slices.Contains(e.Nodes, d.Node) {
			e.Nodes = append(e.Nodes, d.Node)
		}
		if d.Landing != "" && !slices.Contains(e.Landing, d.Landing) {
			e.Landing = append(e.Landing, d.Landing)
		}
	}
	for i := range out {
		e, d := &out[i], first[i]
		if t := s.Task(d.Task); t != nil {
			e.jobTasks = len(t.Job.Alternatives[t.Alternative].Tasks)
		}
		e.together = othersOf(decisions, d)
		e.Because = ph.ruleText(s, d)
		e.Choice = choiceText(d, e.together)
		if w := d.PlanSearch; w != nil {
			e.protected = ph.protectedText(s, w.Purpose, w.Protected)
		}
	}
	return out
}

// othersOf returns the other workloads that are evicted by the same plan.
func othersOf(decisions []engine.Decision, d *engine.Decision) []string {
	var out []string
	if d.PlanSearch == nil {
		return nil
	}
	for i := range decisions {
		o := &decisions[i]
		if id := o.Task.Job; o.Action == engine.EvictTask && o.PlanSearch == d.PlanSearch && id != d.Task.Job && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// ruleText returns by which rule the task may be evicted, with the numbers that decided it.
func (ph Phrases) ruleText(s *cluster.State, d *engine.Decision) string {
	text := ""
	if w := d.PlanSearch; w != nil {
		switch victim, forJob := s.Job(d.Task.Job), s.Job(d.For); {
		case victim == nil || forJob == nil:
		case d.Purpose == engine.Reclaim:
			text = reclaimText(s, w, victim, forJob)
		case d.Purpose == engine.Preempt:
			text = preemptText(s, victim, forJob)
		case d.Purpose == engine.Move:
			text = "the room of " + victim.ID + " is in one place, and room is reserved for it elsewhere"
		}
	}
	if text != "" {
		return text
	}
	if p := ph[d.Reason].Phrase; p != "" {
		return p
	}
	return splitWords(string(d.Reason))
}

// reclaimText compares what queues held with their fair shares: the queue of the victim and the
// queues above it, up to the level at which the branches of the two queues fork, and the queue
// of the job.
func reclaimText(s *cluster.State, w *engine.PlanSearch, victim, forJob *cluster.Job) string {
	own, theirs := s.Queue(forJob.Queue), s.Queue(victim.Queue)
	_, b := s.View().Fork(own, theirs)
	if b == nil {
		return ""
	}
	for _, ask := range w.Asks {
		mine := standingOf(w.Standings, own.Name, ask.Name)
		if mine == nil {
			continue
		}
		var above []string
		for q := theirs; q != nil; q = s.View().Parent(q) {
			st := standingOf(w.Standings, q.Name, ask.Name)
			if st == nil || st.Used <= st.Share {
				above = nil
				break
			}
			above = append(above, fmt.Sprintf("queue %s held %s, more than its fair share of %s", q.Name, quantity.Resource(ask.Name, st.Used), quantity.Resource(ask.Name, st.Share)))
			if q == b {
				break
			}
		}
		if theirs := standingOf(w.Standings, b.Name, ask.Name); len(above) == 0 && theirs != nil && theirs.Used > 0 {
			return lastResort(theirs, mine, ask)
		}
		if len(above) > 0 {
			return fmt.Sprintf("%s; queue %s held %s of its fair share of %s and requested %s more",
				strings.Join(above, ", and "), own.Name, amountOf(ask.Name, mine.Used), quantity.Resource(ask.Name, mine.Share), amountOf(ask.Name, ask.Value))
		}
	}
	return ""
}

// lastResort returns by which rule a victim is reclaimed although its queue, or a queue above
// it, does not exceed its fair share. The engine does so only if there is no plan with which
// all queues stay within their shares.
func lastResort(theirs, mine *engine.Standing, ask cluster.Amount) string {
	name := ask.Name
	if mine.Quota >= 0 && mine.Used+ask.Value <= mine.Quota && theirs.Used > max(0, theirs.Quota) {
		return fmt.Sprintf("queue %s held %s, more than its quota of %s; queue %s stays within its quota of %s",
			theirs.Queue, quantity.Resource(name, theirs.Used), amountOf(name, max(0, theirs.Quota)), mine.Queue, amountOf(name, mine.Quota))
	}
	return fmt.Sprintf("queue %s held %s where its fair share is %s, and queue %s holds %s of its fair share of %s with the workload: the queues are more even",
		theirs.Queue, quantity.Resource(name, theirs.Used), amountOf(name, theirs.Share), mine.Queue, amountOf(name, mine.Used+ask.Value), amountOf(name, mine.Share))
}

// amountOf returns an amount without the name of the resource, for sentences that name the
// resource elsewhere.
func amountOf(name string, v int64) string {
	return quantity.Amount(name, v, quantity.IsDevice(name), false)
}

func standingOf(list []engine.Standing, queue, resource string) *engine.Standing {
	for i := range list {
		if list[i].Queue == queue && list[i].Resource == resource {
			return &list[i]
		}
	}
	return nil
}

// preemptText compares the priorities of jobs in one queue, or the tiers of the two branches
// below the queue that they have in common.
func preemptText(s *cluster.State, victim, forJob *cluster.Job) string {
	if victim.Queue == forJob.Queue {
		return fmt.Sprintf("in queue %s, %s has priority %d and %s %d", victim.Queue, victim.ID, victim.Priority, forJob.ID, forJob.Priority)
	}
	a, b := s.View().Fork(s.Queue(forJob.Queue), s.Queue(victim.Queue))
	if a == nil {
		return ""
	}
	if b.Tier == cluster.TierGuaranteed { // the queue keeps its quota, and what exceeds it counts as Standard
		return fmt.Sprintf("queue %s keeps its quota, and beyond it is of a weaker tier (Standard) than queue %s (%s)", b.Name, a.Name, a.Tier)
	}
	return fmt.Sprintf("queue %s is of a weaker tier (%s) than queue %s (%s)", b.Name, b.Tier, a.Name, a.Tier)
}

// otherNodesText returns sentences that say on which other nodes room could have been made, and
// why it was not. Nodes with the victims of the chosen plan only are left out.
func otherNodesText(w *engine.PlanSearch) []string {
	var out []string
	for i := range w.Options {
		o := &w.Options[i]
		chosen := slices.IndexFunc(w.Options, func(c engine.Option) bool { return c.Chosen && c.Task == o.Task })
		if o.Chosen || !slices.ContainsFunc(o.Victims, func(id string) bool { return !isEvicted(w, id) }) {
			continue
		}
		var taken []string
		if chosen >= 0 {
			taken = jobNames(w.Options[chosen].Victims, nil)
		}
		verb := "been evicted"
		if w.Purpose == engine.Move {
			verb = "moved"
		}
		text := fmt.Sprintf("On %s, %s would have %s instead", o.Node, List(jobNames(o.Victims, taken), 3), verb)
		switch {
		case chosen >= 0:
			text += ": " + costDifference(&o.Cost, &w.Options[chosen].Cost)
		case !slices.ContainsFunc(w.Options, func(c engine.Option) bool { return c.Task != o.Task }): // the plan is for this task only
			text += ": " + costDifference(&o.Cost, &w.Cost)
		}
		if !slices.Contains(out, text+".") {
			out = append(out, text+".")
		}
	}
	return out
}

// isEvicted reports whether the task is a victim of the chosen plan.
func isEvicted(w *engine.PlanSearch, id string) bool {
	return slices.ContainsFunc(w.Options, func(o engine.Option) bool { return o.Chosen && slices.Contains(o.Victims, id) })
}

// jobNames returns the workloads of the tasks. Tasks of the workloads in apart are named one by
// one, because the chosen plan evicts other tasks of these workloads.
func jobNames(tasks, apart []string) []string {
	var out []string
	for _, id := range tasks {
		if job := id[:strings.LastIndexByte(id, '/')]; !slices.Contains(apart, job) {
			id = job
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

var tiers = [...]cluster.Tier{cluster.TierGuaranteed, cluster.TierStandard, cluster.TierScavenger}

// costDifference returns the first respect in which a cost exceeds another one, in the order in
// which the engine compares plans.
func costDifference(c, than *engine.Cost) string {
	x, y := strongestTier(c.Tasks), strongestTier(than.Tasks)
	switch {
	case x < y && y < len(tiers):
		return fmt.Sprintf("%s of %s queues instead of %s queues", english.Count(c.Tasks[x], "task"), tiers[x], tiers[y])
	case x < y:
		return fmt.Sprintf("%s of %s queues would be evicted", english.Count(c.Tasks[x], "task"), tiers[x])
	case c.Highest > than.Highest:
		return fmt.Sprintf("the highest priority is %d instead of %d", c.Highest, than.Highest)
	case c.VictimCost > than.VictimCost:
		return fmt.Sprintf("the victims cost %d instead of %d, according to plugins", c.VictimCost, than.VictimCost)
	case c.Beyond > than.Beyond:
		return fmt.Sprintf("%s would be freed without need instead of %s", deviceText(c.Beyond), deviceText(than.Beyond))
	case sum(c.Tasks) > sum(than.Tasks):
		return fmt.Sprintf("%s instead of %d", english.Count(sum(c.Tasks), "task"), sum(than.Tasks))
	case c.Jobs > than.Jobs:
		return "a workload would be evicted as a whole"
	case c.Youngest < than.Youngest && sum(c.Tasks) > 0:
		return "the youngest victim there has run for longer than the youngest victim of the plan"
	case c.Moved > than.Moved:
		return fmt.Sprintf("%s would move instead of %d", english.Count(c.Moved, "task"), than.Moved)
	case c.Priority > than.Priority:
		return fmt.Sprintf("the priorities add up to %d instead of %d", c.Priority, than.Priority)
	case c.MovedCost > than.MovedCost:
		return fmt.Sprintf("the tasks that move cost %d instead of %d, according to plugins", c.MovedCost, than.MovedCost)
	case c.Youngest < than.Youngest:
		return "the youngest victim there has run for longer than the youngest victim of the plan"
	}
	return "the plans cost the same, and the node whose name sorts first is chosen"
}

// deviceText returns a number of devices that is given in thousandths.
func deviceText(milli int64) string { return quantity.Resource(cluster.DefaultDeviceResource, milli) }
