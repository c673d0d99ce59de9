package cluster_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// world draws random changes of every kind. They use few names, so that many changes concern
// the same objects.
type world struct {
	*rapid.T
	state *cluster.State
	now   int64
	count map[string]int // number of changes, by kind
}

func newWorld(t *rapid.T) *world {
	return &world{T: t, state: cluster.NewState(), count: map[string]int{}}
}

func (w *world) roll(n int) int { return rapid.IntRange(0, n-1).Draw(w.T, "roll") }

func (w *world) chance(percent int) bool { return w.roll(100) < percent }

func of[T any](w *world, list ...T) T { return list[w.roll(len(list))] }

// apply applies a change that State must accept.
func (w *world) apply(c cluster.Change) cluster.Change {
	if err := w.state.Apply(c); err != nil {
		w.Fatalf("%s: %v", c.Kind(), err)
	}
	w.count[c.Kind()]++
	return c
}

// fact draws a fact.
func (w *world) fact() cluster.Change {
	switch w.roll(20) {
	case 0, 1, 2:
		return w.nodePut()
	case 3:
		return w.nodeSeen()
	case 4:
		free := map[string]cluster.Bytes{}
		name := w.node()
		for i := range 3 {
			if w.chance(50) {
				free[uuid(name, i)] = cluster.Bytes(w.roll(30)) << 30
			}
		}
		return cluster.NodeRead{Name: name, Free: free}
	case 5:
		return cluster.NodeGone{Name: w.node()}
	case 6:
		return w.queuePut()
	case 7:
		if w.chance(50) {
			return cluster.QueueGone{Name: of(w, "root", "a", "b", "default")}
		}
		return cluster.BudgetGone{Name: of(w, "x", "y")}
	case 8:
		return cluster.BudgetPut{Budget: cluster.Budget{Name: of(w, "x", "y"), Bound: w.roll(3), Percent: w.chance(30), Unavailable: w.chance(50)}}
	case 9, 10:
		return w.jobPut()
	case 11:
		if w.chance(30) {
			return cluster.JobSeen{Job: w.job(), Health: of(w, cluster.HealthFailed, cluster.HealthRunning, ""), Offload: cluster.Offload{Layers: w.roll(3), Total: 3}}
		}
		return cluster.JobGone{Job: w.job(), UID: w.uid()}
	case 12:
		return cluster.SetScaled{Set: of(w, "m", "n"), Desired: w.roll(4)}
	case 13, 14:
		return w.taskPut()
	case 15, 16, 17:
		return w.taskSeen()
	case 18:
		gone := cluster.TaskGone{Task: w.task(), UID: w.uid()}
		if w.chance(30) {
			gone.Rejected = w.now + int64(1+w.roll(50))
		}
		if w.chance(40) {
			gone.Ended = of(w, cluster.Succeeded, cluster.Failed)
		}
		return gone
	}
	return w.answer()
}

func uuid(node string, i int) string { return fmt.Sprintf("GPU-%s-%d", node, i) }

func (w *world) node() string { return of(w, "n1", "n2", "n3") }
func (w *world) uid() string  { return of(w, "", "", "u1", "u2") }
func (w *world) job() string {
	return of(w, "job/c1", "job/c2", "job/c1/w0", "job/m1", "job/m2", "pod/o1", "pod/o2")
}

func (w *world) shape() *cluster.Shape {
	s := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(1+w.roll(3)) * 1000}, {Name: cluster.Memory, Value: int64(w.roll(3)) << 30}}}
	s.LeftOut = cluster.LeftOut(s.Resources)
	switch w.roll(6) {
	case 0:
		s.Need.Devices = 1 + w.roll(2)
	case 1:
		s.Need.Devices, s.Need.Share = 1, cluster.Milli(of(w, 200, 500))
	case 2:
		s.Need.Devices, s.Need.Memory = 1, cluster.Bytes(4+w.roll(10))<<30
	case 3:
		s.Need.Devices, s.Isolation.GPU = 1, cluster.GPUDeviceExclusive
	case 4:
		s.Isolation.CPU = cluster.CPUStrictIsolated
	}
	s.Key = of(w, "", "", "k1", "k2")
	return s
}

