package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// Subgroup is tasks of a job of which some must be placed with the minimum: a
// leader, and at least half of its workers. Subgroups may be in others.
type Subgroup struct {
	Name string `json:"name,omitempty"`
	Min  int    `json:"min,omitempty"` // of its own tasks
	// Parent is the subgroup that it is in, by its place among the alternative's,
	// counted from 1; it comes before. 0: it is in none.
	Parent int `json:"parent,omitempty"`
	// MinSubgroups is how many of the subgroups in it must have their minimum; 0: all.
	MinSubgroups int `json:"minSubgroups,omitempty"`
	// Topology holds for its tasks and for those of all subgroups in it.
	Topology Topology `json:"topology,omitzero"`
}

// maxNested bounds how many subgroups are looked at with those around them.
const maxNested = 1000

// Nested reports whether subgroups are in others, or some of them are surplus.
func (a *Alternative) Nested() bool {
	return a.MinSubgroups > 0 || slices.ContainsFunc(a.Subgroups, func(g Subgroup) bool { return g.Parent > 0 || g.MinSubgroups > 0 })
}

// Needed is how many of the subgroups in the subgroup must have their minimum; those
// that are in none for 0.
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

// In reports whether the subgroup is the outer one, or in it; all are in 0.
func (a *Alternative) In(sub, outer int) bool {
	for sub > outer {
		sub = a.Subgroups[sub-1].Parent
	}
	return sub == outer
}

// Standing says which subgroups have their minimum: of their own tasks, which members
// counts, and of the subgroups in them.
func (a *Alternative) Standing(members []int) []bool {
	stands, inside := make([]bool, len(members)), make([]int, len(members)+1)
	for i := len(members) - 1; i >= 0; i-- {
		g := &a.Subgroups[i]
		if stands[i] = members[i] >= g.Min && inside[i+1] >= a.Needed(i+1); stands[i] {
			inside[g.Parent]++
		}
	}
	return stands
}

// Met reports whether as many subgroups have their minimum as the job needs, by how
// many of its own tasks each has.
func (a *Alternative) Met(members []int) bool {
	if !a.Nested() {
		for i := range members {
			if members[i] < a.Subgroups[i].Min {
				return false
			}
		}
		return true
	}
	have := 0
	for i, stands := range a.Standing(members) {
		if stands && a.Subgroups[i].Parent == 0 {
			have++
		}
	}
	return have >= a.Needed(0)
}

// Least adds up what the job's subgroups need at least, by what each needs of itself:
// of those in one, as many as are needed, and those that need least.
func (a *Alternative) Least(own func(sub int) int) int {
	inside := make([][]int, len(a.Subgroups)+1)
	for i := len(a.Subgroups); i > 0; i-- {
		parent := a.Subgroups[i-1].Parent
		inside[parent] = append(inside[parent], own(i)+sumOfSmallest(inside[i], a.Needed(i)))
	}
	return sumOfSmallest(inside[0], a.Needed(0))
}

// sumOfLeast adds up so many of the numbers, the least ones.
func sumOfSmallest(numbers []int, count int) int {
	slices.Sort(numbers)
	sum := 0
	for _, n := range numbers[:min(len(numbers), count)] {
		sum += n
	}
	return sum
}

// checkSubgroups makes sure that every subgroup can have its minimum, and that the
// job's can be made by as many subgroups as are needed.
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
			return fmt.Errorf("subgroup %s: a minimum of %d for %d tasks", g.Name, g.Min, members[i+1])
		}
	}
	if fewest := members[0] + a.Least(func(sub int) int { return members[sub] }); a.Min > fewest {
		return fmt.Errorf("a minimum of %d, and as many subgroups as are needed have only %d tasks", a.Min, fewest)
	}
	return nil
}

// checkParents makes sure that subgroups are in others that come before them, and
// that none needs more subgroups than are in it.
func (a *Alternative) checkParents() error {
	if len(a.Subgroups) > maxNested && a.Nested() {
		return fmt.Errorf("%d subgroups; where some are in others, or surplus, there are %d at most", len(a.Subgroups), maxNested)
	}
	inside := make([]int, len(a.Subgroups)+1)
	for i, g := range a.Subgroups {
		if g.Parent < 0 || g.Parent > i {
			return fmt.Errorf("subgroup %s is in one that does not come before it", g.Name)
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
		return fmt.Errorf("%s needs %d subgroups of %d", what, least, inside)
	}
	return nil
}

// SparesSubgroup are the tasks that run in the smallest subgroup around the task that
// the job can spare as a whole: the job keeps its minimum without it, and so does
// every subgroup around it. Nil where there is none.
func (j *Job) SparesSubgroup(t *Task) []*Task {
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

// keeps reports whether no subgroup, from sub upwards, loses its minimum with the
// tasks that leave. Where all are needed, the job's minimum says as much.
func (a *Alternative) keeps(sub int, leaves func(*Task) bool) bool {
	if sub == 0 || !a.Nested() {
		return true
	}
	before := a.Standing(a.members((*Task).Runs))
	after := a.Standing(a.members(func(t *Task) bool { return t.Runs() && !leaves(t) }))
	for ; sub > 0; sub = a.Subgroups[sub-1].Parent {
		if before[sub-1] && !after[sub-1] {
			return false
		}
	}
	return true
}

// members counts the tasks of each subgroup that count, as Enough does.
func (a *Alternative) members(counts func(*Task) bool) []int {
	out := make([]int, len(a.Subgroups))
	for _, t := range a.Tasks {
		if t.Subgroup > 0 && t.Subgroup <= len(out) && a.counts(t, counts) {
			out[t.Subgroup-1]++
		}
	}
	return out
}

// counts reports whether the task counts for the minimum.
func (a *Alternative) counts(t *Task, counts func(*Task) bool) bool {
	switch {
	case t.Status < Succeeded && !t.extra: // as almost all
		return counts(t)
	case t.Status == Failed || t.extra && !a.Running: // what is not requested any more makes no minimum
		return false
	}
	return t.Status == Succeeded || counts(t)
}
