package engine

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// few are the tasks that might leave, where they and the nodes are so few that all
// plans can be compared. If they are too many, those are left out that may not leave
// even once others have, and those whose job has no task on a node that is asked
// for: they seldom help.
func (r *room) few() []rival {
	if !r.small() {
		return nil
	}
	line := r.line(maxUnsure, false)
	if line == nil {
		line = r.rivals(r.job, maxUnsure, func(t *cluster.Task) bool { return r.matters(t.Job) && r.leavable(t) })
	}
	if len(line) == 0 {
		return nil
	}
	for i := range line {
		c := &line[i]
		c.evicts = r.way&evicting != 0 && (r.allows(VictimOf(c.task), Reclaim) || r.mightLeave(c.task)) // what objects now is told
		c.moves = r.way&moving != 0 && r.mightMove(c.task)
	}
	return line
}

// small reports whether the cluster is so small that all plans can be compared.
func (r *room) small() bool { return len(r.State.Nodes()) <= maxSmall }

// matters reports whether the job has a task where one that is lacking might be
// placed. Where the limit of a queue is in the way, every job matters.
func (r *room) matters(j *cluster.Job) bool {
	if r.bounded {
		return true
	}
	for _, t := range j.Tasks() {
		if t.Runs() && r.host(t.Node) {
			return true
		}
	}
	return false
}

// host reports whether some task that is lacking might be placed on the node.
func (r *room) host(n *cluster.Node) bool {
	if r.hosts == nil {
		r.hosts = map[*cluster.Node]bool{}
		var shapes []*cluster.Shape
		for _, t := range r.lacks {
			if slices.Contains(shapes, t.Shape) {
				continue
			}
			shapes = append(shapes, t.Shape)
			ask := r.verdicts(t)
			for _, n := range r.State.Nodes() {
				if rejected, transient := ask(n); !rejected || transient {
					r.hosts[n] = true
				}
			}
		}
	}
	return r.hosts[n]
}

// enough reports whether what is free and what the tasks give back is as much as
// is lacking of devices, whatever their names: sums first, search last.
func (r *room) enough(evicted []*cluster.Task) bool {
	return r.free()+freed(evicted) >= r.devicesLacking(r.lacks)
}

// set is some of the rivals, and what they cost at least.
type set struct {
	mask uint32
	cost cost
}

func (s set) of(all []rival) []*cluster.Task {
	var out []*cluster.Task
	for m := s.mask; m != 0; m &= m - 1 {
		out = append(out, all[bits.TrailingZeros32(m)].task)
	}
	return out
}

// sets are all sets of rivals that might leave for the purpose, the cheapest first.
func (r *room) sets(all []rival, p Purpose) []set {
	var out []set
	may := uint32(0)
	for i := range all {
		if p == Move && all[i].moves || p != Move && all[i].evicts {
			may |= 1 << i
		}
	}
	whole := wholeJobs(all)
	lacks := r.devicesLacking(r.lacks)
	near := r.near(all)
	for mask := uint32(1); mask < 1<<len(all); mask++ {
		if mask&^may != 0 || r.way == moving && mask&near == 0 {
			continue
		}
		s := set{mask, noCost()}
		for m := mask; m != 0; m &= m - 1 {
			s.cost.add(r.State, all[bits.TrailingZeros32(m)].task, p)
		}
		for _, job := range whole {
			if mask&job == job {
				s.cost.addJob(p)
			}
		}
		if p != Move {
			s.cost.beyond = max(0, freed(s.of(all))-lacks)
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b set) int { return a.cost.compare(&b.cost) })
	return out
}

// near is the mask of the rivals on nodes where a task that is lacking might be placed.
func (r *room) near(all []rival) uint32 {
	mask := uint32(0)
	for i := range all {
		if r.host(all[i].task.Node) {
			mask |= 1 << i
		}
	}
	return mask
}

// cheapest tries plans from the cheapest up and returns the best that works, which is
// the one that is known already if none costs less.
func (r *room) cheapest(all []rival, known []*Victim, spent cost) ([]*Victim, cost) {
	p := Reclaim
	if r.way == moving {
		p = Move
	}
	var movers []set
	if r.way == evicting|moving {
		if r.plan != nil && (known == nil || r.cost.compare(&spent) < 0) {
			known, spent = r.plan, r.cost
		}
		movers = r.sets(all, Move)
	}
	for _, s := range r.sets(all, p) {
		if known != nil && s.cost.compare(&spent) >= 0 || r.over() {
			break
		}
		tasks := s.of(all)
		if p != Move && !r.enough(tasks) {
			continue
		}
		plan := r.order(tasks, p)
		if plan == nil {
			continue
		}
		var c cost
		if r.way == evicting|moving {
			plan, c = r.withMovers(plan, s, movers, all)
		} else {
			plan, c = r.tried(plan)
		}
		if plan != nil && (known == nil || c.compare(&spent) < 0) {
			known, spent = plan, c
		}
	}
	return known, spent
}

// withMovers adds tasks that move, with which the plan works: as few as possible, and of
// equally many those with which least is freed beyond what is needed. It returns nil where
// there are none, or where the plan works as it is: nothing moves then.
func (r *room) withMovers(plan []*Victim, evicts set, sets []set, all []rival) ([]*Victim, cost) {
	if !r.wouldFit(plan, all) || r.works(plan) {
		return nil, cost{}
	}
	var best []*Victim
	var least cost
	for _, s := range sets {
		if s.mask&evicts.mask != 0 {
			continue
		}
		if r.over() || best != nil && (s.cost.moved.tasks > least.moved.tasks || least.beyond <= evicts.cost.beyond) {
			break
		}
		with := slices.Clone(plan)
		for _, t := range s.of(all) {
			with = append(with, mover(t))
		}
		if found, c := r.tried(with); found != nil && (best == nil || c.compare(&least) < 0) {
			best, least = found, c
		}
	}
	return best, least
}

// wouldFit reports whether the job is placed if the plan is carried out and all that
// may move is gone, also what may not move together.
func (r *room) wouldFit(plan []*Victim, all []rival) bool {
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
	for _, v := range plan {
		if !r.leave(v) {
			return false
		}
	}
	for i := range all {
		if c := &all[i]; c.moves && c.task.Runs() {
			if err := r.stmt.evictFor(r.job, mover(c.task), r.reasons[Move]); err != nil {
				r.fail("engine", "making room: %v", err)
				return false
			}
		}
	}
	r.tries++
	left := r.place()
	return left == nil || left.Surplus
}

// order makes victims of the tasks so that each may leave once those before it have;
// nil where they may not leave, or not without others.
func (r *room) order(leaving []*cluster.Task, p Purpose) []*Victim {
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
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
			if r.leave(v) {
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

// wholeJobs are the masks of those tasks that are all that runs of their job.
func wholeJobs(all []rival) []uint32 {
	masks, bound := map[*cluster.Job]uint32{}, map[*cluster.Job]int{}
	for i := range all {
		masks[all[i].task.Job] |= 1 << i
	}
	var out []uint32
	for j, mask := range masks {
		for _, t := range j.Tasks() {
			if t.Runs() {
				bound[j]++
			}
		}
		if bits.OnesCount32(mask) == bound[j] {
			out = append(out, mask)
		}
	}
	return out
}
