package oracle

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// jobs adds running jobs, each at a random location, and pending jobs.
func (d *drawing) jobs() error {
	running := d.between(2, 7)
	if d.Kind == Allocate {
		running = d.IntN(4)
	}
	waiting := 1
	if running < 7 && d.chance(20) {
		waiting = 2
	}
	for i := range running {
		if d.Kind.mixed() && d.tasks >= 8 {
			break
		}
		if err := d.addRunning(i); err != nil {
			return err
		}
	}
	if d.chance(15) {
		if err := d.State.Apply(cluster.BudgetPut{Budget: d.budget()}); err != nil {
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

// draws is how often a pending job is drawn until it is relevant. Few random gangs fit
// and need a search, and few may evict other jobs.
var draws = map[Kind]int{Allocate: 20, Reclaim: 8, Combined: 8, Topology: 4, Alternatives: 4, Whole: 4, Costs: 8}

// addWaiting adds a pending job.
func (d *drawing) addWaiting(i int) error {
	for more := draws[d.Kind]; ; more-- {
		j := d.waiting(i)
		if err := d.State.Apply(cluster.JobPut{Job: *j}); err != nil || more <= 0 {
			return err
		}
		g := newChecker(d.Kind, d.State, d.Now)
		if g.relevant(g.booked.find(j.ID)) {
			return nil
		}
		if err := d.State.Apply(cluster.JobGone{Job: j.ID}); err != nil {
			return err
		}
	}
}

// addRunning adds a running job at a random location. If there is no room for its
// minimum, the job is not added.
func (d *drawing) addRunning(i int) error {
	j := d.job(fmt.Sprintf("job/r%d", i+1), d.chance(85))
	if d.chance(50) {
		j.Labels = map[string]string{"app": pick(d, "web", "train")}
	}
	if d.Kind == Costs {
		d.setCost(j)
	}
	if err := d.State.Apply(cluster.JobPut{Job: *j}); err != nil {
		return err
	}
	b := newBoard(newTable(d.State.View(), d.Now))
	k := b.find(j.ID)
	want := d.between(j.Alternatives[0].Min, len(k.tasks))
	for _, t := range k.tasks {
		if want > 0 && d.place(b, t) {
			want--
		}
	}
	if !b.hasMinimum(k, 0) {
		return d.State.Apply(cluster.JobGone{Job: j.ID})
	}
	for _, t := range k.tasks {
		if s := b.at[t.index]; s.node >= 0 {
			started := d.Now - int64(d.IntN(120))*minute
			if err := d.State.CanRun(t.Task, b.nodes[s.node], s.claims); err != nil {
				return err
			}
			if err := d.State.Apply(cluster.SeenOn(t.Task, b.nodes[s.node], s.claims, started)); err != nil {
				return err
			}
			d.tasks++
		}
	}
	return nil
}

// place places the task on random devices of a random node. It reports whether there are
// any.
func (d *drawing) place(b *board, t *task) bool {
	if b.queueViolation(t.job, t.asks) != "" {
		return false
	}
	var seats []location
	for n := range b.nodes {
		if !b.inDomain(t, n) {
			continue
		}
		b.choices(t, n, func(claims []cluster.Claim) bool {
			seats = append(seats, location{node: n, claims: claims, bound: true})
			return true
		})
	}
	if len(seats) == 0 {
		return false
	}
	b.place(t, seats[d.IntN(len(seats))])
	return true
}

func (d *drawing) waiting(i int) *cluster.Job {
	j := d.job(fmt.Sprintf("job/w%d", i+1), d.chance(70))
	if d.Kind == Preempt || d.Kind.mixed() {
		j.Priority += int32(d.IntN(3))
	}
	switch d.Kind {
	case Alternatives:
		d.addForms(j)
	case Whole:
		d.useWholeNodes(j)
	}
	if d.Kind == Allocate && d.chance(80) {
		d.cutFromFreeRoom(j)
	}
	if all := d.State.Jobs(); len(all) > 0 && d.chance(8) {
		j.Displaced = []string{all[d.IntN(len(all))].ID}
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
	shape := cluster.Shape{Preemptible: j.Preemptible, Need: cluster.Need{WholeNode: true}, Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(d.IntN(3)) * 1000}}}
	for i := range count {
		copied := shape
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprint(i), Index: i, Shape: &copied})
	}
	j.Alternatives = []cluster.Alternative{alt}
}

// cutFromFreeRoom draws the job's shapes one after the other so that each fits into the
// free room that the others leave. The job then just fits.
func (d *drawing) cutFromFreeRoom(j *cluster.Job) {
	b := newBoard(newTable(d.State.View(), d.Now))
	k := &job{Job: j, alt: &cluster.Alternative{}, branch: []*queue{{limit: vector{-1, -1, -1}, declared: vector{-1, -1, -1}}}}
	k.branch[0].index = len(b.queues)
	b.used, b.firm, b.at = append(b.used, vector{}), append(b.firm, vector{}), append(b.at, location{node: -1})
	alt := &j.Alternatives[0]
	for i := range alt.Tasks {
		for range 8 {
			shape := d.shape(j.Preemptible)
			t := &task{Task: &cluster.Task{Shape: &shape}, index: len(b.at) - 1, job: k}
			t.asks = b.asks(t)
			if d.place(b, t) {
				b.at[t.index] = location{node: -1} // its room stays in use for the next shapes
				alt.Tasks[i].Shape = &shape
				break
			}
		}
	}
	alt.Min = max(alt.Min, len(alt.Tasks)-1)
	d.Shuffle(len(alt.Tasks), func(x, y int) { alt.Tasks[x].Shape, alt.Tasks[y].Shape = alt.Tasks[y].Shape, alt.Tasks[x].Shape })
}

// job draws a job. Mostly all tasks have one shape, and mostly all are in the minimum.
func (d *drawing) job(id string, preemptible bool) *cluster.Job {
	j := &cluster.Job{ID: id, Queue: d.leaves[d.IntN(len(d.leaves))], Priority: int32(d.IntN(3)), Created: int64(d.IntN(100)), Preemptible: preemptible}
	count := 1
	switch {
	case d.Kind.mixed():
		count = pick(d, 1, 1, 1, 2, 2, 3)
	case d.chance(50) || d.Kind == Allocate:
		count = d.between(2, 4)
	}
	mixed := d.chance(25)
	if d.Kind == Allocate {
		mixed = d.chance(80)
	}
	alt := cluster.Alternative{Min: count}
	if d.Kind == Topology && d.chance(60) {
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
		alt.Subgroups = []cluster.Subgroup{{Name: "leader", Min: 1}, {Name: "workers", Min: d.IntN(count)}}
		for i, t := range alt.Tasks {
			t.Subgroup = 1 + min(i, 1)
		}
	}
	j.Alternatives = []cluster.Alternative{alt}
	return j
}

func (d *drawing) shape(preemptible bool) cluster.Shape {
	s := cluster.Shape{Preemptible: preemptible, Resources: cluster.Resources{
		{Name: cluster.CPU, Value: int64(d.IntN(3)) * 1000}, {Name: cluster.Memory, Value: int64(d.IntN(4)) * int64(gib)},
	}}
	if d.tight {
		s.Resources[0].Value = int64(d.between(1, 6)) * 1000
	}
	switch kind := d.IntN(20); {
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

func (w *table) find(id string) *job {
	for _, j := range w.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}
