package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// shrinker tries to make one amount of the request smaller at a time, and records the largest
// amount that it finds to fit while tries are left.
type shrinker struct {
	workload *workload
	found    *finder
}

func (k *shrinker) shrink() {
	s := k.workload.shape()
	if s.ServesModel() {
		return // the request of a model follows from its settings, which knobTurner changes
	}
	k.found.largestThatFits(k.fewerMembers())
	for i, r := range k.workload.roles() {
		if k.found.lab.objects == nil && k.runs(r.name) {
			continue // the manifest has one request for all tasks of the role, and it is not known what a task that runs would hold
		}
		one := &roleShrinker{k.workload, r, ""}
		if i > 0 {
			one.of = " for " + r.name
		}
		one.shrink(k.found)
	}
}

// runs reports whether a task with the role runs before the simulation.
func (k *shrinker) runs(role string) bool {
	return slices.ContainsFunc(k.found.lab.state.Job(k.workload.id).Tasks(), func(t *cluster.Task) bool { return t.Role == role && t.Node != nil })
}

// costOfGivingUp returns the cost of a change: 20 plus the percentage of the request that is
// given up.
func costOfGivingUp(want, get int64) int {
	return 20 + int(cluster.MulDiv(want-get, 100, max(want, 1)))
}

// fewerMembers lowers the minimum of the job or, if a subgroup is below its minimum, that of
// the subgroup. For a workload that takes whole nodes it lowers the number of replicas
// instead, because all of these must be placed. The results of fewerMembers, and of the
// functions below, are the arguments of largestThatFits.
func (k *shrinker) fewerMembers() (int, func(int) *change) {
	form := k.workload.form()
	if whole := form.Whole; whole != nil {
		per := max(1, whole.NodesPerReplica)
		return whole.Replicas - 1, func(i int) *change {
			return newChange(wire.SmallerRequest, fmt.Sprintf("with %s instead of %d", english.Count(i+1, "replica"), whole.Replicas), costOfGivingUp(int64(whole.Replicas), int64(i+1)), k.workload.editForm(func(form *cluster.Alternative) {
				fewer := *form.Whole
				fewer.Replicas = i + 1
				form.Whole = &fewer
				form.Tasks = form.Tasks[:min(len(form.Tasks), (i+1)*per)]
				form.Min = min(form.Min, len(form.Tasks))
			}))
		}
	}
	if k.workload.refusal.Surplus {
		return 0, nil // the minimum is met already
	}
	// The minimum of the job cannot be less than the minima of its subgroups.
	now, least, subgroup := form.Min, max(1, form.LeastSum(func(sub int) int { return form.Subgroups[sub-1].Min })), ""
	if sub := k.workload.shortSubgroup(); sub >= 0 {
		now, least, subgroup = form.Subgroups[sub].Min, 1, " for "+form.Subgroups[sub].Name
	}
	return max(0, now-least), func(i int) *change {
		n := least + i
		what := "minMember"
		if k.workload.job().Open { // pods name the minimum of their group in many ways
			what = "a minimum of"
		}
		return newChange(wire.SmallerRequest, fmt.Sprintf("with %s %d instead of %d%s", what, n, now, subgroup), costOfGivingUp(int64(now), int64(n)), k.workload.withMin(n))
	}
}

// roleShrinker makes the request of the tasks of one role smaller.
type roleShrinker struct {
	workload *workload
	role     role
	of       string // ends the text of a change; "" for the role of the task that could not be placed
}

func (k *roleShrinker) shrink(found *finder) {
	s := k.role.shape
	if s.Need.Devices > 1 && !s.Need.WholeNode {
		found.largestThatFits(k.fewerDevices())
	}
	if s.Need.Memory > 0 {
		found.largestThatFits(k.lessDeviceMemory())
	}
	if s.Need.Share > 0 {
		found.largestThatFits(k.smallerShare())
	}
	for _, a := range s.Resources {
		if a.Value > 0 && a.Name != explain.PodSlots {
			found.largestThatFits(k.lessOf(a.Name))
		}
	}
}

