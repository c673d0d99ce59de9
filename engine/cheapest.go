package engine

import (
	"math/bits"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// few are the tasks that might go, where they and the nodes are so few that all
// plans can be compared. If they are too many, those are left out who are spared
// while nobody has gone, and those who are nowhere near: they seldom help.
func (r *room) few() []rival {
	if len(r.State.Nodes()) > maxSmall {
		return nil
	}
	line := r.line(maxUnsure, false)
	if line == nil {
		line = slices.DeleteFunc(r.line(maxInLine, true), func(c rival) bool { return !r.matters(c.task.Job) })
	}
	if len(line) == 0 || len(line) > maxUnsure {
		return nil
	}
	return line
}

// matters reports whether the job has a task where one that is lacking might go;
// whose queue's limit is in the way matters wherever it is.
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

// host reports whether some task that is lacking might go to the node.
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
func (r *room) enough(leaving []*cluster.Task) bool {
	sum := r.free()
	for _, t := range leaving {
		for _, c := range t.Claims {
			sum += int64(c.Milli)
		}
	}
	return sum >= r.devicesLacking(r.lacks)
}

// cheapest tries plans from the cheapest up and returns the first that works, if
// it is cheaper than the one that is known already.
func (r *room) cheapest(all []rival, known []*Victim) []*Victim {
	type option struct {
		mask uint32
		cost cost
	}
	var options []option
	whole := wholeJobs(all)
	limit := costOf(r.State, known, r.purpose)
	for mask := uint32(1); mask < 1<<len(all); mask++ {
		o := option{mask: mask}
		for m := mask; m != 0; m &= m - 1 {
			o.cost.add(r.State, all[bits.TrailingZeros32(m)].task, r.purpose)
		}
		for _, job := range whole {
			if mask&job == job {
				o.cost.jobs++
			}
		}
		if known == nil || o.cost.compare(&limit) < 0 {
			options = append(options, o)
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.cost.compare(&b.cost) })
	for _, o := range options {
		if r.tries >= maxTries || r.err != nil {
			return nil
		}
		var leaving []*cluster.Task
		for m := o.mask; m != 0; m &= m - 1 {
			leaving = append(leaving, all[bits.TrailingZeros32(m)].task)
		}
		if !r.enough(leaving) {
			continue
		}
		if plan := r.order(leaving); plan != nil && r.works(plan) {
			return plan
		}
	}
	return nil
}

// order makes victims of the tasks so that each may go once those before it are
// gone; nil where they cannot go, or not without others.
func (r *room) order(leaving []*cluster.Task) []*Victim {
	mark := r.stmt.Checkpoint()
	defer r.stmt.Rollback(mark)
	var plan []*Victim
	for progress := true; progress; {
		progress = false
		for _, t := range leaving {
			if !t.Runs() {
				continue
			}
			v := VictimOf(t)
			if slices.ContainsFunc(v.Tasks, func(o *cluster.Task) bool { return !slices.Contains(leaving, o) }) {
				return nil
			}
			if r.evict(v) {
				plan = append(plan, v)
				progress = true
			}
		}
	}
	for _, t := range leaving {
		if t.Runs() {
			return nil
		}
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
