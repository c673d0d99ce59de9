package whatif

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// before is what a report says of the State before the simulation. The mark leads
// back to it: a copy of a large cluster takes longer than the question.
type before struct {
	mark cluster.Mark
	jobs []string        // the workload, or those of the set
	ran  map[string]bool // by task: it was on a node
}

// lookBack begins to record what the simulation changes.
func lookBack(s *cluster.State, workload string) *before {
	was := &before{mark: s.Mark(), ran: map[string]bool{}}
	list := s.View().Sets().Jobs(workload)
	if j := s.Job(workload); j != nil {
		list = []*cluster.Job{j}
	}
	for _, j := range list {
		was.jobs = append(was.jobs, j.ID)
		for _, t := range j.Tasks() {
			was.ran[t.ID] = t.Node != nil
		}
	}
	return was
}

// place fills in where its tasks are, the scores of what was decided now, and who
// has to go for whom.
func place(r *explain.Report, q Question, phrases explain.Phrases, was *before, simulation *sim.Simulation, j *cluster.Job) error {
	touched := false
	for i := range simulation.Decisions {
		d := &simulation.Decisions[i]
		touched = touched || d.Task.Job == j.ID || d.For == j.ID
		if d.Action == engine.EvictIt && d.Task.Job == j.ID {
			was.ran[d.Task.ID()] = false // where it is now, it was not before
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
	r.AddTorn(j, q.Now)
	for _, t := range j.Tasks() {
		if t.Ended() {
			r.Ended = append(r.Ended, wire.Ended{Task: t.Name, State: t.Status.String()})
		}
		if t.Node != nil {
			p := wire.NewPlacement(t, was.ran[t.ID], chosen[t.Name])
			if p.Promised {
				p.WaitsFor = waitsFor(t)
			}
			r.Placements = append(r.Placements, p)
		}
	}
	return nil
}

// waitsFor are the tasks that are leaving the room that was promised to the task:
// those on its devices, or where there are none all of the node.
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

// decideAgain works out the scores of the job's decisions with everything
// explained. Where that is too much for all decisions, the ones before it are
// taken as they were made and only the job itself decides; without candidates
// where even that is too much. It begins at the mark, before the simulation, and
// leaves the State as the simulation does.
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

// decideAlone is the session of the job alone, after the decisions before it.
func decideAlone(q Question, simulation *sim.Simulation, j *cluster.Job) ([]engine.Decision, error) {
	if !replay(q.State, simulation.Decisions, j.ID) {
		return simulation.Decisions, nil
	}
	out, err := sim.Session(q.Engine, q.State, engine.Options{Now: q.Now, Explain: true})
	return out.Decisions, err
}

// replay repeats the decisions that came before those about the job and leaves
// nothing else pending. It reports whether it could: evictions are not repeated.
func replay(s *cluster.State, decisions []engine.Decision, id string) bool {
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