func (w *world) nodePut() cluster.Change {
	n := cluster.Node{
		Name: w.node(), Cell: of(w, "", "west"), Labels: map[string]string{"rack": of(w, "r1", "r2")}, Unschedulable: w.chance(10), Phase: of(w, "", cluster.PhaseReady, "NOT_READY"), Unified: w.chance(10),
		Resources:          []cluster.Ledger{{Name: cluster.Memory, Capacity: int64(8+8*w.roll(4)) << 30}, {Name: cluster.CPU, Capacity: int64(2+2*w.roll(4)) * 1000}},
		SupportedIsolation: cluster.SupportedIsolation{GPU: []cluster.GPUClass{cluster.GPUDeviceExclusive}, CPU: []cluster.CPUClass{cluster.CPUStrictIsolated}, IsolableCores: int64(w.roll(4))},
	}
	if w.chance(20) {
		n.Taints = []cluster.Taint{{Key: "gpu", Value: "only", Effect: cluster.Effects[0]}}
	}
	for i := range w.roll(4) {
		n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: of(w, "L4", "H100"), Type: "cuda", Memory: cluster.Bytes(of(w, 16, 24)) << 30, Reserved: cluster.Bytes(w.roll(2)) << 30}, UUID: uuid(n.Name, i), Lost: w.chance(10)})
	}
	if w.chance(40) {
		slices.Reverse(n.Devices)
	}
	return cluster.NodePut{Node: n, Revision: of(w, 0, 0, uint64(w.roll(5)))}
}

func (w *world) nodeSeen() cluster.Change {
	seen := cluster.NodeSeen{Name: w.node()}
	if w.chance(60) {
		phase := of(w, "", cluster.PhaseReady, "NOT_READY")
		seen.Phase = &phase
	}
	if w.chance(60) {
		lost := []string{uuid(seen.Name, w.roll(3))}
		seen.Lost = &lost
	}
	if w.chance(30) {
		seen.Artifacts = &map[string]cluster.ArtifactState{"m": cluster.Ready}
	}
	return seen
}

func (w *world) queuePut() cluster.Change {
	q := cluster.Queue{Name: of(w, "root", "a", "b"), Priority: int32(w.roll(2)), Weight: int64(w.roll(3)), Weightless: w.roll(3) == 0, Tier: of(w, "", cluster.TierGuaranteed, cluster.TierScavenger)}
	if parent := of(w, "", "root", "a", "b"); parent != q.Name {
		q.Parent = parent
	}
	if w.chance(50) {
		q.Quota = cluster.Resources{{Name: of(w, cluster.CPU, cluster.DefaultDeviceResource, cluster.DefaultDeviceResource+":L4"), Value: int64(w.roll(5)) * 1000}}
	}
	if w.chance(30) {
		q.Limits = cluster.Resources{{Name: of(w, cluster.CPU, cluster.DefaultDeviceResource+":H100"), Value: int64(w.roll(5)) * 1000}}
	}
	return cluster.QueuePut{Queue: q, Revision: of(w, 0, 0, uint64(w.roll(5)))}
}

func (w *world) jobPut() cluster.Change {
	id := w.job()
	j := cluster.Job{ID: id, UID: w.uid(), Queue: of(w, "", "a", "b", "root"), Priority: int32(w.roll(3)), Preemptible: w.chance(60), Created: int64(w.roll(3)), JobDetails: &cluster.JobDetails{}}
	if w.chance(30) {
		j.Labels = map[string]string{"app": of(w, "web", "db")}
	}
	if w.chance(30) {
		j.JobDetails.PreemptionDelay = int64(1 + w.roll(20))
	}
	if w.chance(20) {
		grace := int64(w.roll(3) - 1)
		j.JobDetails.StaleGrace = &grace
	}
	if id == "job/m1" || id == "job/m2" {
		j.JobDetails.Set = cluster.Set{Name: of(w, "m", "n"), Desired: w.roll(3)}
		if w.chance(20) {
			j.JobDetails.Set.Group = &cluster.GroupKey{Product: "L4", Count: 1}
		}
	}
	if j.Open = (id == "pod/o1" || id == "pod/o2") != w.chance(3); j.Open { // rarely, a job changes between open and not open
		j.Alternatives = []cluster.Alternative{{Min: 1 + w.roll(3)}}
		w.addSubgroups(&j.Alternatives[0])
		return cluster.JobPut{Job: j, Revision: of(w, 0, 0, uint64(w.roll(5)))}
	}
	for a := range 1 + w.roll(2) {
		alt := cluster.Alternative{Name: of(w, "", "big", "small")}
		if a > 0 {
			alt.Name = fmt.Sprintf("form%d", w.roll(2))
		}
		for i := range 1 + w.roll(3) {
			alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("w%d", i), Role: "w", Index: i, Shape: w.shape()})
		}
		alt.Min = 1 + w.roll(len(alt.Tasks))
		w.addSubgroups(&alt)
		if j.Set.Name != "" && w.chance(50) {
			alt.Whole = &cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1}
		}
		j.Alternatives = append(j.Alternatives, alt)
	}
	return cluster.JobPut{Job: j, Revision: of(w, 0, 0, uint64(w.roll(5)))}
}

