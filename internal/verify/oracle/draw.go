package oracle

import (
	"fmt"
	"strconv"

	"github.com/berth-project/berth/cluster"
)

// jobs draws running jobs, at random locations, and pending jobs.
func (d *drawing) jobs() error {
	running := d.between(2, 7)
	if d.kind == Allocate {
		running = d.rand.IntN(4)
	}
	waiting := 1
	if running < 7 && d.chance(20) {
		waiting = 2
	}
	for i := range running {
		if d.kind.usesAll() && d.tasks >= 8 {
			break
		}
		if err := d.addRunning(i); err != nil {
			return err
		}
	}
	if d.chance(15) {
		if err := d.state.Apply(cluster.BudgetPut{Budget: d.budget()}); err != nil {
			return err
		}
	}
	for i := range waiting {
		if err := d.addWaiting(i); err != nil {
			return err
		}
	}
	return nil
}

// draws is how often, at most, a pending job is drawn again because it is not relevant. Most
// random gangs of Allocate do not fit or need no search, and for most random jobs of the
// other kinds no other job may be evicted.
var draws = map[Kind]int{Allocate: 20, Reclaim: 8, Combined: 8, Topology: 4, Alternatives: 4, Whole: 4, Costs: 8}

// addWaiting adds a pending job. It tries to draw one that is relevant.
func (d *drawing) addWaiting(i int) error {
	for more := draws[d.kind]; ; more-- {
		j := d.waiting(i)
		if err := d.state.Apply(cluster.JobPut{Job: *j}); err != nil || more <= 0 {
			return err
		}
		judge := newJudge(d.kind, d.state, d.now)
		if judge.isRelevant(judge.objects.find(j.ID)) {
			return nil
		}
		if err := d.state.Apply(cluster.JobGone{Job: j.ID}); err != nil {
			return err
		}
	}
}

// addRunning adds a running job at random locations. If there is no room for its
// minimum, the job is not added.
func (d *drawing) addRunning(i int) error {
	j := d.job(fmt.Sprintf("job/r%d", i+1), d.chance(85))
	if d.chance(50) {
		j.Labels = map[string]string{"app": pick(d, "web", "train")}
	}
	if d.kind == Costs {
		d.setCost(j)
	}
	if err := d.state.Apply(cluster.JobPut{Job: *j}); err != nil {
		return err
	}
	o := newObjects(d.state.View(), d.now)
	p := newPlacement(o)
	f := o.find(j.ID)
	count := d.between(j.Alternatives[0].Min, len(f.tasks))
	for _, t := range f.tasks {
		if count > 0 && d.place(p, t) {
			count--
		}
	}
	if !p.hasMinimum(f) {
		return d.state.Apply(cluster.JobGone{Job: j.ID})
	}
	for _, t := range f.tasks {
		if !p.isPlaced(t) {
			continue
		}
		at := p.at[t.index]
		started := d.now - int64(d.rand.IntN(120))*minute
		if err := d.state.CanRun(t.task, o.nodes[at.node], at.claims); err != nil {
			return err
		}
		if err := d.state.Apply(cluster.SeenOn(t.task, o.nodes[at.node], at.claims, started)); err != nil {
			return err
		}
		d.tasks++
	}
	return nil
}

// place places the task on random devices of a random node. It reports whether there is room
// for the task.
func (d *drawing) place(p *placement, t *task) bool {
	if p.queues.violation(t.form, t.amounts) != "" {
		return false
	}
	at, ok := d.chooseLocation(p.room, t, func(n int) bool { return p.inDomain(t, n) })
	if ok {
		p.place(t, at)
	}
	return ok
}

// chooseLocation returns a random location of the task on the nodes that the function allows.
// It returns false if there is no room for the task.
func (d *drawing) chooseLocation(room *freeRoom, t *task, allows func(n int) bool) (location, bool) {
	var locations []location
	for n := range room.nodes {
		if allows(n) {
			room.choices(t, n, func(claims []cluster.Claim) bool {
				locations = append(locations, location{node: n, claims: claims, bound: true})
				return true
			})
		}
	}
	if len(locations) == 0 {
		return location{}, false
	}
	return locations[d.rand.IntN(len(locations))], true
}

// setCost gives the job a random cost. It also reduces the number of different priorities, so
// that costs decide more often.
func (d *drawing) setCost(j *cluster.Job) {
	j.Priority /= 2
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[costLabel] = strconv.Itoa(d.rand.IntN(10))
}

// waiting draws a pending job.
func (d *drawing) waiting(i int) *cluster.Job {
	j := d.job(fmt.Sprintf("job/w%d", i+1), d.chance(70))
	if d.kind == Preempt || d.kind.usesAll() {
		j.Priority += int32(d.rand.IntN(3))
	}
	switch d.kind {
	case Alternatives:
		d.addForms(j)
	case Whole:
		d.useWholeNodes(j)
	}
	if d.kind == Allocate && d.chance(80) {
		d.cutFromFreeRoom(j)
	}
	if all := d.state.Jobs(); len(all) > 0 && d.chance(8) {
		j.JobDetails.Displaced = []string{all[d.rand.IntN(len(all))].ID}
	}
	return j
}

// addForms adds alternatives with other shapes to the job.
func (d *drawing) addForms(j *cluster.Job) {
	for i := range d.between(1, 2) {
		other := d.job(j.ID, j.Preemptible).Alternatives[0]
		other.Name = fmt.Sprintf("form-%d", i+2)
		j.Alternatives = append(j.Alternatives, other)
	}
}

