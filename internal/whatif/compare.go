package whatif

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Compare returns how two simulations differ, task by task.
func Compare(ph explain.Phrases, before, after *sim.Simulation) *wire.Difference {
	return compare(ph, endOf(before), endOf(after))
}

// WhatIf simulates twice on the same State, without the change and with it, and returns how
// the results differ. It leaves the State as it was.
func WhatIf(e *engine.Engine, state *cluster.State, o sim.Options, change func(*cluster.State) error) (*wire.Difference, error) {
	before, err := simulateWith(e, state, o, func(*cluster.State) error { return nil })
	if err != nil {
		return nil, err
	}
	after, err := simulateWith(e, state, o, change)
	if err != nil {
		return nil, err
	}
	return compare(explain.PhrasesOf(e), before, after), nil
}

// simulateWith returns how a simulation ends after the change, and undoes both.
func simulateWith(e *engine.Engine, state *cluster.State, o sim.Options, change func(*cluster.State) error) (*simulationEnd, error) {
	defer undoAtEnd(state)()
	if err := change(state); err != nil {
		return nil, err
	}
	simulation, err := sim.Simulate(e, state, o)
	if err != nil {
		return nil, err
	}
	return endOf(simulation), nil
}

func compare(ph explain.Phrases, before, after *simulationEnd) *wire.Difference {
	d := &wire.Difference{
		Placed: []wire.Move{}, Moved: []wire.Move{}, Pending: []wire.Move{}, NoLongerRequested: []wire.Move{},
		Evicted: evictedOnlyIn(after.simulation, before.simulation), NoLongerEvicted: evictedOnlyIn(before.simulation, after.simulation), Before: before.totals, After: after.totals,
	}
	ids := slices.Collect(maps.Keys(after.tasks))
	for id := range before.tasks {
		if _, both := after.tasks[id]; !both {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, was := before.tasks[id]
		b, is := after.tasks[id]
		m := wire.Move{Workload: cmp.Or(b.job, a.job), Task: cmp.Or(b.task, a.task), From: a.node, To: b.node}
		switch {
		case !is && !after.requested[m.Workload]:
			d.NoLongerRequested = append(d.NoLongerRequested, m)
		case !is: // the task has ended, or the job takes another alternative, which has other tasks
			continue
		// Nothing changed: the task is on the same node, or it is pending before and after. A
		// task that was not known before counts as pending before if its job existed and had no
		// placed task, because the job may then only try another alternative.
		case a.node == b.node && (was || before.unplaced[m.Workload]):
			continue
		case a.node == "" && b.node != "":
			d.Placed = append(d.Placed, m)
		case b.node != "":
			d.Moved = append(d.Moved, m)
		default: // the task is pending now, and was on a node before or is new
			if r := after.simulation.RefusalOf(m.Workload); r != nil {
				m.Message = ph.Message(r)
			}
			d.Pending = append(d.Pending, m)
		}
	}
	return d
}

// evictedOnlyIn returns the tasks that the first simulation evicts and the other does not. A task
// that the first evicts and the other only moves is among them.
func evictedOnlyIn(simulation, other *sim.Simulation) []wire.EvictedTask {
	known := map[string]bool{} // by the ID of the task; true if it is evicted, and not only moved
	for i := range other.Decisions {
		if d := &other.Decisions[i]; d.Action == engine.EvictTask {
			known[d.Task.ID()] = known[d.Task.ID()] || d.Landing == ""
		}
	}
	out := []wire.EvictedTask{}
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		if d.Action != engine.EvictTask {
			continue
		}
		if evicted, is := known[d.Task.ID()]; !is || !evicted && d.Landing == "" {
			known[d.Task.ID()] = true // a task that is evicted twice is listed once
			out = append(out, wire.EvictedTask{Workload: d.Task.Job, Task: d.Task.Name, From: d.Node, For: d.For, Reason: string(d.Reason), Landing: d.Landing})
		}
	}
	return out
}

// simulationEnd records where the tasks are at the end of a simulation. It holds values and
// not the State, because WhatIf undoes the State before the second simulation.
type simulationEnd struct {
	simulation *sim.Simulation
	tasks      map[string]taskPlace // by ID of the task; those that are placed, releasing or pending
	unplaced   map[string]bool      // the jobs of which no task is on a node
	requested  map[string]bool      // the jobs that are not retired
	totals     wire.Totals
}

// taskPlace is where a task is. The node is "" if the task is pending.
type taskPlace struct{ job, task, node string }

func endOf(s *sim.Simulation) *simulationEnd {
	e := &simulationEnd{simulation: s, tasks: map[string]taskPlace{}, unplaced: map[string]bool{}, requested: map[string]bool{}}
	for _, j := range s.State.Jobs() {
		e.unplaced[j.ID], e.requested[j.ID] = j.Placed() == 0, !j.Retired
		for _, t := range j.Tasks() {
			at := taskPlace{job: j.ID, task: t.Name}
			switch {
			case t.Node != nil:
				at.node = t.Node.Name
				e.totals.Placed++
			case j.Retired, t.Ended(): // a task without a node is not pending if its job is retired or if it has ended
				continue
			default:
				e.totals.Pending++
			}
			e.tasks[t.ID] = at
		}
	}
	return e
}
