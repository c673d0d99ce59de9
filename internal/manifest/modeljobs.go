package manifest

import (
	"errors"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
)

// models adds the jobs of all models to State. It is called when State has all nodes: the
// alternatives of a replica depend on the devices.
func (m *stateMaker) models(s *cluster.State) {
	groups := s.View().Groups()
	fleet := model.NewFleet(groups)
	m.groupOf = map[string]cluster.GroupKey{}
	for _, g := range groups {
		for _, n := range g.Nodes {
			m.groupOf[n.Name] = g.Key
		}
	}
	for _, o := range m.bundle.Models {
		r := m.bundle.reporter(o, &m.errs)
		spec, notes := convert.Model(o, m.environment)
		r.report(notes)
		if !m.sources(spec, o, r) || spec.Backend == nil {
			continue
		}
		plan, err := fleet.Convert(spec)
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
			return // addJob has reported it, and more jobs would only take memory
		}
		for _, j := range plan.Jobs {
			m.addJob(j, r)
			m.recordError(s.Apply(cluster.JobPut{Job: *j}))
		}
		for i, x := range o.Status.Replicas {
			at := path{"status", "replicas", i}
			if j := s.Job(plan.ReplicaID(x.Replica)); j != nil {
				m.runningTasks(j, placements{x.Placements, x.Form, at, "form"}, r)
			}
		}
	}
}

// applyReadings adds the readings of free memory to State. It is called when State has the
// tasks that run: what is not free and not held by these is foreign.
func (m *stateMaker) applyReadings(s *cluster.State) {
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
