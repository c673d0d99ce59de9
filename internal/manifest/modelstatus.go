package manifest

import (
	"errors"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
)

// makeModelStatus takes what was chosen for the model and what is there of it.
func makeModelStatus(s *model.Spec, o *v1alpha1.ModelStatus, r reporter) {
	if g := o.Group; g != nil {
		at := path{"status", "group"}
		within(g.Count, 1, maxDevices, at.Add("count"), r)
		within(g.NodesPerReplica, 1, model.MostNodes, at.Add("nodesPerReplica"), r)
		key := cluster.Key{Product: g.Product, Count: g.Count, Resource: g.Resource, Memory: int64(checkMemory(g.Memory, at.Add("memory"), r)) >> 20}
		if key.Resource == "" {
			key.Resource = cluster.DefaultDeviceResource
		}
		if g.Sharing != nil {
			checkEnum(g.Sharing.Strategy, strategies, at.Add("sharing", "strategy"), r)
			key.Strategy, key.Replicas = g.Sharing.Strategy, g.Sharing.Replicas
		}
		if s.Place.WholeNodes { // or its unit was another when the group was chosen
			s.Group, s.NodesPerReplica = &key, g.NodesPerReplica
		}
	}
	seen := map[int]int{}
	for i, x := range o.Replicas {
		at := path{"status", "replicas", i}
		within(x.Replica, 0, maxReplicas, at.Add("replica"), r)
		if k, twice := seen[x.Replica]; twice {
			r.errorf(at.Add("replica"), "replica %d is already replicas[%d]", x.Replica, k)
		}
		seen[x.Replica] = i
		checkEnum(x.State, modelStates, at.Add("state"), r)
		checkTime(x.Created, at.Add("created"), r)
		if x.OffloadedLayers < 0 || x.OffloadedLayers > x.TotalLayers {
			r.errorf(at.Add("offloadedLayers"), "want from 0 to the %d of totalLayers, have %d", x.TotalLayers, x.OffloadedLayers)
		}
		rep := model.Replica{
			Number: x.Replica, Created: s.Created, Health: cluster.Health(x.State),
			Offload: cluster.Offload{Layers: x.OffloadedLayers, Total: x.TotalLayers},
		}
		if x.Created != nil {
			rep.Created = nanoseconds(x.Created)
		}
		checkTime(x.TornSince, at.Add("tornSince"), r)
		checkTime(x.Evicted, at.Add("evicted"), r)
		rep.Torn, rep.Evicted = nanoseconds(x.TornSince), nanoseconds(x.Evicted)
		for k, p := range x.Placements {
			checkPlacement(&x.Placements[k], at.Add("placements", k), r)
			if rep.Tasks == nil {
				rep.Tasks = map[string]int{}
			}
			rep.Tasks[p.Task] = -1
			if p.Devices != nil {
				rep.Tasks[p.Task] = len(p.Devices)
			}
		}
		s.There = append(s.There, rep)
	}
}

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
		spec := makeModel(o, m.around, r)
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
		if m.tasks > maxTasksInAll {
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
