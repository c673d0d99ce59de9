package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// Subgroup is a group of tasks of one job with a minimum or a topology of its own, such
// as a leader and at least half of its workers. A subgroup may contain other subgroups.
// Subgroups are identified by their index in Alternative.Subgroups, counted from 1; 0
// means the job as a whole.
type Subgroup struct {
	Name string `json:"name,omitempty"`
	Min  int    `json:"min,omitempty"` // how many of its own tasks must be placed before any task starts
	// Parent is the subgroup that contains it, counted from 1. It must be listed before
	// this one. 0 means that no subgroup contains it.
	Parent int `json:"parent,omitempty"`
	// MinSubgroups is how many of the subgroups that it contains must have their
	// minimum; 0 means all.
	MinSubgroups int `json:"minSubgroups,omitempty"`
	// Topology applies to its tasks and to those of all subgroups that it contains.
	Topology Topology `json:"topology,omitzero"`
}

// maxNested is the largest number of subgroups of a job if Nested is true. The cost of
// checking minima grows faster than their number then.
const maxNested = 1000

// Nested reports whether a subgroup contains others, or whether fewer subgroups than all
// are needed for the minimum.
func (a *Alternative) Nested() bool {
	return a.MinSubgroups > 0 || slices.ContainsFunc(a.Subgroups, func(g Subgroup) bool { return g.Parent > 0 || g.MinSubgroups > 0 })
}

// Needed returns how many of the subgroups directly in sub must have their minimum. For
// sub 0 it is how many of the subgroups that no other contains.
func (a *Alternative) Needed(sub int) int {
	least := a.MinSubgroups
	if sub > 0 {
		least = a.Subgroups[sub-1].MinSubgroups
	}
	if least > 0 {
		return least
	}
	for i := range a.Subgroups {
		if a.Subgroups[i].Parent == sub {
			least++
		}
	}
	return least
}

// In reports whether sub is the subgroup outer or is contained in it, directly or not.
// Every subgroup is in 0.
func (a *Alternative) In(sub, outer int) bool {
	for sub > outer {
		sub = a.Subgroups[sub-1].Parent
	}
	return sub == outer
}

// SubgroupsMet reports for each subgroup whether it has its minimum, of its own tasks and
// of the subgroups that it contains. members is the number of placed tasks of each
// subgroup.
func (a *Alternative) SubgroupsMet(members []int) []bool {
	met, inside := make([]bool, len(members)), make([]int, len(members)+1)
	for i := len(members) - 1; i >= 0; i-- {
		g := &a.Subgroups[i]
		if met[i] = members[i] >= g.Min && inside[i+1] >= a.Needed(i+1); met[i] {
			inside[g.Parent]++
		}
	}
	return met
}

// MinimumMet reports whether as many subgroups have their minimum as the job needs.
// members is the number of placed tasks of each subgroup.
func (a *Alternative) MinimumMet(members []int) bool {
	if !a.Nested() {
		for i := range members {
			if members[i] < a.Subgroups[i].Min {
				return false
			}
		}
		return true
	}
	have := 0
	for i, met := range a.SubgroupsMet(members) {
		if met && a.Subgroups[i].Parent == 0 {
			have++
		}
	}
	return have >= a.Needed(0)
}

// LeastSum returns the least sum over the subgroups that the job needs. own returns the
// value of one subgroup without the subgroups that it contains. If not all subgroups are
// needed, those with the smallest sums count.
func (a *Alternative) LeastSum(own func(sub int) int) int {
	inside := make([][]int, len(a.Subgroups)+1)
	for i := len(a.Subgroups); i > 0; i-- {
		parent := a.Subgroups[i-1].Parent
		inside[parent] = append(inside[parent], own(i)+sumOfSmallest(inside[i], a.Needed(i)))
	}
	return sumOfSmallest(inside[0], a.Needed(0))
}

// sumOfSmallest returns the sum of the count smallest numbers. It sorts numbers.
func sumOfSmallest(numbers []int, count int) int {
	slices.Sort(numbers)
	sum := 0
	for _, n := range numbers[:min(len(numbers), count)] {
		sum += n
	}
	return sum
}

