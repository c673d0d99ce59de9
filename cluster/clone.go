package cluster

import (
	"maps"
	"slices"
)

// Clone returns a copy of the State. Changes of one do not affect the other. The
// copies share Shapes, which never change. The copy has the versions of the original,
// but its Recent.Commits begins at 0, and its journal is empty.
func (s *State) Clone() *State {
	c := &State{classes: s.classes.clone()}
	l := &c.journal
	c.fleet, c.tree, c.shapes, c.demand = s.fleet.clone(l), s.tree.clone(l), s.shapes.clone(l), s.demand.clone(l)
	c.parameters = s.parameters.clone(l)
	var tasks map[*Task]*Task
	c.roster, tasks = s.roster.clone(l, &c.fleet)
	c.sets = s.sets.clone(l, c.roster.same)
	c.connect()
	for _, n := range c.fleet.all() {
		for i, t := range n.Tasks {
			n.Tasks[i] = tasks[t]
		}
	}
	return c
}

func (n *Node) clone() *Node {
	m := *n
	m.Labels = maps.Clone(n.Labels)
	m.Taints = slices.Clone(n.Taints)
	m.Resources = slices.Clone(n.Resources)
	m.Devices = slices.Clone(n.Devices)
	m.Artifacts = maps.Clone(n.Artifacts)
	m.Tasks = slices.Clone(n.Tasks)
	m.SupportedIsolation.CPU = slices.Clone(n.SupportedIsolation.CPU)
	m.SupportedIsolation.GPU = slices.Clone(n.SupportedIsolation.GPU)
	return &m
}

// clone copies the job and its tasks, with pointers to the nodes of the fleet f. It
// adds the copies to tasks, by their originals.
func (j *Job) clone(f *fleet, tasks map[*Task]*Task) *Job {
	k := *j
	k.Labels = maps.Clone(j.Labels)
	k.Alternatives = slices.Clone(j.Alternatives)
	for a := range k.Alternatives {
		alt := &k.Alternatives[a]
		alt.Tasks = slices.Clone(alt.Tasks)
		for i, t := range alt.Tasks {
			u := *t
			u.Job = &k
			u.Claims = slices.Clone(t.Claims)
			if t.Node != nil {
				u.Node = f.find(t.Node.Name)
			}
			alt.Tasks[i], tasks[t] = &u, &u
			if landing := t.Landing(); landing != nil {
				l := *landing
				l.Job, l.Claims, l.Node = &k, slices.Clone(l.Claims), f.find(l.Node.Name)
				of, to := l.inTransit(), u.inTransit()
				of.shadowOf, to.landing = &u, &l
				l.setTransit(of)
				u.setTransit(to)
				tasks[landing] = &l
			}
		}
	}
	return &k
}
