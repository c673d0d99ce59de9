package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxNamed is how many jobs and options are named in an explanation.
const maxNamed = 10

// maxTriedAlone is how many rivals are tried alone, to be told.
const maxTriedAlone = 16

// Weighing is how a plan to make room was found: it goes with every eviction.
type Weighing struct {
	Purpose Purpose
	Looks   int // nodes looked at closely in vain
	Tries   int // plans put to Place
	Cost    Cost
	// Options are nodes that would have done for a task, the chosen one among them,
	// with what each would have cost.
	Options []Option
	Spared  []Protection
	// Rivals are all jobs that could have gone, those that did included, the first
	// to go first; where the session explains and there are not too many.
	Rivals []Rival
	// Asks is what the job lacked for its minimum, and Standings how its queue,
	// those of the victims and all above them stood before anybody went.
	Asks      cluster.Resources
	Standings []Standing
}

// Option is a node on which room could have been made for a task.
type Option struct {
	Task   string
	Node   string
	Go     []string // tasks that would have had to leave
	Chosen bool
	Cost   Cost
}

// Cost is what a plan takes from other jobs. Plans are compared by the strongest tier
// that loses a task, then by Highest, VictimCost, Beyond, the number of tasks, Jobs and
// Youngest, then by Moved, the priorities of what moves and MovedCost: less is better.
type Cost struct {
	Tasks    [3]int // that are evicted, of Guaranteed, Standard and Scavenger queues
	Highest  int32  // the highest priority of these
	Beyond   int64  // thousandths of devices that are freed and that the plan does not need
	Jobs     int    // that are evicted as a whole
	Priority int64  // summed over the tasks, those that move included
	Youngest int64  // when the youngest started
	Moved    int    // tasks that move
	// VictimCost is what plugins say that the evicted tasks cost together, and MovedCost
	// the same of those that move.
	VictimCost, MovedCost int64
}

// Rival is a job that could have gone: one task of it, or all.
type Rival struct {
	Job      string
	Surplus  bool // the job could spare the task
	Tier     cluster.Tier
	Priority int32
	Started  int64
	Tasks    int   // that would have left together
	Freed    int64 // thousandths of devices that they hold
	// VictimCost is what plugins say that they cost together.
	VictimCost int64
	// Tried alone, whether that would have been enough, and what it would have freed
	// beyond what is needed.
	Tried, Enough bool
	Beyond        int64
}

// Protection is jobs that might have gone, had nobody spared them.
type Protection struct {
	Spared
	Count int
	Jobs  []string // ten at most
}

// Sparing is what an adapter ran into before it gave up.
type Sparing struct {
	Purpose    Purpose
	Barred     bool // nobody may go for this job, whoever he is
	Protection []Protection
}

// spare remembers that an adapter looked for somebody to go.
func (r *Refusal) spare(p Purpose, barred bool, spared []Protection) {
	for i := range spared { // in whatever order nodes were looked at
		slices.Sort(spared[i].Jobs)
	}
	r.Spared = append(r.Spared, Sparing{p, barred, spared})
}

// protect counts a job that was not counted yet for the same reason.
func protect(list []Protection, s *Spared, job string) []Protection {
	i := slices.IndexFunc(list, func(p Protection) bool { return p.Spared == *s })
	if i < 0 {
		i = len(list)
		list = append(list, Protection{Spared: *s})
	}
	p := &list[i]
	if p.Count++; len(p.Jobs) < maxNamed {
		p.Jobs = append(p.Jobs, job)
	}
	return list
}

// reportedCost is the cost in the form that is told.
func reportedCost(s cluster.View, plan []*Victim, c cost) Cost {
	out := Cost{VictimCost: c.victims, MovedCost: c.moved.victims, Beyond: c.beyond, Jobs: int(c.jobs), Moved: int(c.moved.tasks), Youngest: -min(c.young, c.moved.young)}
	if c.tasks > 0 {
		out.Highest = c.priority
	}
	for _, v := range plan {
		for _, t := range v.Tasks {
			out.Priority += int64(t.Job.Priority)
			if v.Purpose != Move {
				out.Tasks[min(tierOf(s, v.Job.Queue).Rank(), 2)]++
			}
		}
	}
	return out
}

