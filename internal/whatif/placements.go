package whatif

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// stateBefore is what a report needs of the State before the simulation. To make the decisions
// once more, the State is undone to the mark. A copy of a large cluster would take longer than
// the answer to the question.
type stateBefore struct {
	mark    cluster.Mark
	jobs    []string        // the workload, or the replicas of the set
	hadNode map[string]bool // by the ID of the task: whether it had a node
}

// recordBefore marks the State and records the tasks of the workload. It is called before the
// simulation.
func recordBefore(s *cluster.State, workload string) *stateBefore {
	was := &stateBefore{mark: s.Mark(), hadNode: map[string]bool{}}
	list := s.View().Sets().Jobs(workload)
	if j := s.Job(workload); j != nil {
		list = []*cluster.Job{j}
	}
	for _, j := range list {
		was.jobs = append(was.jobs, j.ID)
		for _, t := range j.Tasks() {
			was.hadNode[t.ID] = t.Node != nil
		}
	}
	return was
}

// addPlacements adds to the report on which nodes the tasks of the job are, the scores of the
// decisions, the evictions of the job, and the evictions for it.
func addPlacements(r *explain.Report, q Question, phrases explain.Phrases, was *stateBefore, simulation *sim.Simulation, j *cluster.Job) error {
	touched := false
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		touched = touched || d.Task.Job == j.ID || d.For == j.ID
		if d.Action == engine.EvictTask && d.Task.Job == j.ID {
			was.hadNode[d.Task.ID()] = false // the task was evicted, so its node, if it has one again, was chosen in the simulation
		}
	}
	chosen := map[string]*engine.Decision{}
	if touched {
		decisions, err := decideAgain(q, was.mark, simulation, j)
		if err != nil {
			return err
		}
		r.AddEvictions(q.State, decisions, phrases)
		for i := range decisions {
			if d := &decisions[i]; d.Task.Job == j.ID && len(d.Score.Parts) > 0 {
				chosen[d.Task.Name] = d
			}
			if d := &decisions[i]; d.Task.Job == j.ID && len(d.GroupScore.Parts) > 0 {
				r.AddGroup(d)
			}
		}
	}
	r.AddBelowMinimum(j, q.Now)
	for _, t := range j.Tasks() {
		if t.Ended() {
			r.Ended = append(r.Ended, wire.EndedTask{Task: t.Name, State: t.Status.String()})
		}
		if t.Node != nil {
			p := wire.NewPlacement(t, was.hadNode[t.ID], chosen[t.Name])
			if p.Nominated {
				p.WaitsFor = waitsFor(t)
			}
			r.Placements = append(r.Placements, p)
		}
	}
	return nil
}

// waitsFor returns the releasing tasks that still hold the room of a nominated task: those on
// its devices or, if there are none, all on its node.
func waitsFor(t *cluster.Task) []string {
	var near, all []string
	for _, o := range t.Node.Tasks {
		if o.Status != cluster.Releasing {
			continue
		}
		name := o.ID
		if o.Name == explain.PodTask {
			name = o.Job.ID
		}
		all = append(all, name)
		if slices.ContainsFunc(o.Claims, func(c cluster.Claim) bool {
			return slices.ContainsFunc(t.Claims, func(own cluster.Claim) bool { return own.Device == c.Device })
		}) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return near
	}
	return all
}

// decideAgain undoes the State to the mark, which was set before the simulation, and makes the
// decisions once more, this time with all candidates and scores. If these would take too much
// memory for all decisions, it repeats the decisions before those of the job as they were made,
// and then runs a session for the job alone. If even that would take too much, it returns the
// decisions of the simulation, which have no candidates. It leaves the State as it is after the
// simulation.
func decideAgain(q Question, mark cluster.Mark, simulation *sim.Simulation, j *cluster.Job) ([]engine.Decision, error) {
	nodes := len(q.State.Nodes())
	if nodes*len(simulation.Decisions) <= sim.MaxMisses {
		q.State.Undo(mark)
		again, err := sim.Simulate(q.Engine, q.State, sim.Options{Now: q.Now, Explain: true})
		if err != nil {
			return nil, err
		}
		return again.Decisions, nil
	}
	if nodes*len(j.Tasks()) > sim.MaxMisses {
		return simulation.Decisions, nil
	}
	q.State.Undo(mark)
	decisions, err := decideAlone(q, simulation, j)
	q.State.Undo(mark)
	if err != nil {
		return nil, err
	}
	return decisions, q.State.ApplyAll(simulation.Changes)
}

// decideAlone repeats the decisions that were made before those of the job, and runs a session
// for the job alone. If the decisions cannot be repeated, it returns those of the simulation.
func decideAlone(q Question, simulation *sim.Simulation, j *cluster.Job) ([]engine.Decision, error) {
	if !repeatDecisions(q.State, simulation.Decisions, j.ID) {
		return simulation.Decisions, nil
	}
	out, err := sim.Session(q.Engine, q.State, engine.Options{Now: q.Now, Explain: true})
	return out.Decisions, err
}

// repeatDecisions repeats the decisions before the first decision about the job, and removes
// all other pending jobs that have no placed task. It reports whether that was possible:
// evictions and nominations cannot be repeated.
func repeatDecisions(s *cluster.State, decisions []engine.Decision, id string) bool {
	for i := range decisions {
		d := &decisions[i]
		if d.Task.Job == id {
			break
		}
		t := s.Task(d.Task)
		if d.Action != engine.Bind || t == nil {
			return false
		}
		n := s.Node(d.Node)
		if s.CanRun(t, n, d.Claims) != nil || s.Apply(cluster.SeenOn(t, n, d.Claims, 0)) != nil {
			return false
		}
	}
	for _, j := range s.Pending() {
		if j.ID != id && j.Placed() == 0 && s.Apply(cluster.JobGone{Job: j.ID}) != nil {
			return false
		}
	}
	return true
}