// useWholeNodes changes the job to one that requests whole nodes of one group.
func (d *drawing) useWholeNodes(j *cluster.Job) {
	count := d.between(1, 2)
	alt := cluster.Alternative{Min: count, Whole: &cluster.WholeNodes{Replicas: count, NodesPerReplica: 1, Memory: gib}}
	shape := cluster.Shape{Preemptible: j.Preemptible, Need: cluster.Need{WholeNode: true}, Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(d.rand.IntN(3)) * 1000}}}
	for i := range count {
		copied := shape
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprint(i), Index: i, Shape: &copied})
	}
	j.Alternatives = []cluster.Alternative{alt}
}

// cutFromFreeRoom draws the shapes of the job one after the other so that each fits into the
// room that the shapes before it leave free. So the job fits, but only in few placements.
func (d *drawing) cutFromFreeRoom(j *cluster.Job) {
	o := newObjects(d.state.View(), d.now)
	room := newPlacement(o).room
	alt := &j.Alternatives[0]
	for i := range alt.Tasks {
		for range 8 {
			shape := d.shape(j.Preemptible)
			t := &task{task: &cluster.Task{Shape: &shape}, amounts: o.amounts(&shape)}
			if at, ok := d.chooseLocation(room, t, func(int) bool { return true }); ok {
				room.take(t, at, +1)
				alt.Tasks[i].Shape = &shape
				break
			}
		}
	}
	alt.Min = max(alt.Min, len(alt.Tasks)-1)
	d.rand.Shuffle(len(alt.Tasks), func(x, y int) { alt.Tasks[x].Shape, alt.Tasks[y].Shape = alt.Tasks[y].Shape, alt.Tasks[x].Shape })
}

// job draws a job. In most jobs all tasks have one shape, and all tasks are in the minimum.
func (d *drawing) job(id string, preemptible bool) *cluster.Job {
	j := &cluster.Job{ID: id, Queue: d.leaves[d.rand.IntN(len(d.leaves))], Priority: int32(d.rand.IntN(3)), Created: int64(d.rand.IntN(100)), Preemptible: preemptible, JobDetails: &cluster.JobDetails{}}
	count := 1
	switch {
	case d.kind.usesAll():
		count = pick(d, 1, 1, 1, 2, 2, 3)
	case d.chance(50) || d.kind == Allocate:
		count = d.between(2, 4)
	}
	mixed := d.chance(25)
	if d.kind == Allocate {
		mixed = d.chance(80)
	}
	alt := cluster.Alternative{Min: count}
	if d.kind == Topology && d.chance(60) {
		alt.Topology.Required = rack
	}
	if d.chance(35) {
		alt.Min = d.between(1, count)
	}
	shape := d.shape(preemptible)
	for i := range count {
		if i > 0 && mixed && d.chance(60) {
			shape = d.shape(preemptible)
		}
		copied := shape
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprint(i), Index: i, Shape: &copied})
	}
	if count > 2 && d.chance(15) { // a leader and its workers
		alt.Subgroups = []cluster.Subgroup{{Name: "leader", Min: 1}, {Name: "workers", Min: d.rand.IntN(count)}}
		for i, t := range alt.Tasks {
			t.Subgroup = 1 + min(i, 1)
		}
	}
	j.Alternatives = []cluster.Alternative{alt}
	return j
}

func (d *drawing) shape(preemptible bool) cluster.Shape {
	s := cluster.Shape{Preemptible: preemptible, Resources: cluster.Resources{
		{Name: cluster.CPU, Value: int64(d.rand.IntN(3)) * 1000}, {Name: cluster.Memory, Value: int64(d.rand.IntN(4)) * int64(gib)},
	}}
	if d.tight {
		s.Resources[0].Value = int64(d.between(1, 6)) * 1000
	}
	switch kind := d.rand.IntN(20); {
	case kind < 11:
		s.Need.Devices = d.between(1, min(4, d.largest))
	case kind < 12:
		s.Need.Devices = d.largest
	case kind < 17:
		s.Need = cluster.Need{Devices: 1, Share: pick[cluster.Milli](d, 200, 250, 300, 400, 500, 600, 700)}
	case kind < 18:
		s.Need = cluster.Need{Devices: min(2, d.largest), Share: pick[cluster.Milli](d, 300, 500)}
	case kind < 19 && d.uniform:
		s.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(d.between(10, 60)) * gib}
	default:
		s.Resources[0].Value = int64(d.between(1, 8)) * 1000 // no device at all
	}
	if s.Need.Devices > 0 && !d.uniform && d.chance(30) {
		s.Need.Products = []string{pick(d, product, another)}
	}
	if s.Need.Devices > 0 && d.chance(8) {
		s.Isolation.GPU = pick(d, cluster.GPUDeviceExclusive, cluster.GPUSessionExclusive)
		if s.Isolation.GPU == cluster.GPUSessionExclusive {
			s.Isolation.Session = pick(d, "s1", "s2")
		}
	}
	return s
}

func (d *drawing) budget() cluster.Budget {
	b := cluster.Budget{Name: "keep", Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{pick(d, "web", "train")}}},
		Unavailable: d.chance(50), Percent: d.chance(40)}
	b.Bound = d.between(1, 3)
	if b.Percent {
		b.Bound = pick(d, 25, 50, 75)
	}
	return b
}