func (k *roleShrinker) fewerDevices() (int, func(int) *change) {
	want := k.role.shape.Need.Devices
	each := ""
	if k.workload.missing() > 1 {
		each = " per task"
	}
	return want - 1, func(i int) *change {
		return newChange(wire.SmallerRequest, fmt.Sprintf("with %s%s instead of %d%s", english.Count(i+1, "device"), each, want, k.of), costOfGivingUp(int64(want), int64(i+1)), k.workload.editShape(k.role.name, func(s *cluster.Shape) {
			s.Need.Devices = i + 1
		}))
	}
}

func (k *roleShrinker) lessDeviceMemory() (int, func(int) *change) {
	room := k.onDevices(func(d *cluster.Device) int64 { return int64(d.InStep()) })
	spell := func(v int64) string { return quantity.Memory(cluster.Bytes(v)) }
	return k.reduce(int64(k.role.shape.Need.Memory), 1<<20, room, "with %s per device instead of %s", spell, func(s *cluster.Shape, v int64) { s.Need.Memory = cluster.Bytes(v) })
}

func (k *roleShrinker) smallerShare() (int, func(int) *change) {
	room := k.onDevices(func(d *cluster.Device) int64 { return int64(d.FreeMilli()) })
	return k.reduce(int64(k.role.shape.Need.Share), 1, room, "with a share of %s per device instead of %s", quantity.Fraction, func(s *cluster.Shape, v int64) { s.Need.Share = cluster.Milli(v) })
}

// onDevices returns what each device of the cluster has free, as computed by free.
func (k *roleShrinker) onDevices(free func(*cluster.Device) int64) []int64 {
	var room []int64
	for _, n := range k.workload.state.Nodes() {
		for i := range n.Devices {
			room = append(room, free(&n.Devices[i]))
		}
	}
	return room
}

func (k *roleShrinker) lessOf(name string) (int, func(int) *change) {
	var room []int64
	for _, n := range k.workload.state.Nodes() {
		if led := n.Ledger(name); led != nil {
			room = append(room, led.Free())
		}
	}
	spell := func(v int64) string { return quantity.Resource(name, v) }
	unit := int64(1)
	switch name {
	case cluster.Memory:
		unit = 1 << 20
	case cluster.CPU:
		unit = 10
	}
	return k.reduce(k.role.shape.Resources.Of(name), unit, room, "with %s instead of %s", spell, func(s *cluster.Shape, v int64) { s.Resources = s.Resources.With(name, v) })
}

// reduce sets an amount to what some device or node has free or, if several tasks are missing, to
// an equal part of it for up to mostSharers tasks, in multiples of the unit. No other amounts are
// tried. If a single task is missing and nothing is evicted for it, a larger amount would not fit,
// apart from rounding.
func (k *roleShrinker) reduce(want, unit int64, room []int64, text string, spell func(int64) string, set func(*cluster.Shape, int64)) (int, func(int) *change) {
	const mostSharers = 8
	for _, free := range slices.Clone(room) {
		for sharers := 2; sharers <= min(k.workload.missing(), mostSharers); sharers++ {
			room = append(room, free/int64(sharers))
		}
	}
	for i := range room {
		room[i] -= room[i] % unit
	}
	room = valuesBelow(room, want)
	return len(room), func(i int) *change {
		text := fmt.Sprintf(text, spell(room[i]), spell(want)) + k.of
		return newChange(wire.SmallerRequest, text, costOfGivingUp(want, room[i]), k.workload.editShape(k.role.name, func(s *cluster.Shape) { set(s, room[i]) }))
	}
}

// valuesBelow returns the distinct values above 0 and below the bound, in ascending order.
func valuesBelow(values []int64, bound int64) []int64 {
	slices.Sort(values)
	values = slices.Compact(values)
	return slices.DeleteFunc(values, func(v int64) bool { return v <= 0 || v >= bound })
}
