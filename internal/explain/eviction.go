package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// Eviction is a workload that has to leave, or some tasks of it, for another.
type Eviction struct {
	Workload string   `json:"workload"`
	Tasks    []string `json:"tasks"`
	Nodes    []string `json:"nodes"`         // that they leave
	For      string   `json:"for,omitempty"` // the workload that it makes room for
	Reason   string   `json:"reason"`
	Because  string   `json:"because"`          // the reason in words, with numbers
	Choice   string   `json:"choice,omitempty"` // why it and not another, where that is known
	Landing  []string `json:"landing,omitempty"`
	Weighed  *Weighed `json:"weighed,omitempty"`

	plan   *engine.Weighing
	total  int      // tasks that it has
	also   []string // that leave with it
	spared string
}

// evictions gathers what was decided at once: tasks of one workload that go for
// the same plan.
func (ph Phrases) evictions(s *cluster.State, decisions []engine.Decision, about func(*engine.Decision) bool) []Eviction {
	var out []Eviction
	type plan struct {
		job    string
		w      *engine.Weighing
		reason engine.Reason
		toWhom string
	}
	at := map[plan]int{}
	var first []*engine.Decision
	for i := range decisions {
		d := &decisions[i]
		if d.Action != engine.EvictIt || !about(d) {
			continue
		}
		key := plan{d.Task.Job, d.Weighing, d.Reason, d.For}
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, Eviction{Workload: d.Task.Job, For: d.For, Reason: string(d.Reason), Weighed: weighed(d.Weighing), plan: d.Weighing})
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
			e.total = len(t.Job.Alternatives[t.Alternative].Tasks)
		}
		e.also = others(decisions, d)
		e.Because = ph.grounds(s, d)
		e.Choice = choice(d, e.also)
		if w := d.Weighing; w != nil {
			e.spared = ph.sparedText(s, w.Purpose, w.Spared)
		}
	}
	return out
}

// others are the workloads that go for the same plan.
func others(decisions []engine.Decision, d *engine.Decision) []string {
	var out []string
	if d.Weighing == nil {
		return nil
	}
	for i := range decisions {
		o := &decisions[i]
		if id := o.Task.Job; o.Action == engine.EvictIt && o.Weighing == d.Weighing && id != d.Task.Job && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// grounds say by which rule it has to go, with the numbers that it was decided on.
func (ph Phrases) grounds(s *cluster.State, d *engine.Decision) string {
	text := ""
	if w := d.Weighing; w != nil {
		switch victim, forJob := s.Job(d.Task.Job), s.Job(d.For); {
		case victim == nil || forJob == nil:
		case d.Purpose == engine.Reclaim:
			text = reclaimText(s, w, victim, forJob)
		case d.Purpose == engine.Preempt:
			text = preemptText(s, victim, forJob)
		case d.Purpose == engine.Move:
			text = "what " + victim.ID + " leaves is in one piece, and room is held for it elsewhere"
		}
	}
	if text != "" {
		return text
	}
	if p := ph[d.Reason].Phrase; p != "" {
		return p
	}
	return spell(string(d.Reason))
}

// reclaimText sets what the queues held against what they should have: all of the
// victim's branch from where the two part, and the queue that took it back.
func reclaimText(s *cluster.State, w *engine.Weighing, victim, forJob *cluster.Job) string {
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
			above = append(above, fmt.Sprintf("queue %s held %s, more than its fair share of %s", q.Name, resourceText(ask.Name, st.Used), resourceText(ask.Name, st.Share)))
			if q == b {
				break
			}
		}
		if theirs := standingOf(w.Standings, b.Name, ask.Name); len(above) == 0 && theirs != nil && theirs.Used > 0 {
			return lastResort(theirs, mine, ask)
		}
		if len(above) > 0 {
			return fmt.Sprintf("%s; queue %s held %s of its fair share of %s and wanted %s more",
				strings.Join(above, ", and "), own.Name, amountOf(ask.Name, mine.Used), resourceText(ask.Name, mine.Share), amountOf(ask.Name, ask.Value))
		}
	}
	return ""
}

// lastResort says by which rule a victim is reclaimed where no plan keeps all queues
// within their shares.
func lastResort(theirs, mine *engine.Standing, ask cluster.Amount) string {
	name := ask.Name
	if mine.Quota >= 0 && mine.Used+ask.Value <= mine.Quota && theirs.Used > max(0, theirs.Quota) {
		return fmt.Sprintf("queue %s held %s, more than its quota of %s; queue %s stays within its quota of %s",
			theirs.Queue, resourceText(name, theirs.Used), amountOf(name, max(0, theirs.Quota)), mine.Queue, amountOf(name, mine.Quota))
	}
	return fmt.Sprintf("queue %s held %s where its fair share is %s, and queue %s holds %s of its fair share of %s with the workload: the queues are more even",
		theirs.Queue, resourceText(name, theirs.Used), amountOf(name, theirs.Share), mine.Queue, amountOf(name, mine.Used+ask.Value), amountOf(name, mine.Share))
}