// weighing sums up how the plan was found, before any victim leaves.
func (r *room) weighing(plan []*Victim) *Weighing {
	w := &Weighing{Purpose: purposeOf(plan), Looks: r.looks, Tries: r.trial.tries, Cost: reportedCost(r.view, plan, r.cost), Options: r.weighed}
	leaves, could := map[string]bool{}, map[string]bool{}
	queues := []string{r.want.job.Queue}
	for _, v := range plan {
		could[v.Job.ID] = true
		if !slices.Contains(queues, v.Job.Queue) {
			queues = append(queues, v.Job.Queue)
		}
		for _, t := range v.Tasks {
			leaves[t.ID] = true
		}
	}
	for i := range w.Options { // the plan may have come from another search
		o := &w.Options[i]
		o.Chosen = o.Chosen && !slices.ContainsFunc(o.Go, func(id string) bool { return !leaves[id] })
	}
	for _, q := range queues {
		for _, s := range r.placer.explainer.standings(q) {
			if !slices.Contains(w.Standings, s) {
				w.Standings = append(w.Standings, s)
			}
			if ask := r.accounts.chargeOf(r.view.Queue(r.want.job.Queue), r.want.lacks, s.Resource); ask > 0 {
				w.Asks = w.Asks.With(s.Resource, ask)
			}
		}
	}
	if r.placer.explainer.all {
		w.Rivals = r.possibleVictims(w.Purpose)
	}
	for i := range w.Rivals {
		could[w.Rivals[i].Job] = true
	}
	w.Spared = r.leaver.protectedExcept(w.Purpose, could)
	return w
}

// purposeOf is the purpose of the first victim that is evicted, or else Move.
func purposeOf(plan []*Victim) Purpose {
	for _, v := range plan {
		if v.Purpose != Move {
			return v.Purpose
		}
	}
	return Move
}

// protectedExcept lists the jobs that were protected, without those that were so only once
// others had left.
func (l *leaver) protectedExcept(purpose Purpose, could map[string]bool) []Protection {
	var out []Protection
	for _, p := range l.spared[purpose] {
		p.Jobs = slices.DeleteFunc(slices.Clone(p.Jobs), func(id string) bool { return could[id] })
		p.Count = 0
		for key := range l.counted {
			if key.purpose == purpose && key.Spared == p.Spared && !could[key.job.ID] {
				p.Count++
			}
		}
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}

// possibleVictims lists the jobs that could have left for the purpose, and tries the first of
// them alone.
func (r *room) possibleVictims(purpose Purpose) []Rival {
	leaver, trial := *r.leaver, *r.trial // what is only told is not noted
	leaver.spared, leaver.counted = [purposes][]Protection{}, nil
	trial.leaver = &leaver
	var out []Rival
	seen := map[*cluster.Job]bool{}
	alone := 0
	for _, c := range r.leaver.victims.rivals(r.want.job, maxOneByOne, nil) {
		v := VictimOf(c.task)
		if purpose == Move {
			v = mover(c.task)
		}
		if seen[v.Job] || !leaver.allows(v, Reclaim) {
			continue
		}
		seen[v.Job] = true
		rival := Rival{Job: v.Job.ID, Surplus: c.surplus, Tier: tierOf(r.view, v.Job.Queue), Priority: v.Job.Priority, Started: c.task.Started, Tasks: len(v.Tasks), Freed: freed(v.Tasks), VictimCost: r.leaver.victims.costOfTasks(v.Tasks)}
		if alone < maxTriedAlone && r.fault.err == nil {
			alone++
			var spent cost
			rival.Tried = true
			if spent, rival.Enough = trial.try([]*Victim{v}); rival.Enough {
				rival.Beyond = spent.beyond
			}
		}
		out = append(out, rival)
	}
	return out
}
