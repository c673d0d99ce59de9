package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// AddJob adds a random job.
func (w *World) AddJob() error {
	if len(w.site.jobs) >= w.maxJobs {
		return nil
	}
	j := &cluster.Job{
		ID: fmt.Sprintf("job/j%04d", w.step), Created: int64(w.dice.Roll(5)), Priority: int32(w.dice.Roll(3)),
		Queue: pick(w, leaves), Preemptible: w.chance(60),
	}
	if w.chance(50) {
		j.Labels = map[string]string{"app": pick(w, []string{"web", "db"})}
	}
	if !w.unconstrained && w.chance(20) {
		j.Affinity = append(j.Affinity, cluster.JobTerm{
			Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{pick(w, []string{"web", "db"})}}},
			Within:   pick(w, []string{"", "rack", "zone"}), Anti: w.chance(60), Weight: int32(w.dice.Roll(3) * 10),
		})
	}
	for a := range 1 + w.dice.Roll(2) {
		j.Alternatives = append(j.Alternatives, w.alternative(a, j.Preemptible))
	}
	if others := sorted(w.site.jobs); len(others) > 0 && w.chance(20) {
		// An ID with the ID of another job as its prefix is sorted between the IDs of
		// that job's tasks.
		j.ID = fmt.Sprintf("%s/alt0-0-%04d", pick(w, others), w.step)
	}
	if w.chance(20) {
		grace := pick(w, []int64{0, 30, 120}) * second
		j.StaleGrace = &grace
	}
	if w.chance(20) {
		j.Evicted, j.PreemptionDelay = w.clock, pick(w, []int64{20, 100})*second
	}
	w.site.jobs[j.ID] = j
	return w.apply(cluster.JobPut{Job: *j})
}

// ChangeJob changes the labels, priority, queue or minimum of a job. Its tasks
// continue to run.
func (w *World) ChangeJob() error {
	if len(w.site.jobs) == 0 {
		return nil
	}
	j := *w.site.jobs[pick(w, sorted(w.site.jobs))]
	j.Alternatives = slices.Clone(j.Alternatives)
	if j.Set.Name != "" {
		return nil // replicas share the spec of their model
	}
	switch w.dice.Roll(4) {
	case 0:
		j.Labels = map[string]string{"app": pick(w, []string{"web", "db"})}
	case 1:
		j.Priority = int32(w.dice.Roll(3))
	case 2:
		j.Queue = pick(w, leaves)
	case 3:
		if a := &j.Alternatives[w.dice.Roll(len(j.Alternatives))]; a.Whole == nil && len(a.Subgroups) == 0 {
			a.Min = 1 + w.dice.Roll(len(a.Tasks))
		}
	}
	w.site.jobs[j.ID] = &j
	if err := w.apply(cluster.JobPut{Job: j}); err != nil {
		return err
	}
	return w.restartTorn()
}

func (w *World) alternative(a int, preemptible bool) cluster.Alternative {
	shape := w.shape()
	shape.Preemptible = preemptible
	count := 1 + w.dice.Roll(4)
	alt := cluster.Alternative{Name: fmt.Sprintf("alt%d", a), Min: count}
	if w.chance(6) {
		memory := cluster.Bytes(8+w.dice.Roll(200)) << 30
		shape.Need = cluster.Need{WholeNode: true}
		shape.Isolation.GPU = ""
		alt.Whole = &cluster.WholeNodes{Replicas: count, NodesPerReplica: 1, Memory: memory}
	} else if w.chance(40) {
		alt.Min = 1 + w.dice.Roll(count)
	}
	other := shape
	if alt.Whole == nil && w.chance(30) {
		other = w.shape() // a gang with two shapes
		other.Preemptible = preemptible
	}
	for i := range count {
		s := shape
		if i%2 == 1 {
			s = other
		}
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("alt%d-%d", a, i), Index: i, Shape: &s})
	}
	if w.chance(20) {
		alt.Topology = w.topology()
	}
	if alt.Whole == nil && w.chance(25) {
		w.addSubgroups(&alt)
	}
	return alt
}

// addSubgroups assigns the tasks to subgroups. Some tasks may be in none.
func (w *World) addSubgroups(alt *cluster.Alternative) {
	alt.Subgroups = make([]cluster.Subgroup, 1+w.dice.Roll(2))
	members := make([]int, len(alt.Subgroups))
	for _, t := range alt.Tasks {
		if t.Subgroup = w.dice.Roll(len(members) + 1); t.Subgroup > 0 {
			members[t.Subgroup-1]++
		}
	}
	for i := range alt.Subgroups {
		g := &alt.Subgroups[i]
		g.Name, g.Min = fmt.Sprintf("g%d", i), w.dice.Roll(members[i]+1)
		if w.chance(30) {
			g.Topology = w.topology()
		}
	}
	if w.chance(40) {
		w.nestSubgroups(alt)
	}
}

