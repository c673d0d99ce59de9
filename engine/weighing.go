package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// mostNamed is how many jobs and options are named in an explanation.
const mostNamed = 10

// mostAlone is how many rivals are tried alone, to be told.
const mostAlone = 16

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
	Go     []string // tasks that would have had to go
	Chosen bool
	Cost   Cost
}

// Cost is what a plan takes from others: less is better, from the first field on.
type Cost struct {
	Tasks    [3]int // of Guaranteed, Standard and Scavenger queues
	Priority int64  // summed over the tasks
	Youngest int64  // when the youngest started: who has run longest is worth most
}

// Rival is a job that could have gone: one task of it, or all.
type Rival struct {
	Job      string
	Surplus  bool // the job could spare the task
	Tier     cluster.Tier
	Priority int32
	Started  int64
	Tasks    int // that would have gone together
	// Tried alone, and whether that would have been enough.
	Tried, Enough bool
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
	if p.Count++; len(p.Jobs) < mostNamed {
		p.Jobs = append(p.Jobs, job)
	}
	return list
}

func (c *cost) told() Cost {
	out := Cost{Priority: c.priority, Youngest: -c.young}
	for i, n := range c.tasks {
		out.Tasks[i] = int(n)
	}
	return out
}

// weighing sums up how the plan was found, before anybody goes.
func (r *room) weighing(plan []*Victim) *Weighing {
	c := costOf(r.State, plan, r.purpose)
	w := &Weighing{Purpose: r.purpose, Looks: r.looks, Tries: r.tries, Cost: c.told(), Options: r.weighed}
	goes, could := map[string]bool{}, map[string]bool{}
	queues := []string{r.job.Queue}
	for _, v := range plan {
		could[v.Job.ID] = true
		if !slices.Contains(queues, v.Job.Queue) {
			queues = append(queues, v.Job.Queue)
		}
		for _, t := range v.Tasks {
			goes[t.ID] = true
		}
	}
	for i := range w.Options { // the plan may have come from elsewhere
		o := &w.Options[i]
		o.Chosen = o.Chosen && !slices.ContainsFunc(o.Go, func(id string) bool { return !goes[id] })
	}
	for _, q := range queues {
		for _, s := range r.Standings(q) {
			if !slices.Contains(w.Standings, s) {
				w.Standings = append(w.Standings, s)
			}
			if ask := r.ChargeOf(r.State.Queue(r.job.Queue), r.lacks, s.Resource); ask > 0 {
				w.Asks = w.Asks.With(s.Resource, ask)
			}
		}
	}
	if r.options.Explain {
		w.Rivals = r.couldGo()
	}
	for i := range w.Rivals {
		could[w.Rivals[i].Job] = true
	}
	w.Spared = r.sparedBut(could)
	return w
}

// sparedBut is who was spared, without those who were so only once others had gone.
func (r *room) sparedBut(could map[string]bool) []Protection {
	var out []Protection
	for _, p := range r.spared {
		p.Jobs = slices.DeleteFunc(slices.Clone(p.Jobs), func(id string) bool { return could[id] })
		p.Count = 0
		for key := range r.counted {
			if key.Spared == p.Spared && !could[key.job.ID] {
				p.Count++
			}
		}
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}

// couldGo lists who could have gone, and tries those alone that are first in line.
func (r *room) couldGo() []Rival {
	line := r.line(maxInLine, false)
	tries, spared, counted := r.tries, r.spared, r.counted
	r.spared, r.counted = nil, nil
	defer func() { r.tries, r.spared, r.counted = tries, spared, counted }()
	var out []Rival
	seen := map[*cluster.Job]bool{}
	alone := 0
	for _, c := range line {
		v := VictimOf(c.task)
		if seen[v.Job] || r.may(v) != nil {
			continue
		}
		seen[v.Job] = true
		rival := Rival{Job: v.Job.ID, Surplus: c.spare, Tier: tierOf(r.State, c.task), Priority: v.Job.Priority, Started: c.task.Started, Tasks: len(v.Tasks)}
		if alone < mostAlone && r.err == nil {
			alone++
			rival.Tried, rival.Enough = true, r.works([]*Victim{v})
		}
		out = append(out, rival)
	}
	return out
}
