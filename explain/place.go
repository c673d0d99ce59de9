package explain

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// place fills in where its tasks are, the scores of what was decided now, and who
// has to go for whom.
func (r *Report) place(q Question, before *cluster.State, sim *Simulation, j *cluster.Job) error {
	ran := map[string]bool{}
	for _, t := range before.Job(j.ID).Tasks() {
		ran[t.Name] = t.Node != nil
	}
	touched := false
	for i := range sim.Decisions {
		d := &sim.Decisions[i]
		touched = touched || d.Task.Job == j.ID || d.For == j.ID
		if d.Action == engine.EvictIt && d.Task.Job == j.ID {
			ran[d.Task.Name] = false // where it is now, it was not before
		}
	}
	chosen := map[string]*engine.Decision{}
	if touched {
		decisions, err := decideAgain(q, before, sim, j)
		if err != nil {
			return err
		}
		r.Evicted = evictions(q.State, decisions, func(d *engine.Decision) bool { return d.Task.Job == j.ID })
		r.Displaced = evictions(q.State, decisions, func(d *engine.Decision) bool { return d.For == j.ID })
		for i := range decisions {
			if d := &decisions[i]; d.Task.Job == j.ID && len(d.Score.Parts) > 0 {
				chosen[d.Task.Name] = d
			}
		}
	}
	for _, t := range j.Tasks() {
		if t.Node != nil {
			p := placement(t, ran[t.Name], chosen[t.Name])
			if p.Promised {
				p.WaitsFor = waitsFor(t)
			}
			r.Placements = append(r.Placements, p)
		}
	}
	return nil
}

func placement(t *cluster.Task, ran bool, d *engine.Decision) Placement {
	p := Placement{
		Task: t.Name, Node: t.Node.Name, Devices: []int{}, Running: ran,
		Promised: t.Status == cluster.Nominated, Leaving: t.Status == cluster.Releasing,
	}
	for _, c := range t.Claims {
		p.Devices = append(p.Devices, c.Device)
	}
	if d == nil || d.Node != p.Node {
		return p
	}
	mean := d.Score.Mean()
	p.Score, p.Scores = &mean, parts(d.Score)
	p.Others = max(0, len(d.Candidates)-1)
	for _, c := range d.Candidates {
		if c.Node != d.Node {
			p.RunnerUp = &Candidate{c.Node, c.Score.Mean(), parts(c.Score)}
			break
		}
	}
	return p
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
		if o.Name == podTask {
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
// where even that is too much.
func decideAgain(q Question, before *cluster.State, sim *Simulation, j *cluster.Job) ([]engine.Decision, error) {
	nodes := len(before.Nodes())
	if nodes*len(sim.Decisions) <= fullMisses {
		again, err := Simulate(q.Engine, before, Options{Now: q.Now, Explain: true})
		if err != nil {
			return nil, err
		}
		return again.Decisions, nil
	}
	if nodes*len(j.Tasks()) > fullMisses || !replay(before, sim.Decisions, j.ID) {
		return sim.Decisions, nil
	}
	out, err := run(q.Engine, before, engine.Options{Now: q.Now, Explain: true})
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
