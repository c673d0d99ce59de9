package cluster

import (
	"maps"
	"slices"
)

// Clone copies the State so that either copy can change without the other.
// Shapes are shared: they never change. Versions carry on from where they are.
func (s *State) Clone() *State {
	c := &State{
		jobSlots:   make([]*Job, len(s.jobSlots)),
		freeJobs:   slices.Clone(s.freeJobs),
		recentJobs: s.recentJobs.clone(),
		jobs:       make(map[string]*Job, len(s.jobs)),
		pending:    make(map[string]*Job, len(s.pending)),
		retired:    make(map[string]*Job, len(s.retired)),
		torn:       make(map[string]*Job, len(s.torn)),
		nominated:  make(map[*Task]bool, len(s.nominated)),
		moving:     make(map[*Task]bool, len(s.moving)),
		releasing:  make([]*Task, len(s.releasing)),
		unseen:     maps.Clone(s.unseen),
		jobsIn:     make(map[string][]*Job, len(s.jobsIn)),
	}
	c.fleet = s.fleet.clone(&c.journal)
	c.classes = s.classes.clone()
	c.tree = s.tree.clone(&c.journal)
	c.shapes = s.shapes.clone(&c.journal)
	tasks := map[*Task]*Task{}
	for id, j := range s.jobs {
		k := j.clone(c, tasks)
		c.jobs[id], c.jobSlots[k.slot] = k, k
	}
	for name, jobs := range s.jobsIn {
		c.jobsIn[name] = c.sameJobs(jobs)
	}
	c.sets = s.sets.clone(&c.journal, c.sameJobs)
	for id := range s.retired {
		c.retired[id] = c.jobs[id]
	}
	for id := range s.torn {
		c.torn[id] = c.jobs[id]
	}
	for id := range s.pending {
		c.pending[id] = c.jobs[id]
	}
	for t := range s.nominated {
		c.nominated[tasks[t]] = true
	}
	for t := range s.moving {
		c.moving[tasks[t]] = true
	}
	for i, t := range s.releasing {
		c.releasing[i] = tasks[t]
	}
	for _, list := range [2][]*Node{c.fleet.sorted, c.fleet.Absent()} {
		for _, n := range list {
			for i, t := range n.Tasks {
				n.Tasks[i] = tasks[t]
			}
		}
	}
	return c
}

// sameJobs are the copies of the jobs.
func (s *State) sameJobs(jobs []*Job) []*Job {
	out := make([]*Job, len(jobs))
	for i, j := range jobs {
		out[i] = s.jobs[j.ID]
	}
	return out
}

func (n *Node) clone() *Node {
	m := *n
	m.Labels = maps.Clone(n.Labels)
	m.Taints = slices.Clone(n.Taints)
	m.Resources = slices.Clone(n.Resources)
	m.Devices = slices.Clone(n.Devices)
	m.Artifacts = maps.Clone(n.Artifacts)
	m.Tasks = slices.Clone(n.Tasks)
	m.Advertised.CPU = slices.Clone(n.Advertised.CPU)
	m.Advertised.GPU = slices.Clone(n.Advertised.GPU)
	return &m
}

// clone copies the job into c, whose nodes are there already.
func (j *Job) clone(c *State, tasks map[*Task]*Task) *Job {
	k := *j
	k.Labels = maps.Clone(j.Labels)
	k.Affinity = slices.Clone(j.Affinity)
	k.Displaced = slices.Clone(j.Displaced)
	k.Alternatives = slices.Clone(j.Alternatives)
	for a := range k.Alternatives {
		alt := &k.Alternatives[a]
		alt.Tasks = slices.Clone(alt.Tasks)
		for i, t := range alt.Tasks {
			u := *t
			u.Job = &k
			u.Claims = slices.Clone(t.Claims)
			if t.Node != nil {
				u.Node = c.fleet.find(t.Node.Name)
			}
			alt.Tasks[i], tasks[t] = &u, &u
			if t.landing != nil {
				l := *t.landing
				l.Job, l.Claims, l.Node = &k, slices.Clone(l.Claims), c.fleet.find(l.Node.Name)
				l.shadows, u.landing = &u, &l
				tasks[t.landing] = &l
			}
		}
	}
	return &k
}
