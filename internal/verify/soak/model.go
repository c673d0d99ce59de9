package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// AddModel adds a Set of replicas. They use whole nodes of one group, or any nodes.
func (w *World) AddModel() error {
	if len(w.site.jobs) >= w.maxJobs {
		return nil
	}
	desired := 1 + w.dice.Roll(3)
	first := cluster.Job{
		Priority: int32(w.dice.Roll(3)), Queue: pick(w, leaves), Preemptible: w.chance(50),
		Set: cluster.Set{Name: fmt.Sprintf("model/m%04d", w.step), Desired: desired},
	}
	if w.chance(40) {
		first.Labels = map[string]string{"app": pick(w, []string{"web", "db"})}
	}
	if w.chance(60) {
		w.wholeNodeForms(&first)
	} else {
		for a := range 1 + w.dice.Roll(3) {
			shape := w.servedShape()
			first.Alternatives = append(first.Alternatives, cluster.Alternative{Name: fmt.Sprintf("alt%d", a), Min: 1, Tasks: []*cluster.Task{{Name: fmt.Sprintf("alt%d-0", a), Shape: &shape}}})
		}
	}
	for a := range first.Alternatives {
		for _, t := range first.Alternatives[a].Tasks {
			t.Shape.Preemptible = first.Preemptible
		}
	}
	w.site.models[first.Set.Name] = &first
	return w.replicate(&first)
}

// wholeNodeForms adds an alternative for each of several groups to the replica. One of
// the groups may not exist.
func (w *World) wholeNodeForms(j *cluster.Job) {
	keys := []cluster.GroupKey{{Product: "V100", Count: 8, Memory: 16 << 10, Resource: cluster.DefaultDeviceResource}}
	for _, g := range w.State.View().Groups() {
		keys = append(keys, g.Key)
	}
	if w.chance(20) { // an alternative on one device
		shape := w.servedShape()
		j.Alternatives = append(j.Alternatives, cluster.Alternative{Name: "one", Min: 1, Tasks: []*cluster.Task{{Name: "one-0", Shape: &shape}}})
	}
	share := pick(w, []cluster.Milli{0, 300, 450, 900})
	for i, key := range keys {
		if i == 0 && len(keys) > 1 && w.chance(80) || i > 4 {
			continue
		}
		nodes := pick(w, []int{1, 1, 1, 2})
		alt := cluster.Alternative{
			Name: fmt.Sprintf("g%d", i), Min: nodes,
			Whole: &cluster.WholeNodes{Replicas: j.Set.Desired, NodesPerReplica: nodes, Memory: cluster.Bytes(4+w.dice.Roll(30)) << 30, Only: &key},
		}
		for t := range nodes {
			alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("g%d-%d", i, t), Index: t, Shape: &cluster.Shape{
				Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory}},
				Need:      cluster.Need{WholeNode: true, Share: share}, Strategy: cluster.Binpack,
			}})
		}
		j.Alternatives = append(j.Alternatives, alt)
	}
}

// servedShape returns the shape of a replica that uses devices of one node, or none.
func (w *World) servedShape() cluster.Shape {
	s := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(w.dice.Roll(3)) * 1000}, {Name: cluster.Memory, Value: int64(w.dice.Roll(3)) * 8 << 30}},
		Strategy:  pick(w, []cluster.Strategy{cluster.Binpack, cluster.Spread}), Backend: "llama-box",
	}
	switch w.dice.Roll(5) {
	case 0:
		n := 1 + w.dice.Roll(3)
		s.Need = cluster.Need{Devices: n, Share: pick(w, []cluster.Milli{450, 900}), SumAtLeast: cluster.Bytes(8+w.dice.Roll(100)) << 30, SameProduct: w.chance(70)}
	case 1, 2:
		total := 4 + w.dice.Roll(40)
		s.Need.Layers = &cluster.Layers{Total: total, Bytes: cluster.Bytes(1+w.dice.Roll(4)) << 30, Fixed: cluster.Bytes(w.dice.Roll(3)) << 30}
		if s.Need.Layers.Spill = w.chance(60); s.Need.Layers.Spill {
			s.Need.Layers.Least = w.dice.Roll(total + 1)
		}
		if w.chance(30) {
			s.Need.Devices = 1 + w.dice.Roll(2)
		}
		s.Need.SameProduct = w.chance(30)
	case 3:
		s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(4+8*w.dice.Roll(6)) << 30}
	}
	if !s.Need.None() && w.chance(40) {
		s.Need.Types = pick(w, [][]string{{"cuda"}, {"rocm"}, {"cuda", "rocm"}})
	}
	if s.Need.Devices == 1 && len(w.State.Nodes()) > 0 && w.chance(15) {
		if n := pick(w, w.State.Nodes()); len(n.Devices) > 0 {
			s.Need.Selected = []cluster.DeviceID{pick(w, n.Devices).ID}
		}
	}
	return s
}

// ScaleModel changes the number of replicas of a model, and removes retired replicas.
func (w *World) ScaleModel() error {
	for _, id := range sorted(w.site.jobs) {
		if j := w.State.Job(id); j.Retired && !slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Node != nil }) && w.chance(60) {
			if err := w.end(id); err != nil {
				return err
			}
		}
	}
	if len(w.site.models) == 0 {
		return nil
	}
	first := w.site.models[pick(w, sorted(w.site.models))]
	first.Set.Desired = w.dice.Roll(5)
	for _, j := range w.site.jobs {
		if j.Set.Name == first.Set.Name {
			j.Set.Desired = first.Set.Desired
		}
	}
	if err := w.apply(cluster.SetScaled{Set: first.Set.Name, Desired: first.Set.Desired}); err != nil {
		return err
	}
	return w.replicate(first)
}

