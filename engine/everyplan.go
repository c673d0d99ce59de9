package engine

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// everyPlan compares all possible plans, if the cluster is small enough for that.
type everyPlan struct {
	planning
	ways *evictionWays
}

// few returns the possible victims, if they are so few that all plans can be compared, and nil
// otherwise. The cluster must be small. If there are too many, it leaves out the tasks that may not
// be evicted even after others, and the tasks of jobs that have no task on a node that the
// waiting job could use, because evicting these seldom helps.
func (a *everyPlan) few() []rival {
	line := a.evictor.victims.rivals(a.want.job, maxUnsure, nil)
	if line == nil {
		line = a.evictor.victims.rivals(a.want.job, maxUnsure, func(t *cluster.Task) bool { return a.isRelevant(t.Job) && a.ways.isRemovable(t) })
	}
	if len(line) == 0 {
		return nil
	}
	for i := range line {
		c := &line[i]
		c.evicts = a.ways.way&evicting != 0 && (a.evictor.allows(VictimOf(c.task), Reclaim) || a.evictor.taskMightBeEvicted(c.task)) // allows is called first because it records which plugin protects the victim now
		c.moves = a.ways.way&moving != 0 && a.evictor.mightMove(c.task)
	}
	return line
}

// small reports whether the cluster has so few nodes that all plans can be compared.
func small(s cluster.View) bool { return len(s.Nodes()) <= maxSmall }

// isRelevant reports whether the job has a task on a node on which one of the lacking tasks
// might be placed. If the limit of a queue prevents the placement, every job is relevant.
func (a *everyPlan) isRelevant(j *cluster.Job) bool {
	return a.want.bounded || slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Runs() && a.hosts.has(t.Node) })
}

// hosts is the set of nodes on which one of the lacking tasks might be placed, now or after
// waiting or evictions.
type hosts struct {
	want   *want
	finder *finder
	nodes  map[*cluster.Node]bool // nil before the first call of has
}

func (h *hosts) has(n *cluster.Node) bool {
	if h.nodes == nil {
		h.nodes = map[*cluster.Node]bool{}
		for _, t := range oneOfEachShape(h.want.lacks) {
			ask := h.finder.verdicts(t)
			for _, n := range h.finder.view.Nodes() {
				if rejected, transient := ask(n); !rejected || transient {
					h.nodes[n] = true
				}
			}
		}
	}
	return h.nodes[n]
}

// rivalSet is a subset of the rivals, with a lower bound of what evicting them costs.
type rivalSet struct {
	mask uint32
	cost cost
}

func (s rivalSet) tasks(all []rival) []*cluster.Task {
	var out []*cluster.Task
	for m := s.mask; m != 0; m &= m - 1 {
		out = append(out, all[bits.TrailingZeros32(m)].task)
	}
	return out
}

// rivalSets returns all subsets of the rivals that might be evicted for the purpose, the
// cheapest first. If they do not move, it leaves out those that are too few: the room that is free
// and the room of the victims must together be at least as much as the job lacks of devices.
func (a *everyPlan) rivalSets(all []rival, p Purpose) []*rivalSet {
	may := uint32(0)
	for i := range all {
		if p == Move && all[i].moves || p != Move && all[i].evicts {
			may |= 1 << i
		}
	}
	whole := wholeJobMasks(all)
	lacks, free := a.accounts.devicesLacking(a.want.lacks), int64(0)
	if p != Move {
		free = a.accounts.free()
	}
	out := make([]rivalSet, 0, 1<<bits.OnesCount32(may))
	near, room := a.nearMask(all), make([]int64, len(all))
	for i := range all {
		room[i] = freed([]*cluster.Task{all[i].task})
	}
	for mask := uint32(1); mask < 1<<len(all); mask++ {
		if mask&^may != 0 || a.ways.way == moving && mask&near == 0 {
			continue
		}
		sum := int64(0)
		for m := mask; m != 0; m &= m - 1 {
			sum += room[bits.TrailingZeros32(m)]
		}
		if p != Move && free+sum < lacks {
			continue
		}
		s := rivalSet{mask, noCost()}
		for m := mask; m != 0; m &= m - 1 {
			a.evictor.victims.add(&s.cost, all[bits.TrailingZeros32(m)].task, p)
		}
		for _, job := range whole {
			if mask&job == job {
				s.cost.addJob(p)
			}
		}
		if p != Move {
			s.cost.beyond = max(0, sum-lacks)
		}
		out = append(out, s)
	}
	sorted := make([]*rivalSet, len(out))
	for i := range out {
		sorted[i] = &out[i]
	}
	slices.SortStableFunc(sorted, func(a, b *rivalSet) int { return a.cost.compare(&b.cost) })
	return sorted
}

