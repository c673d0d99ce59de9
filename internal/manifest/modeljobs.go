package manifest

import (
	"errors"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
)

// models makes the jobs of all models, once the nodes are in the books: which
// forms a replica may take depends on what devices there are.
func (m *stateMaker) models(s *cluster.State) {
	groups := s.View().Groups()
	fleet := model.NewFleet(groups)
	m.groupOf = map[string]cluster.Key{}
	for _, g := range groups {
		for _, n := range g.Nodes {
			m.groupOf[n.Name] = g.Key
		}
	}
	for _, o := range m.bundle.Models {
		r := m.bundle.reporter(o, &m.errs)
		spec, notes := convert.Model(o, m.around)
		r.take(notes)
		if !m.sources(spec, o, r) || spec.Backend == nil {
			continue
		}
		plan, err := fleet.Plan(spec)
		if err != nil {
			var p *model.Problem
			at := path{"spec"}
			if errors.As(err, &p) {
				at = p.Field
			}
			r.errorf(at, "%s", err)
			continue
		}
		m.plans = append(m.plans, plan)
		if m.tasks > convert.MaxTasks {
			return // it was said, and more would only take memory
		}
		for _, j := range plan.Jobs {
			m.addJob(j, r)
			m.must(s.Apply(cluster.JobPut{Job: *j}))
		}
		for i, x := range o.Status.Replicas {
			at := path{"status", "replicas", i}
			if j := s.Job(plan.Replica(x.Replica)); j != nil {
				m.runningTasks(j, placed{x.Placements, x.Form, at, "form"}, r)
			}
		}
	}
}

// observe takes readings into the books, once it is known what runs.
func (m *stateMaker) observe(s *cluster.State) {
	for _, o := range m.bundle.Nodes {
		if len(o.Status.FreeMemory) == 0 {
			continue
		}
		r := m.bundle.reporter(o, &m.errs)
		n := s.Node(o.Name)
		if len(o.Status.FreeMemory) > len(n.Devices) {
			r.errorf(path{"status", "freeMemory"}, "node %q has %d devices, and %d were read", o.Name, len(n.Devices), len(o.Status.FreeMemory))
			continue
		}
		free := make(map[string]cluster.Bytes, len(o.Status.FreeMemory))
		for i, q := range o.Status.FreeMemory {
			free[n.Devices[i].UUID] = cluster.Bytes(q.Value())
		}
		if err := s.Apply(cluster.NodeRead{Name: o.Name, Free: free}); err != nil {
			r.errorf(path{"status", "freeMemory"}, "%s", err)
		}
	}
}
