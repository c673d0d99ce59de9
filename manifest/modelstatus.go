package manifest

import (
	"errors"
	"path/filepath"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/estimate/hf"
	"github.com/berth-project/berth/estimate/library"
	"github.com/berth-project/berth/model"
)

// makeModelStatus takes what was chosen for the model and what is there of it.
func makeModelStatus(s *model.Spec, o *v1alpha1.ModelStatus, r reporter) {
	if g := o.Group; g != nil {
		at := path{"status", "group"}
		within(g.Count, 1, maxDevices, at.add("count"), r)
		within(g.NodesPerReplica, 1, model.MostNodes, at.add("nodesPerReplica"), r)
		if !s.Place.WholeNodes {
			r.errorf(at, "a group is chosen with placement: {unit: %s} only", unitNode)
		}
		key := cluster.Key{Product: g.Product, Count: g.Count, Resource: g.Resource, Memory: int64(checkMemory(g.Memory, at.add("memory"), r)) >> 20}
		if key.Resource == "" {
			key.Resource = cluster.DefaultDeviceResource
		}
		if g.Sharing != nil {
			checkEnum(g.Sharing.Strategy, strategies, at.add("sharing", "strategy"), r)
			key.Strategy, key.Replicas = g.Sharing.Strategy, g.Sharing.Replicas
		}
		s.Group, s.NodesPerReplica = &key, g.NodesPerReplica
	}
	seen := map[int]int{}
	for i, x := range o.Replicas {
		at := path{"status", "replicas", i}
		within(x.Replica, 0, maxReplicas, at.add("replica"), r)
		if k, twice := seen[x.Replica]; twice {
			r.errorf(at.add("replica"), "replica %d is already replicas[%d]", x.Replica, k)
		}
		seen[x.Replica] = i
		checkEnum(x.State, modelStates, at.add("state"), r)
		checkTime(x.Created, at.add("created"), r)
		if x.OffloadedLayers < 0 || x.OffloadedLayers > x.TotalLayers {
			r.errorf(at.add("offloadedLayers"), "want from 0 to the %d of totalLayers, have %d", x.TotalLayers, x.OffloadedLayers)
		}
		rep := model.Replica{
			Number: x.Replica, Created: s.Created, Health: cluster.Health(x.State),
			Offload: cluster.Offload{Layers: x.OffloadedLayers, Total: x.TotalLayers},
		}
		if x.Created != nil {
			rep.Created = nanoseconds(x.Created)
		}
		for k, p := range x.Placements {
			checkTime(p.Started, at.add("placements", k, "started"), r)
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
	groups := s.Groups()
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
		plan, err := model.New(spec, groups)
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
			m.must(s.AddJob(j))
		}
		for i, x := range o.Status.Replicas {
			at := path{"status", "replicas", i}
			if j := s.Job(plan.Replica(x.Replica)); j != nil {
				m.runningTasks(j, placed{x.Placements, x.Form, at, "form"}, r)
			}
		}
	}
}

// sources reads the model's files, and reports whether it could.
func (m *stateMaker) sources(s *model.Spec, o *v1alpha1.Model, r reporter) bool {
	known := s.Memory.Device > 0 || s.Memory.Total > 0
	ok := true
	open := func(src *v1alpha1.ModelSource, at path, needed bool) *estimate.Model {
		name, local := sourceName(src, r)
		if name == "" {
			return nil
		}
		find := library.Open
		if src.Preset != "" {
			find = library.Known
		}
		found, err := find(name)
		switch {
		case err == nil:
			return found
		case !needed:
			return nil // what it needs was given
		case local:
			r.errorf(at, "%s; where it lies on the nodes alone, say how much memory it needs under memory", err)
		default:
			r.errorf(at, "%s", err)
		}
		ok = false
		return nil
	}
	s.Source = open(&o.Spec.Source, path{"spec", "source"}, !known)
	if o.Spec.Draft != nil {
		s.Draft = open(o.Spec.Draft, path{"spec", "draft"}, !known)
	}
	for i, a := range o.Spec.Adapters {
		if a.Path == "" {
			continue
		}
		bytes, err := hf.ReadAdapter(beside(a.Path, r))
		if err != nil {
			r.errorf(path{"spec", "adapters", i}, "%s", err)
			ok = false
		}
		s.Adapters += bytes
	}
	return ok
}

// sourceName is what the library knows the source by, and whether it may lie on
// the nodes alone.
func sourceName(o *v1alpha1.ModelSource, r reporter) (name string, local bool) {
	switch {
	case o.Preset != "":
		return o.Preset, false
	case o.GGUF != "":
		return beside(o.GGUF, r), false
	case o.HuggingFace != "":
		return beside(o.HuggingFace, r), false
	}
	if o.LocalPath != "" {
		return beside(o.LocalPath, r), true
	}
	return "", false
}

// beside is a path as seen from the manifest it is written in. It can only be
// meant as a path.
func beside(name string, r reporter) string {
	if filepath.IsAbs(name) {
		return name
	}
	dir := "."
	if r.src != nil && r.src.file != "" {
		dir = filepath.Dir(r.src.file)
	}
	name = filepath.Join(dir, name)
	if !filepath.IsAbs(name) {
		name = "." + string(filepath.Separator) + name
	}
	return name
}

// observe takes readings into the books, once it is known what runs.
func (m *stateMaker) observe(s *cluster.State) {
	for _, o := range m.bundle.Nodes {
		if len(o.Status.FreeMemory) == 0 {
			continue
		}
		r := m.bundle.reporter(o, &m.errs)
		free := make([]cluster.Bytes, 0, len(o.Status.FreeMemory))
		for _, q := range o.Status.FreeMemory {
			free = append(free, cluster.Bytes(q.Value()))
		}
		if err := s.Observe(o.Name, free); err != nil {
			r.errorf(path{"status", "freeMemory"}, "%s", err)
		}
	}
}