// replicate adds the replicas that are missing.
func (w *World) replicate(first *cluster.Job) error {
	for i := len(w.State.View().Sets().Jobs(first.Set.Name)); i < first.Set.Desired && len(w.site.jobs) < w.maxJobs+4; i++ {
		j := copySpec(first)
		j.ID, j.Created = fmt.Sprintf("job/%s-%04d-%d", first.Set.Name[len("model/"):], w.step, i), int64(w.dice.Roll(5))
		for a := range j.Alternatives {
			if whole := j.Alternatives[a].Whole; whole != nil {
				now := *whole
				now.Replicas = first.Set.Desired
				j.Alternatives[a].Whole = &now
			}
		}
		w.site.jobs[j.ID] = j
		if err := w.apply(cluster.JobPut{Job: *j}); err != nil {
			return err
		}
	}
	return nil
}

// Read reports the free memory of the devices of some nodes. It is random how much
// memory foreign processes use.
func (w *World) Read() error {
	for _, name := range sorted(w.site.nodes) {
		n := w.site.nodes[name]
		if len(n.Devices) == 0 || w.chance(50) {
			continue
		}
		free := map[string]cluster.Bytes{}
		foreign := w.foreign()
		for i := range n.Devices {
			if !n.Unified { // devices with unified memory report the same foreign use
				foreign = w.foreign()
			}
			if w.chance(90) { // the remaining devices are not reported
				free[n.Devices[i].UUID] = max(0, min(n.Devices[i].Memory-w.site.memoryUsed(name, i), w.site.freeUnified(name))-foreign)
			}
		}
		if err := w.apply(cluster.NodeRead{Name: name, Free: free}); err != nil {
			return err
		}
		w.site.shrunk[name] = true // reservations may exceed the memory now
	}
	return nil
}

func (w *World) foreign() cluster.Bytes {
	return pick(w, []cluster.Bytes{0, 0, 0, 1 << 29, 4 << 30, 20 << 30, 200 << 30})
}

// checkSets checks that no Set has more replicas than desired, that retired replicas
// are neither pending nor in their Set, and that replicas on whole nodes are on
// different nodes of one group. If settled is false, a Set may still be too large and
// retired replicas may still be placed.
func (w *World) checkSets(settled bool) error {
	for _, j := range w.State.Jobs() {
		if !j.Retired {
			continue
		}
		for _, t := range j.Tasks() {
			if settled && t.Placed() {
				return fmt.Errorf("%s is retired, and %s is %s", j.ID, t.ID, t.Status)
			}
		}
		if slices.Contains(w.State.Pending(), j) || slices.Contains(w.State.View().Sets().Jobs(j.Set.Name), j) {
			return fmt.Errorf("%s is retired, and is pending or in its Set", j.ID)
		}
	}
	for _, name := range w.State.View().Sets().Names() {
		jobs := w.State.View().Sets().Jobs(name)
		desired := w.State.View().Sets().Desired(name)
		if settled && len(jobs) > desired {
			return fmt.Errorf("%s has %d replicas, and %d are desired", name, len(jobs), desired)
		}
		if large := slices.Contains(w.State.View().Sets().Excess(), name); large != (len(jobs) > desired) {
			return fmt.Errorf("%s has %d replicas of %d, and is listed as too large: %v", name, len(jobs), desired, large)
		}
		var home *cluster.GroupKey
		hosts := map[*cluster.Node]string{}
		for _, j := range jobs {
			if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil {
				continue
			}
			if only := j.Alternatives[j.Chosen].Whole.Only; home == nil {
				home = only
			} else if *only != *home {
				return fmt.Errorf("%s is on %v, and other replicas of %s are on %v", j.ID, *only, name, *home)
			}
			for _, t := range j.Tasks() {
				if !t.Placed() {
					continue
				}
				if other := hosts[t.At()]; other != "" {
					return fmt.Errorf("%s and %s share node %s", other, t.ID, t.At().Name)
				}
				hosts[t.At()] = t.ID
			}
		}
		if at := w.State.View().Sets().Home(name); home != nil && (at == nil || *at != *home) {
			return fmt.Errorf("%s is on %v, and belongs on %v", name, *home, at)
		}
	}
	return nil
}

// checkHomes checks that tasks that were placed on whole nodes since before are on
// nodes of the group of their alternative.
func (w *World) checkHomes(before map[*cluster.Task]*cluster.Node) error {
	for _, j := range w.State.Jobs() {
		if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil || j.Alternatives[j.Chosen].Whole.Only == nil {
			continue
		}
		only := *j.Alternatives[j.Chosen].Whole.Only
		for _, t := range j.Tasks() {
			n := t.At()
			if !t.Placed() || n == before[t] {
				continue
			}
			if w.WholeNodes++; n.Group().Key != only {
				return fmt.Errorf("%s is on %s of %v, and its alternative is for %v", t.ID, n.Name, n.Group().Key, only)
			}
		}
	}
	return nil
}
