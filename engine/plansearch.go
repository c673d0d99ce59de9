package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// maxNamed is how many jobs, and how many options, an explanation names.
const maxNamed = 10

// maxTriedAlone is how many rivals are tried alone for an explanation.
const maxTriedAlone = 16

// PlanSearch describes how a plan was found. Each eviction of the plan has it.
type PlanSearch struct {
	Purpose Purpose // the purpose of the first victim that is evicted, or Move
	Looks   int     // nodes for which a plan was searched for and not found
	Tries   int     // plans that were passed to Place
	Cost    Cost    // what the plan costs
	// Options are nodes on which room could be made for a task, including the chosen one,
	// with what each costs.
	Options   []Option
	Protected []Protection // jobs that were protected
	// Rivals are all jobs that could have been victims, including those that were, in the
	// order in which they are evicted. They are listed only if the session explains and
	// there are not too many.
	Rivals []Rival
	// Asks is what the job lacked for its minimum. Standings are those of its queue, of the
	// victims' queues and of all queues above them, before any victim was evicted.
	Asks      cluster.Resources
	Standings []Standing
}

// Option is a node on which room could have been made for a task.
type Option struct {
	Task    string   // the name of the task
	Node    string   // the name of the node
	Victims []string // the IDs of the tasks that would have been evicted or moved
	Chosen  bool     // the plan uses this node
	Cost    Cost     // what making room on this node costs
}

// Cost is what a plan takes from other jobs. Evictions are compared first: by the strongest
// tier that loses a task, then by Highest, VictimCost, Beyond, the number of evicted tasks, Jobs,
// and the start of the youngest evicted task. Then moves are compared: by Moved, the number of
// jobs that move as a whole, the sum of the priorities of the tasks that move, MovedCost, and the
// start of the youngest task that moves. Less is better, except that a later start of the
// youngest task is better.
type Cost struct {
	Tasks    [3]int // how many tasks of Guaranteed, Standard and Scavenger queues are evicted
	Highest  int32  // the highest priority of the evicted tasks
	Beyond   int64  // room that is freed and not needed, in thousandths of devices
	Jobs     int    // how many jobs are evicted as a whole
	Priority int64  // the sum of the priorities of all tasks that are evicted or move
	Youngest int64  // when the youngest task that is evicted or moves started, in nanoseconds since 1970
	Moved    int    // how many tasks move
	// VictimCost is the sum of the VictimCosts of the evicted tasks, and MovedCost that of
	// the tasks that move.
	VictimCost, MovedCost int64
}

// Rival is a job that could have been a victim: one task of it, or all.
type Rival struct {
	Job      string       // the ID of the job
	Surplus  bool         // the task is surplus: the job keeps its minimum without it
	Tier     cluster.Tier // the tier of its queue
	Priority int32        // the priority of the job
	Started  int64        // when its task started, in nanoseconds since 1970
	Tasks    int          // how many tasks would have been evicted together
	Freed    int64        // what these tasks hold, in thousandths of devices
	// VictimCost is the sum of the VictimCosts of these tasks.
	VictimCost int64
	// Tried says whether a plan of this victim alone was tried, Enough whether it works, and
	// Beyond how much room it frees that is not needed, in thousandths of devices.
	Tried, Enough bool
	Beyond        int64
}

// Protection is the jobs that one plugin protected for one reason.
type Protection struct {
	Protector
	Count int      // how many jobs were protected
	Jobs  []string // the IDs of at most ten of them
}

// ProtectedVictims are the jobs that were protected while a plan for one purpose was searched
// for and not found.
type ProtectedVictims struct {
	Purpose    Purpose
	Barred     bool // no victim may be evicted for this job at all
	Protection []Protection
}

// addProtected adds to the refusal which jobs were protected while room was searched for.
func (r *Refusal) addProtected(p Purpose, barred bool, protections []Protection) {
	for i := range protections { // jobs are in the order in which the search met them
		slices.Sort(protections[i].Jobs)
	}
	if r.Protected == nil {
		r.Protected = make([]ProtectedVictims, 0, purposes)
	}
	r.Protected = append(r.Protected, ProtectedVictims{p, barred, protections})
}

// protect adds a job to the list. The caller makes sure that each job is added only once for the
// same reason.
func protect(list []Protection, s *Protector, job string) []Protection {
	i := slices.IndexFunc(list, func(p Protection) bool { return p.Protector == *s })
	if i < 0 {
		i = len(list)
		list = append(list, Protection{Protector: *s})
	}
	p := &list[i]
	if p.Count++; len(p.Jobs) < maxNamed {
		p.Jobs = append(p.Jobs, job)
	}
	return list
}

// reportedCost converts the cost of the plan for explanations.
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