// nearMask returns the mask of the rivals on nodes on which one of the lacking tasks might be
// placed.
func (a *everyPlan) nearMask(all []rival) uint32 {
	mask := uint32(0)
	for i := range all {
		if a.hosts.has(all[i].task.Node) {
			mask |= 1 << i
		}
	}
	return mask
}

// cheapest tries plans from the cheapest up and returns the best one that works. If none
// costs less than the plan that is known already, it returns that one.
func (a *everyPlan) cheapest(all []rival, known []*Victim, spent cost, before *room) ([]*Victim, cost) {
	p := Reclaim
	if a.ways.way == moving {
		p = Move
	}
	var movers []*rivalSet // nil until a plan needs them
	if a.ways.way == evicting|moving {
		if before.plan != nil && (known == nil || before.cost.compare(&spent) < 0) {
			known, spent = before.plan, before.cost
		}
	}
	for _, s := range a.rivalSets(all, p) {
		if known != nil && s.cost.compare(&spent) >= 0 || a.trial.over() {
			break
		}
		plan := a.victimsInOrder(s.tasks(all), p)
		if plan == nil {
			continue
		}
		var c cost
		if a.ways.way == evicting|moving {
			if movers == nil {
				movers = a.rivalSets(all, Move)
			}
			plan, c = a.withMovers(plan, s, movers, all)
		} else {
			plan, c = a.trial.tried(plan)
		}
		if plan != nil && (known == nil || c.compare(&spent) < 0) {
			known, spent = plan, c
		}
	}
	return known, spent
}

// withMovers adds moves to a plan of evictions so that it works: as few as possible, and of
// equally many those with which least is freed without need. It returns nil if no moves make
// the plan work, or if it works without moves.
func (a *everyPlan) withMovers(plan []*Victim, evicts *rivalSet, sets []*rivalSet, all []rival) ([]*Victim, cost) {
	if !a.wouldFit(plan, all) || a.trial.works(plan) {
		return nil, cost{}
	}
	var best []*Victim
	var least cost
	for _, s := range sets {
		if s.mask&evicts.mask != 0 {
			continue
		}
		if a.trial.over() || best != nil && (s.cost.moved.tasks > least.moved.tasks || least.beyond <= evicts.cost.beyond) {
			break
		}
		with := slices.Clone(plan)
		for _, t := range s.tasks(all) {
			with = append(with, mover(t))
		}
		if found, c := a.trial.tried(with); found != nil && (best == nil || c.compare(&least) < 0) {
			best, least = found, c
		}
	}
	return best, least
}

// wouldFit reports whether the job could be placed if the plan were carried out and all tasks
// that may move were removed, including tasks that may not move together.
func (a *everyPlan) wouldFit(plan []*Victim, all []rival) bool {
	mark := a.stmt.Checkpoint()
	defer a.stmt.Rollback(mark)
	if !a.evictor.evictInOrder(plan) {
		return false
	}
	for i := range all {
		if c := &all[i]; c.moves && c.task.Runs() {
			if err := a.stmt.evictFor(a.want.job, mover(c.task), a.evictor.reasons[Move]); err != nil {
				a.fault.fail("engine", "making room: %v", err)
				return false
			}
		}
	}
	a.trial.tries++
	left := a.trial.place()
	return left == nil || left.Surplus
}

// victimsInOrder returns the tasks as victims, in an order in which each may be evicted after
// those before it. It returns nil if there is no such order, or if other tasks would have to
// be evicted with them.
func (a *everyPlan) victimsInOrder(leaving []*cluster.Task, p Purpose) []*Victim {
	mark := a.stmt.Checkpoint()
	defer a.stmt.Rollback(mark)
	var plan []*Victim
	for progress := true; progress; {
		progress = false
		for _, t := range leaving {
			if !t.Runs() {
				continue
			}
			v := mover(t)
			if p != Move {
				v = VictimOf(t)
			}
			if slices.ContainsFunc(v.Tasks, func(o *cluster.Task) bool { return !slices.Contains(leaving, o) }) {
				return nil
			}
			if a.evictor.evict(v) {
				plan = append(plan, v)
				progress = true
			}
		}
	}
	if slices.ContainsFunc(leaving, (*cluster.Task).Runs) {
		return nil
	}
	return plan
}

// wholeJobMasks returns one mask for each job of which all running tasks are among the
// rivals.
func wholeJobMasks(all []rival) []uint32 {
	masks := map[*cluster.Job]uint32{}
	for i := range all {
		masks[all[i].task.Job] |= 1 << i
	}
	var out []uint32
	for j, mask := range masks {
		if bits.OnesCount32(mask) == len(wholeJob(j, Reclaim).Tasks) {
			out = append(out, mask)
		}
	}
	return out
}