// checkSubgroups reports an error if a subgroup has fewer tasks than its minimum, or if
// the needed subgroups may have fewer tasks than the minimum of the job.
func (a *Alternative) checkSubgroups() error {
	if len(a.Subgroups) == 0 {
		return nil
	}
	members := make([]int, len(a.Subgroups)+1)
	for _, t := range a.Tasks {
		members[t.Subgroup]++
	}
	for i, g := range a.Subgroups {
		if g.Min < 0 || g.Min > members[i+1] {
			return fmt.Errorf("subgroup %s: the minimum is %d, and it has %d tasks", g.Name, g.Min, members[i+1])
		}
	}
	if fewest := members[0] + a.LeastSum(func(sub int) int { return members[sub] }); a.Min > fewest {
		return fmt.Errorf("the minimum is %d, and the subgroups that are needed may have only %d tasks", a.Min, fewest)
	}
	return nil
}

// checkParents reports an error if a subgroup is listed before the one that contains it,
// or if a minimum of subgroups is higher than their number.
func (a *Alternative) checkParents() error {
	if len(a.Subgroups) > maxNested && a.Nested() {
		return fmt.Errorf("there are %d subgroups; at most %d are allowed if subgroups contain others or not all are needed", len(a.Subgroups), maxNested)
	}
	inside := make([]int, len(a.Subgroups)+1)
	for i, g := range a.Subgroups {
		if g.Parent < 0 || g.Parent > i {
			return fmt.Errorf("subgroup %s has a parent that is not listed before it", g.Name)
		}
		inside[g.Parent]++
	}
	err := checkNeeded("it", a.MinSubgroups, inside[0])
	for i, g := range a.Subgroups {
		err = cmp.Or(err, checkNeeded("subgroup "+g.Name, g.MinSubgroups, inside[i+1]))
	}
	return err
}

func checkNeeded(what string, least, inside int) error {
	if least < 0 || least > inside {
		return fmt.Errorf("%s needs %d subgroups, and has %d", what, least, inside)
	}
	return nil
}

// SurplusSubgroup finds the smallest subgroup with the task that can be evicted as a whole
// while the job, and every subgroup that contains it, keeps its minimum. It returns the
// running tasks of that subgroup, or nil if there is no such subgroup.
func (j *Job) SurplusSubgroup(t *Task) []*Task {
	if j.Chosen < 0 || t.Subgroup == 0 || t.Subgroup > len(j.Alternatives[j.Chosen].Subgroups) || !j.Alternatives[j.Chosen].Nested() {
		return nil
	}
	a := &j.Alternatives[j.Chosen]
	for sub := t.Subgroup; sub > 0; sub = a.Subgroups[sub-1].Parent {
		inside := func(o *Task) bool { return o.Subgroup > 0 && a.In(o.Subgroup, sub) }
		if !a.Enough(func(o *Task) bool { return o.Runs() && !inside(o) }) || !a.keeps(a.Subgroups[sub-1].Parent, inside) {
			continue
		}
		var out []*Task
		for _, o := range a.Tasks {
			if o.Runs() && inside(o) {
				out = append(out, o)
			}
		}
		return out
	}
	return nil
}

// keeps reports whether sub and the subgroups that contain it keep their minimum if the
// tasks leave for which leaves is true. If the subgroups are not nested it returns true:
// the check of the job's minimum covers them.
func (a *Alternative) keeps(sub int, leaves func(*Task) bool) bool {
	if sub == 0 || !a.Nested() {
		return true
	}
	before := a.SubgroupsMet(a.members((*Task).Runs))
	after := a.SubgroupsMet(a.members(func(t *Task) bool { return t.Runs() && !leaves(t) }))
	for ; sub > 0; sub = a.Subgroups[sub-1].Parent {
		if before[sub-1] && !after[sub-1] {
			return false
		}
	}
	return true
}

// members returns the number of tasks of each subgroup that count for the minimum, by the
// same rule as Enough.
func (a *Alternative) members(counts func(*Task) bool) []int {
	out := make([]int, len(a.Subgroups))
	for _, t := range a.Tasks {
		if t.Subgroup > 0 && t.Subgroup <= len(out) && a.counts(t, counts) {
			out[t.Subgroup-1]++
		}
	}
	return out
}

// counts reports whether the task counts for the minimum. A task that succeeded always
// counts, and a task that failed never does.
func (a *Alternative) counts(t *Task, counts func(*Task) bool) bool {
	switch {
	case t.Status < Succeeded && !t.notRequested: // almost all tasks
		return counts(t)
	case t.Status == Failed || t.notRequested && !a.Running: // a task that is not requested any more does not count
		return false
	}
	return t.Status == Succeeded || counts(t)
}
