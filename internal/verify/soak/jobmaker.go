package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// jobMaker makes random jobs.
type jobMaker struct {
	dice *dice
	// unconstrained jobs have no constraints such as selectors: only room limits where
	// their tasks can be placed.
	unconstrained bool
}

// job returns a random job, given the time and the IDs of all other jobs.
func (m *jobMaker) job(now int64, others []string) *cluster.Job {
	j := &cluster.Job{
		ID: fmt.Sprintf("job/j%04d", m.dice.step), Created: int64(m.dice.roll(5)), Priority: int32(m.dice.roll(3)),
		Queue: pick(m.dice, leaves), Preemptible: m.dice.chance(60), JobDetails: &cluster.JobDetails{},
	}
	if m.dice.chance(50) {
		j.Labels = map[string]string{"app": pick(m.dice, apps)}
	}
	if !m.unconstrained && m.dice.chance(20) {
		j.JobDetails.Affinity = append(j.Affinity, cluster.JobTerm{
			Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{pick(m.dice, apps)}}},
			Within:   pick(m.dice, []string{"", "rack", "zone"}), Anti: m.dice.chance(60), Weight: int32(m.dice.roll(3) * 10),
		})
	}
	if m.dice.chance(30) { // jobs may end earlier or later than they state
		j.RunFor = int64(1+m.dice.roll(600)) * second
	}
	for a := range 1 + m.dice.roll(2) {
		j.Alternatives = append(j.Alternatives, m.alternative(a, j.Preemptible))
	}
	if len(others) > 0 && m.dice.chance(20) {
		// An ID with the ID of another job as its prefix is sorted between the IDs of
		// that job's tasks.
		j.ID = fmt.Sprintf("%s/alt0-0-%04d", pick(m.dice, others), m.dice.step)
	}
	if m.dice.chance(20) {
		grace := pick(m.dice, []int64{0, 30, 120}) * second
		j.JobDetails.StaleGrace = &grace
	}
	if m.dice.chance(20) {
		j.JobDetails.Evicted, j.JobDetails.PreemptionDelay = now, pick(m.dice, []int64{20, 100})*second
	}
	return j
}

// apps lists the values of the label app, which budgets and affinities select.
var apps = []string{"web", "db"}

// change changes the labels, priority, queue or minimum of a job.
func (m *jobMaker) change(j *cluster.Job) {
	switch m.dice.roll(4) {
	case 0:
		j.Labels = map[string]string{"app": pick(m.dice, apps)}
	case 1:
		j.Priority = int32(m.dice.roll(3))
	case 2:
		j.Queue = pick(m.dice, leaves)
	case 3:
		if a := &j.Alternatives[m.dice.roll(len(j.Alternatives))]; a.Whole == nil && len(a.Subgroups) == 0 {
			a.Min = 1 + m.dice.roll(len(a.Tasks))
		}
	}
}

// alternative returns a random alternative with number a: a gang, some with
// subgroups, or replicas on whole nodes.
func (m *jobMaker) alternative(a int, preemptible bool) cluster.Alternative {
	shape := m.shape()
	shape.Preemptible = preemptible
	count := 1 + m.dice.roll(4)
	alt := cluster.Alternative{Name: fmt.Sprintf("alt%d", a), Min: count}
	if m.dice.chance(6) {
		memory := cluster.Bytes(8+m.dice.roll(200)) << 30
		shape.Need = cluster.Need{WholeNode: true}
		shape.Isolation.GPU = ""
		alt.Whole = &cluster.WholeNodes{Replicas: count, NodesPerReplica: 1, Memory: memory}
	} else if m.dice.chance(40) {
		alt.Min = 1 + m.dice.roll(count)
	}
	other := shape
	if alt.Whole == nil && m.dice.chance(30) {
		other = m.shape() // every second task has this shape
		other.Preemptible = preemptible
	}
	for i := range count {
		s := shape
		if i%2 == 1 {
			s = other
		}
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("alt%d-%d", a, i), Index: i, Shape: &s})
	}
	if m.dice.chance(20) {
		alt.Topology = m.topology()
	}
	if alt.Whole == nil && m.dice.chance(25) {
		m.addSubgroups(&alt)
	}
	return alt
}

// addSubgroups assigns the tasks to subgroups. Some tasks may be in none.
func (m *jobMaker) addSubgroups(alt *cluster.Alternative) {
	alt.Subgroups = make([]cluster.Subgroup, 1+m.dice.roll(2))
	members := make([]int, len(alt.Subgroups))
	for _, t := range alt.Tasks {
		if t.Subgroup = m.dice.roll(len(members) + 1); t.Subgroup > 0 {
			members[t.Subgroup-1]++
		}
	}
	for i := range alt.Subgroups {
		g := &alt.Subgroups[i]
		g.Name, g.Min = fmt.Sprintf("g%d", i), m.dice.roll(members[i]+1)
		if m.dice.chance(30) {
			g.Topology = m.topology()
		}
	}
	if m.dice.chance(40) {
		m.nestSubgroups(alt)
	}
}