// planSearch sums up how the plan was found. It is called before any victim is evicted.
func (r *room) planSearch(plan []*Victim) *PlanSearch {
	w := r.newPlanSearch(plan)
	r.describe(w, plan)
	return w
}

// newPlanSearch returns what must be known before any victim of the plan is evicted: what the job
// lacks and the standings of the queues.
func (r *room) newPlanSearch(plan []*Victim) *PlanSearch {
	w := &PlanSearch{}
	queues := append(make([]string, 0, 4), r.want.job.Queue) // often enough
	for _, v := range plan {
		if !slices.Contains(queues, v.Job.Queue) {
			queues = append(queues, v.Job.Queue)
		}
	}
	own := r.view.Queue(r.want.job.Queue)
	for _, q := range queues {
		list := r.placer.explainer.standings(q)
		if w.Standings == nil && len(list) > 0 {
			w.Standings = make([]Standing, 0, len(queues)*len(list))
		}
		for _, s := range list {
			if !slices.Contains(w.Standings, s) {
				w.Standings = append(w.Standings, s)
			}
			if w.Asks.Of(s.Resource) > 0 {
				continue
			}
			if ask := r.accounts.chargeOf(own, r.want.lacks, s.Resource); ask > 0 {
				w.Asks = w.Asks.With(s.Resource, ask)
			}
		}
	}
	return w
}

// describe adds the rest, which is known once the plan has been tried. If the session explains, no
// victim of the plan may be evicted yet.
func (r *room) describe(w *PlanSearch, plan []*Victim) {
	w.Purpose, w.Looks, w.Tries, w.Cost, w.Options = purposeOf(plan), r.looks, r.trial.tries, reportedCost(r.view, plan, r.cost), r.weighed
	stays := map[string]bool{} // by the ID of a task that an option names: the plan does not evict or move it
	for i := range w.Options {
		for _, id := range w.Options[i].Victims {
			stays[id] = true
		}
	}
	for _, v := range plan {
		for _, t := range v.Tasks {
			delete(stays, t.ID)
		}
	}
	for i := range w.Options { // the plan may have been found by another search than the options
		o := &w.Options[i]
		o.Chosen = o.Chosen && !slices.ContainsFunc(o.Victims, func(id string) bool { return stays[id] })
	}
	if r.placer.explainer.all {
		w.Rivals = r.possibleVictims(w.Purpose)
	}
	if len(r.evictor.protections[w.Purpose]) == 0 {
		return
	}
	could := map[string]bool{}
	for _, v := range plan {
		could[v.Job.ID] = true
	}
	for i := range w.Rivals {
		could[w.Rivals[i].Job] = true
	}
	w.Protected = r.evictor.protectedExcept(w.Purpose, could)
}

// purposeOf returns the purpose of the first victim that is evicted; Move if all victims move.
func purposeOf(plan []*Victim) Purpose {
	for _, v := range plan {
		if v.Purpose != Move {
			return v.Purpose
		}
	}
	return Move
}

// protectedExcept returns the jobs that were protected, except those that could be victims: they
// were protected only after other victims had been evicted.
func (l *evictor) protectedExcept(purpose Purpose, could map[string]bool) []Protection {
	var out []Protection
	for _, p := range l.protections[purpose] {
		p.Jobs = slices.DeleteFunc(slices.Clone(p.Jobs), func(id string) bool { return could[id] })
		p.Count = 0
		for key := range l.counted {
			if key.purpose == purpose && key.Protector == p.Protector && !could[key.job.ID] {
				p.Count++
			}
		}
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}

// possibleVictims returns the jobs that could be victims for the purpose. It tries plans of a
// single victim for the first of them.
func (r *room) possibleVictims(purpose Purpose) []Rival {
	evictor, trial := *r.evictor, *r.trial // copies, so that explanations do not change what the search noted
	evictor.protections, evictor.counted = [purposes][]Protection{}, nil
	trial.evictor = &evictor
	var out []Rival
	seen := map[*cluster.Job]bool{}
	alone := 0
	for _, c := range r.evictor.victims.rivals(r.want.job, maxOneByOne, nil) {
		v := VictimOf(c.task)
		if purpose == Move {
			v = mover(c.task)
		}
		if seen[v.Job] || !evictor.allows(v, Reclaim) {
			continue
		}
		seen[v.Job] = true
		rival := Rival{Job: v.Job.ID, Surplus: c.surplus, Tier: tierOf(r.view, v.Job.Queue), Priority: v.Job.Priority, Started: c.task.Started, Tasks: len(v.Tasks), Freed: freed(v.Tasks), VictimCost: r.evictor.victims.costOfTasks(v.Tasks)}
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