// addSubgroups gives some alternatives one or two subgroups, with minima that their tasks can
// reach.
func (w *world) addSubgroups(alt *cluster.Alternative) {
	if w.chance(70) {
		return
	}
	members := make([]int, 1+w.roll(2))
	for _, t := range alt.Tasks {
		if t.Subgroup = w.roll(len(members) + 1); t.Subgroup > 0 {
			members[t.Subgroup-1]++
		}
	}
	for i, n := range members {
		if len(alt.Tasks) == 0 {
			n = 2 // the tasks of an open job are reported later
		}
		alt.Subgroups = append(alt.Subgroups, cluster.Subgroup{Name: fmt.Sprintf("g%d", i), Min: w.roll(n + 1)})
	}
	if len(members) > 1 && w.chance(30) {
		alt.Subgroups[1].Parent = 1
	}
	if alt.MinSubgroups = w.roll(2); len(alt.Tasks) > 0 { // the needed subgroups must be able to reach the minimum of the job
		loose := len(alt.Tasks)
		for _, n := range members {
			loose -= n
		}
		if fewest := loose + alt.LeastSum(func(sub int) int { return members[sub-1] }); fewest < alt.Min {
			alt.MinSubgroups = 0
		}
	}
}

func (w *world) taskPut() cluster.Change {
	return cluster.TaskPut{Job: of(w, "pod/o1", "pod/o2"), Task: cluster.Task{Name: fmt.Sprintf("p%d", w.roll(3)), UID: w.uid(), Index: w.roll(3), Subgroup: of(w, 0, 0, w.roll(3)), Shape: w.shape()}, Revision: of(w, 0, 0, uint64(w.roll(5)))}
}

// task returns a reference to a task, which exists in most cases.
func (w *world) task() cluster.TaskRef {
	if jobs := w.state.Jobs(); len(jobs) > 0 && w.chance(85) {
		j := jobs[w.roll(len(jobs))]
		a := w.roll(len(j.Alternatives))
		if tasks := j.Alternatives[a].Tasks; len(tasks) > 0 {
			return tasks[w.roll(len(tasks))].Ref()
		}
	}
	return cluster.TaskRef{Job: w.job(), Name: of(w, "w0", "p0", "p1")}
}

func (w *world) taskSeen() cluster.Change {
	seen := cluster.TaskSeen{Task: w.task(), UID: w.uid(), Releasing: w.chance(15), Started: int64(w.roll(3)) * 10}
	if w.chance(75) {
		seen.Node = of(w, "n1", "n2", "n3", "n4")
		if w.chance(70) {
			for i := range 4 {
				if w.chance(30) {
					seen.Devices = append(seen.Devices, cluster.Holding{Device: uuid(seen.Node, i), Milli: of[cluster.Milli](w, 500, 1000), Memory: cluster.Bytes(1+w.roll(8)) << 30})
				}
			}
		}
	}
	return seen
}

// answer draws a report about the outcome of a decision.
func (w *world) answer() cluster.Change {
	ref := w.task()
	attempt := uint64(w.roll(3))
	if t := w.state.Task(ref); t != nil && w.chance(80) {
		attempt = t.Attempt
	}
	switch w.roll(4) {
	case 0:
		return cluster.BindSent{Task: ref, Attempt: attempt}
	case 1:
		return cluster.EvictionRefused{Task: ref, Attempt: attempt, ProtectedUntil: w.now + int64(w.roll(20))}
	}
	return cluster.BindFailed{Task: ref, Attempt: attempt}
}

// decide makes decisions in a transaction, undoes some of them, and returns the transaction.
func (w *world) decide() cluster.Transaction {
	x := w.state.Begin()
	for range 1 + w.roll(6) {
		at := x.Position()
		w.decideOne(&x)
		if w.chance(25) {
			x.UndoTo(at)
		}
	}
	return x
}

func (w *world) decideOne(x *cluster.Transaction) {
	jobs := w.state.Jobs()
	if len(jobs) == 0 {
		return
	}
	j := jobs[w.roll(len(jobs))]
	switch w.roll(12) {
	case 0:
		x.Retire(j)
		return
	case 1:
		x.SetBelowMinimum(j, int64(w.roll(3)))
		return
	case 2:
		x.Displace(j, w.job())
		return
	case 3:
		x.Park(j, of(w, nil, &cluster.Parked{Tries: 1 + w.roll(3), RetryAt: int64(w.roll(50))}))
		return
	case 4:
		x.KeepGroup(j)
		return
	case 5:
		w.decideEarmark(x, j)
		return
	}
	tasks := j.Tasks()
	if len(tasks) == 0 {
		return
	}
	w.decideTask(x, tasks[w.roll(len(tasks))])
}

