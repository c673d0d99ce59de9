package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// modelMaker makes random models. The groups and devices that a replica names are
// taken from State, so that most of them exist.
type modelMaker struct{ dice *dice }

// template returns the job of which the replicas of a random model are copies. A
// replica uses whole nodes of one group, or devices of any node.
func (m *modelMaker) template(state *cluster.State) *cluster.Job {
	desired := 1 + m.dice.roll(3)
	j := &cluster.Job{
		Priority: int32(m.dice.roll(3)), Queue: pick(m.dice, leaves), Preemptible: m.dice.chance(50),
		JobDetails: &cluster.JobDetails{Set: cluster.Set{Name: fmt.Sprintf("model/m%04d", m.dice.step), Desired: desired}},
	}
	if m.dice.chance(40) {
		j.Labels = map[string]string{"app": pick(m.dice, apps)}
	}
	if m.dice.chance(60) {
		m.addWholeNodes(j, state)
	} else {
		for a := range 1 + m.dice.roll(3) {
			shape := m.shape(state)
			j.Alternatives = append(j.Alternatives, cluster.Alternative{Name: fmt.Sprintf("alt%d", a), Min: 1, Tasks: []*cluster.Task{{Name: fmt.Sprintf("alt%d-0", a), Shape: &shape}}})
		}
	}
	for a := range j.Alternatives {
		for _, t := range j.Alternatives[a].Tasks {
			t.Shape.Preemptible = j.Preemptible
		}
	}
	return j
}

// replica returns the replica with the given number. Its whole-node alternatives are
// for as many replicas as are desired at present.
func (m *modelMaker) replica(template *cluster.Job, number int) *cluster.Job {
	j := copySpec(template)
	j.ID, j.Created = fmt.Sprintf("job/%s-%04d-%d", template.Set.Name[len("model/"):], m.dice.step, number), int64(m.dice.roll(5))
	for a := range j.Alternatives {
		if whole := j.Alternatives[a].Whole; whole != nil {
			current := *whole
			current.Replicas = template.Set.Desired
			j.Alternatives[a].Whole = &current
		}
	}
	return j
}

// copySpec returns a copy of the job without anything that State has recorded in it.
func copySpec(j *cluster.Job) *cluster.Job {
	k := *j
	k.Alternatives = slices.Clone(j.Alternatives)
	for a := range k.Alternatives {
		tasks := slices.Clone(k.Alternatives[a].Tasks)
		for i, t := range tasks {
			shape := *t.Shape
			tasks[i] = &cluster.Task{Name: t.Name, Role: t.Role, Index: t.Index, Subgroup: t.Subgroup, Shape: &shape}
		}
		k.Alternatives[a].Tasks = tasks
	}
	return &k
}

// addWholeNodes adds an alternative for each of up to four node groups to the
// template. One more alternative may be for a group that does not exist.
func (m *modelMaker) addWholeNodes(j *cluster.Job, state *cluster.State) {
	keys := []cluster.GroupKey{{Product: "V100", Count: 8, Memory: 16 << 10, Resource: cluster.DefaultDeviceResource}}
	for _, g := range state.View().Groups() {
		keys = append(keys, g.Key)
	}
	if m.dice.chance(20) { // an alternative on one device
		shape := m.shape(state)
		j.Alternatives = append(j.Alternatives, cluster.Alternative{Name: "one", Min: 1, Tasks: []*cluster.Task{{Name: "one-0", Shape: &shape}}})
	}
	share := pick(m.dice, []cluster.Milli{0, 300, 450, 900})
	for i, key := range keys {
		if i == 0 && len(keys) > 1 && m.dice.chance(80) || i > 4 {
			continue
		}
		nodes := pick(m.dice, []int{1, 1, 1, 2})
		alt := cluster.Alternative{
			Name: fmt.Sprintf("g%d", i), Min: nodes,
			Whole: &cluster.WholeNodes{Replicas: j.Set.Desired, NodesPerReplica: nodes, Memory: cluster.Bytes(4+m.dice.roll(30)) << 30, Only: &key},
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

// shape returns the shape of a replica that uses devices of one node, or none.
func (m *modelMaker) shape(state *cluster.State) cluster.Shape {
	s := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(m.dice.roll(3)) * 1000}, {Name: cluster.Memory, Value: int64(m.dice.roll(3)) * 8 << 30}},
		Strategy:  pick(m.dice, []cluster.Strategy{cluster.Binpack, cluster.Spread}), Backend: "llama-box",
	}
	switch m.dice.roll(5) {
	case 0:
		n := 1 + m.dice.roll(3)
		s.Need = cluster.Need{Devices: n, Share: pick(m.dice, []cluster.Milli{450, 900}), SumAtLeast: cluster.Bytes(8+m.dice.roll(100)) << 30, SameProduct: m.dice.chance(70)}
	case 1, 2:
		total := 4 + m.dice.roll(40)
		s.Need.Layers = &cluster.Layers{Total: total, Bytes: cluster.Bytes(1+m.dice.roll(4)) << 30, Fixed: cluster.Bytes(m.dice.roll(3)) << 30}
		if m.dice.chance(50) { // the last layer is the largest
			sizes := s.Need.Layers.Each()
			for i := range sizes[:total-1] {
				sizes[i] -= cluster.Bytes(m.dice.roll(3)) << 28
			}
			*s.Need.Layers = cluster.LayersOf(sizes, s.Need.Layers.Fixed)
		}
		if m.dice.chance(30) {
			s.Need.Layers.FixedOn = []cluster.Sum{{Product: "A10", AtLeast: s.Need.Layers.Fixed + cluster.Bytes(1+m.dice.roll(8))<<28}}
		}
		if s.Need.Layers.Spill = m.dice.chance(60); s.Need.Layers.Spill {
			s.Need.Layers.Least = m.dice.roll(total + 1)
		}
		if m.dice.chance(30) {
			s.Need.Devices = 1 + m.dice.roll(2)
		}
		s.Need.SameProduct = m.dice.chance(30)
	case 3:
		s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(4+8*m.dice.roll(6)) << 30}
	}
	if !s.Need.None() && m.dice.chance(40) {
		s.Need.Types = pick(m.dice, [][]string{{"cuda"}, {"rocm"}, {"cuda", "rocm"}})
	}
	if s.Need.Devices == 1 && len(state.Nodes()) > 0 && m.dice.chance(15) {
		if n := pick(m.dice, state.Nodes()); len(n.Devices) > 0 {
			s.Need.Selected = []cluster.DeviceID{pick(m.dice, n.Devices).ID}
		}
	}
	return s
}