// nestSubgroups makes one subgroup the child of another, or lowers the number of
// subgroups that are required.
func (m *jobMaker) nestSubgroups(alt *cluster.Alternative) {
	if len(alt.Subgroups) > 1 && m.dice.chance(50) {
		alt.Subgroups[1].Parent = 1
	}
	if alt.MinSubgroups = m.dice.roll(2); m.dice.chance(50) && len(alt.Subgroups) > 1 && alt.Subgroups[1].Parent == 1 {
		alt.Subgroups[0].MinSubgroups = 1
	}
	members := make([]int, len(alt.Subgroups)+1)
	for _, t := range alt.Tasks {
		members[t.Subgroup]++
	}
	alt.Min = min(alt.Min, members[0]+alt.LeastSum(func(sub int) int { return members[sub] }))
	if alt.Min < 1 { // no task is in a subgroup that is required
		alt.Min, alt.MinSubgroups = 1, 0
	}
}

func (m *jobMaker) topology() cluster.Topology {
	var t cluster.Topology
	if m.dice.chance(60) {
		t.Required = pick(m.dice, []string{"rack", "zone"})
	}
	if m.dice.chance(50) {
		t.Preferred = [][]string{{"rack"}, {"zone"}, {"rack", "zone"}, {"zone", "rack"}}[m.dice.roll(4)]
	}
	return t
}

// shape returns a random shape. It uses few values, so that equal shapes are common
// and the rank index is used for more than one task.
func (m *jobMaker) shape() cluster.Shape {
	s := cluster.Shape{Resources: cluster.Resources{
		{Name: cluster.CPU, Value: int64(m.dice.roll(4)) * 2000},
		{Name: cluster.Memory, Value: int64(m.dice.roll(3)) * 16 << 30},
	}}
	s.LeftOut = cluster.LeftOut(s.Resources)
	if !m.unconstrained && m.dice.chance(5) {
		s.Resources = s.Resources.With("rdma/hca", 1)
	}
	switch m.dice.roll(8) {
	case 0, 1:
		s.Need.Devices = 1 + m.dice.roll(4)
	case 2, 3:
		s.Need = cluster.Need{Devices: 1 + m.dice.roll(2), Share: []cluster.Milli{200, 300, 500, 810}[m.dice.roll(4)]}
	case 4:
		s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(4+8*m.dice.roll(4)) << 30}
	case 5:
		s.Need = cluster.Need{Devices: 1, Partition: "1g.10gb"}
	case 6:
		s.Need.Layers = &cluster.Layers{Total: 8, Bytes: cluster.Bytes(1+m.dice.roll(8)) << 30, Fixed: 1 << 30, Least: m.dice.roll(8), Spill: m.dice.chance(50)}
	}
	if !m.unconstrained {
		m.constrain(&s)
	}
	return s
}

// constrain adds random constraints to a shape: products, labels, taints, isolation
// and cells.
func (m *jobMaker) constrain(s *cluster.Shape) {
	if s.Need.Devices > 1 && m.dice.chance(30) {
		s.Need.SameProduct = true
	}
	if s.Need.Devices > 0 && s.Need.Partition == "" && m.dice.chance(15) {
		s.Need.Products = []string{pick(m.dice, deviceProducts).name}
	}
	if m.dice.chance(20) {
		s.Selector = []cluster.Label{{Key: "rack", Value: pick(m.dice, []string{"r1", "r2"})}}
	}
	if m.dice.chance(10) {
		s.Required = []cluster.Term{{{Key: "zone", Operator: pick(m.dice, []cluster.Operator{cluster.Exists, cluster.DoesNotExist})}}}
	}
	if m.dice.chance(15) {
		s.Preferred = []cluster.Preference{{Weight: int32(m.dice.roll(20) - 10), Term: cluster.Term{{Key: "zone", Operator: cluster.In, Values: []string{"a"}}}}}
	}
	if m.dice.chance(30) {
		s.Tolerations = []cluster.Toleration{{Key: "gpu", Operator: "Exists"}}
	}
	if m.dice.chance(25) {
		s.Isolation.GPU = pick(m.dice, cluster.GPUClasses)
		if s.Isolation.GPU == cluster.GPUSessionExclusive && m.dice.chance(60) {
			s.Isolation.Session = "s1"
		}
	}
	if m.dice.chance(20) {
		s.Isolation.CPU = pick(m.dice, cluster.CPUClasses)
		if s.Isolation.CPU != cluster.CPUBestEffort {
			s.Resources = s.Resources.With(cluster.CPU, s.Cores()*1000)
		}
	}
	if m.dice.chance(15) {
		s.Cell = pick(m.dice, []string{"west", "east"})
	}
}