// nestSubgroups makes one subgroup the child of another, or makes some subgroups
// surplus.
func (w *World) nestSubgroups(alt *cluster.Alternative) {
	if len(alt.Subgroups) > 1 && w.chance(50) {
		alt.Subgroups[1].Parent = 1
	}
	if alt.MinSubgroups = w.dice.Roll(2); w.chance(50) && len(alt.Subgroups) > 1 && alt.Subgroups[1].Parent == 1 {
		alt.Subgroups[0].MinSubgroups = 1
	}
	members := make([]int, len(alt.Subgroups)+1)
	for _, t := range alt.Tasks {
		members[t.Subgroup]++
	}
	alt.Min = min(alt.Min, members[0]+alt.LeastSum(func(sub int) int { return members[sub] }))
	if alt.Min < 1 { // the required subgroup has no tasks
		alt.Min, alt.MinSubgroups = 1, 0
	}
}

func (w *World) topology() cluster.Topology {
	var t cluster.Topology
	if w.chance(60) {
		t.Required = pick(w, []string{"rack", "zone"})
	}
	if w.chance(50) {
		t.Preferred = [][]string{{"rack"}, {"zone"}, {"rack", "zone"}, {"zone", "rack"}}[w.dice.Roll(4)]
	}
	return t
}

// shape returns a random shape. It uses few values, so that shapes repeat and the
// index can use what it remembers of them.
func (w *World) shape() cluster.Shape {
	s := cluster.Shape{Resources: cluster.Resources{
		{Name: cluster.CPU, Value: int64(w.dice.Roll(4)) * 2000},
		{Name: cluster.Memory, Value: int64(w.dice.Roll(3)) * 16 << 30},
	}}
	s.LeftOut = cluster.LeftOut(s.Resources)
	if !w.unconstrained && w.chance(5) {
		s.Resources = s.Resources.With("rdma/hca", 1)
	}
	switch w.dice.Roll(8) {
	case 0, 1:
		s.Need.Devices = 1 + w.dice.Roll(4)
	case 2, 3:
		s.Need = cluster.Need{Devices: 1 + w.dice.Roll(2), Share: []cluster.Milli{200, 300, 500, 810}[w.dice.Roll(4)]}
	case 4:
		s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(4+8*w.dice.Roll(4)) << 30}
	case 5:
		s.Need = cluster.Need{Devices: 1, Partition: "1g.10gb"}
	case 6:
		s.Need.Layers = &cluster.Layers{Total: 8, Bytes: cluster.Bytes(1+w.dice.Roll(8)) << 30, Fixed: 1 << 30, Least: w.dice.Roll(8), Spill: w.chance(50)}
	}
	if w.unconstrained {
		return s
	}
	if s.Need.Devices > 1 && w.chance(30) {
		s.Need.SameProduct = true
	}
	if s.Need.Devices > 0 && s.Need.Partition == "" && w.chance(15) {
		s.Need.Products = []string{pick(w, deviceKinds).product}
	}
	if w.chance(20) {
		s.Selector = []cluster.Label{{Key: "rack", Value: pick(w, []string{"r1", "r2"})}}
	}
	if w.chance(10) {
		s.Required = []cluster.Term{{{Key: "zone", Operator: pick(w, []cluster.Operator{cluster.Exists, cluster.DoesNotExist})}}}
	}
	if w.chance(15) {
		s.Preferred = []cluster.Preference{{Weight: int32(w.dice.Roll(20) - 10), Term: cluster.Term{{Key: "zone", Operator: cluster.In, Values: []string{"a"}}}}}
	}
	if w.chance(30) {
		s.Tolerations = []cluster.Toleration{{Key: "gpu", Operator: "Exists"}}
	}
	if w.chance(25) {
		s.Isolation.GPU = pick(w, cluster.GPUClasses)
		if s.Isolation.GPU == cluster.GPUSessionExclusive && w.chance(60) {
			s.Isolation.Session = "s1"
		}
	}
	if w.chance(20) {
		s.Isolation.CPU = pick(w, cluster.CPUClasses)
		if s.Isolation.CPU != cluster.CPUBestEffort {
			s.Resources = s.Resources.With(cluster.CPU, s.Cores()*1000)
		}
	}
	if w.chance(15) {
		s.Cell = pick(w, []string{"west", "east"})
	}
	return s
}