// amountOf spells so much of a resource that is named nearby.
func amountOf(name string, v int64) string { return Amount(name, v, isDevice(name), false) }

func standingOf(list []engine.Standing, queue, resource string) *engine.Standing {
	for i := range list {
		if list[i].Queue == queue && list[i].Resource == resource {
			return &list[i]
		}
	}
	return nil
}

// preemptText compares priorities in one queue, and tiers where two branches part.
func preemptText(s *cluster.State, victim, forJob *cluster.Job) string {
	if victim.Queue == forJob.Queue {
		return fmt.Sprintf("in queue %s, %s has priority %d and %s %d", victim.Queue, victim.ID, victim.Priority, forJob.ID, forJob.Priority)
	}
	a, b := s.View().Fork(s.Queue(forJob.Queue), s.Queue(victim.Queue))
	if a == nil {
		return ""
	}
	if b.Tier == cluster.TierGuaranteed { // it would have stayed, were it within the quota
		return fmt.Sprintf("queue %s keeps its quota, and beyond it is of a weaker tier (Standard) than queue %s (%s)", b.Name, a.Name, a.Tier)
	}
	return fmt.Sprintf("queue %s is of a weaker tier (%s) than queue %s (%s)", b.Name, b.Tier, a.Name, a.Tier)
}

// options say where else room could have been made, and what was against it.
func options(w *engine.Weighing) []string {
	var out []string
	for i := range w.Options {
		o := &w.Options[i]
		chosen := slices.IndexFunc(w.Options, func(c engine.Option) bool { return c.Chosen && c.Task == o.Task })
		if o.Chosen || !slices.ContainsFunc(o.Go, func(id string) bool { return !goesAnyway(w, id) }) {
			continue
		}
		var taken []string
		if chosen >= 0 {
			taken = jobNames(w.Options[chosen].Go, nil)
		}
		verb := "been evicted"
		if w.Purpose == engine.Move {
			verb = "moved"
		}
		text := fmt.Sprintf("On %s, %s would have %s", o.Node, List(jobNames(o.Go, taken), 3), verb)
		switch {
		case chosen >= 0:
			text += ": " + dearer(&o.Cost, &w.Options[chosen].Cost)
		case !slices.ContainsFunc(w.Options, func(c engine.Option) bool { return c.Task != o.Task }): // the plan is for this task alone
			text += ": " + dearer(&o.Cost, &w.Cost)
		}
		if !slices.Contains(out, text+".") {
			out = append(out, text+".")
		}
	}
	return out
}

// goesAnyway reports whether the task is in what was chosen for some task.
func goesAnyway(w *engine.Weighing, id string) bool {
	return slices.ContainsFunc(w.Options, func(o engine.Option) bool { return o.Chosen && slices.Contains(o.Go, id) })
}

// jobNames are the workloads of the tasks; of those in the list, other tasks go
// anyway, and they are named task by task.
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

// dearer says in what the one cost is more than the other, by what counts first.
func dearer(c, than *engine.Cost) string {
	x, y := strongest(c.Tasks), strongest(than.Tasks)
	switch {
	case x < y && y < len(tiers):
		return fmt.Sprintf("%s of %s queues instead of %s queues", numeral.Count(c.Tasks[x], "task"), tiers[x], tiers[y])
	case x < y:
		return fmt.Sprintf("%s of %s queues would be evicted", numeral.Count(c.Tasks[x], "task"), tiers[x])
	case c.Highest > than.Highest:
		return fmt.Sprintf("the highest priority is %d instead of %d", c.Highest, than.Highest)
	case c.VictimCost > than.VictimCost:
		return fmt.Sprintf("what is evicted costs %d instead of %d, by what plugins say", c.VictimCost, than.VictimCost)
	case c.Beyond > than.Beyond:
		return fmt.Sprintf("%s would be freed that are not needed instead of %s", deviceText(c.Beyond), deviceText(than.Beyond))
	case total(c.Tasks) > total(than.Tasks):
		return fmt.Sprintf("%s instead of %d", numeral.Count(total(c.Tasks), "task"), total(than.Tasks))
	case c.Jobs > than.Jobs:
		return "a workload would have to leave as a whole"
	case c.Youngest < than.Youngest && total(c.Tasks) > 0:
		return "that has run for longer"
	case c.Moved > than.Moved:
		return fmt.Sprintf("%s would move instead of %d", numeral.Count(c.Moved, "task"), than.Moved)
	case c.Priority > than.Priority:
		return fmt.Sprintf("the priorities add up to %d instead of %d", c.Priority, than.Priority)
	case c.MovedCost > than.MovedCost:
		return fmt.Sprintf("what moves costs %d instead of %d, by what plugins say", c.MovedCost, than.MovedCost)
	case c.Youngest < than.Youngest:
		return "that has run for longer"
	}
	return "that is no worse; the first node by name is taken"
}

// deviceText spells so many thousandths of devices.
func deviceText(milli int64) string { return resourceText(cluster.DefaultDeviceResource, milli) }
