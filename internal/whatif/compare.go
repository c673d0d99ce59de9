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

// Compare says how two simulations differ, task by task.
func Compare(ph explain.Phrases, before, after *sim.Simulation) *wire.Difference {
	return compare(ph, endingOf(before), endingOf(after))
}

// WhatIf simulates twice on the same State, without the change and with it, and says how
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
func simulateWith(e *engine.Engine, state *cluster.State, o sim.Options, change func(*cluster.State) error) (*ending, error) {
	defer undoing(state)()
	if err := change(state); err != nil {
		return nil, err
	}
	simulation, err := sim.Simulate(e, state, o)
	if err != nil {
		return nil, err
	}
	return endingOf(simulation), nil
}

func compare(ph explain.Phrases, before, after *ending) *wire.Difference {
	d := &wire.Difference{
		Placed: []wire.Move{}, Moved: []wire.Move{}, Pending: []wire.Move{}, Gone: []wire.Move{},
		Evicted: leaving(after.simulation, before.simulation), Kept: leaving(before.simulation, after.simulation), Before: before.totals, After: after.totals,
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
		case !is && !after.wants[m.Workload]:
			d.Gone = append(d.Gone, m)
		case !is: // its job takes another form
			continue
		case a.node == b.node && (was || before.nowhere[m.Workload]): // pending before and after, maybe in another form
			continue
		case a.node == "" && b.node != "":
			d.Placed = append(d.Placed, m)
		case b.node != "":
			d.Moved = append(d.Moved, m)
		default: // it was on a node before, or is new
			if r := after.simulation.RefusalOf(m.Workload); r != nil {
				m.Message = ph.Message(r)
			}
			d.Pending = append(d.Pending, m)
		}
	}
	return d
}

// leaving are the tasks that one simulation evicts and the other does not.
func leaving(simulation, other *sim.Simulation) []wire.Going {
	known := map[string]bool{}
	for i := range other.Decisions {
		if d := &other.Decisions[i]; d.Action == engine.EvictTask {
			known[d.Task.ID()] = true
		}
	}
	out := []wire.Going{}
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		if d.Action == engine.EvictTask && !known[d.Task.ID()] {
			known[d.Task.ID()] = true // it may be evicted twice
			out = append(out, wire.Going{Workload: d.Task.Job, Task: d.Task.Name, From: d.Node, For: d.For, Reason: string(d.Reason), Landing: d.Landing})
		}
	}
	return out
}

// ending has the tasks at the end of a simulation, as values: the State itself is undone
// before the second simulation runs on it.
type ending struct {
	simulation *sim.Simulation
	tasks      map[string]taskPlace
	nowhere    map[string]bool // jobs of which no task is on a node
	wants      map[string]bool // jobs that are not retired
	totals     wire.Totals
}

type taskPlace struct{ job, task, node string }

func endingOf(s *sim.Simulation) *ending {
	e := &ending{simulation: s, tasks: map[string]taskPlace{}, nowhere: map[string]bool{}, wants: map[string]bool{}}
	for _, j := range s.State.Jobs() {
		e.nowhere[j.ID], e.wants[j.ID] = j.Placed() == 0, !j.Retired
		for _, t := range j.Tasks() {
			at := taskPlace{job: j.ID, task: t.Name}
			switch {
			case t.Node != nil:
				at.node = t.Node.Name
				e.totals.Placed++
			case j.Retired: // its job is not desired any more
				continue
			default:
				e.totals.Pending++
			}
			e.tasks[t.ID] = at
		}
	}
	return e
}