// decideEarmark gives the job an earmark or takes it away. An earmark
// on a node of another job's earmark must be refused.
func (w *world) decideEarmark(x *cluster.Transaction, j *cluster.Job) {
	e := &cluster.Earmarked{Since: int64(w.roll(9)), Start: int64(w.roll(9)), Reviewed: int64(w.roll(9))}
	taken := false
	for _, n := range w.state.Nodes() {
		if w.chance(30) {
			e.Rooms = append(e.Rooms, cluster.EarmarkedRoom{Node: n.Name, Devices: w.roll(3), Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(w.roll(9))}}})
			of := cluster.EarmarksOf(w.state.View()).On(n)
			taken = taken || of != nil && of.Job != j.ID
		}
	}
	if w.chance(20) || len(e.Rooms) == 0 {
		e = nil
	}
	if err := x.Earmark(j, e); (err != nil) != (e != nil && taken) {
		w.Fatalf("earmark %+v of %s, taken %v: %v", e, j.ID, taken, err)
	}
}

func (w *world) decideTask(x *cluster.Transaction, t *cluster.Task) {
	switch {
	case t.Landing() != nil && w.chance(50):
		if err := x.Withdraw(t.Landing()); err != nil {
			w.Fatal(err)
		}
	case t.Runs():
		if err := x.Evict(t, of(w, "", w.job()), w.now); err != nil {
			w.Fatal(err)
		}
	case t.Status == cluster.Nominated && w.chance(50):
		if err := x.Withdraw(t); err != nil {
			w.Fatal(err)
		}
	case t.Status == cluster.Nominated:
		x.Bind(t, w.now)
	case t.Status == cluster.Releasing && w.chance(30):
		x.Overdue(t)
	case t.Status == cluster.Releasing && t.Landing() == nil:
		w.move(x, t)
	case t.Status == cluster.Pending:
		if n := w.room(t); n != nil {
			claims, _ := n.Choose(t.Shape, nil)
			if x.Place(t, n, claims, w.now) == nil && t.Status == cluster.Assumed && w.chance(20) {
				x.Nominate(t, w.now)
			}
		}
	}
}

// room returns a node with enough devices for the task, or nil.
func (w *world) room(t *cluster.Task) *cluster.Node {
	var fits []*cluster.Node
	for _, n := range w.state.Nodes() {
		if _, ok := n.Choose(t.Shape, nil); ok {
			fits = append(fits, n)
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return fits[w.roll(len(fits))]
}

func (w *world) move(x *cluster.Transaction, t *cluster.Task) {
	shadow := t.Job.Shadow([]*cluster.Task{t})
	for _, l := range shadow.Tasks() {
		if l.ShadowOf() != t {
			continue
		}
		n := w.room(l)
		if n == nil {
			return
		}
		claims, _ := n.Choose(l.Shape, nil)
		if x.Place(l, n, claims, w.now) == nil {
			x.AddLanding(l)
		}
	}
}

// step makes one change, which is a fact or the decisions of a statement, and returns it as
// it is written in the log. It returns nil if nothing changed.
func (w *world) step() cluster.Change {
	switch w.roll(10) {
	case 0:
		if w.chance(20) {
			return w.apply(cluster.Learn{Plugin: of(w, "a", "b"), Parameters: of(w, nil, []int64{1, 2}, []int64{int64(w.roll(9))})})
		}
		w.now += int64(w.roll(30))
		return w.apply(cluster.SessionOpened{Now: w.now})
	case 1, 2, 3:
		x := w.decide()
		if changes := x.Commit(); len(changes) > 0 {
			for _, c := range changes {
				w.count[c.Kind()]++
			}
			return cluster.Decided{Changes: changes}
		}
		return nil
	}
	return w.tolerate(w.fact())
}

// tolerate applies a change that State may reject as malformed. It returns nil if State does.
func (w *world) tolerate(c cluster.Change) cluster.Change {
	version := w.state.Version()
	if err := w.state.Apply(c); err != nil {
		if w.state.Version() != version {
			w.Fatalf("%s was rejected (%v) and changed something", c.Kind(), err)
		}
		return nil
	}
	w.count[c.Kind()]++
	return c
}
