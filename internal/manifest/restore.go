package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
)

// runningTask is a task that runs or has ended, according to the status of its job or to a pod.
type runningTask struct {
	job       *cluster.Job
	task      *cluster.Task
	node      string
	devices   []int             // the indexes of its devices; nil: not known, and chosen when State is made
	holdings  []cluster.Holding // of a pod: its devices, if they are known
	started   int64             // in nanoseconds since 1970; 0: not known
	releasing bool
	ended     cluster.Status // Succeeded or Failed; Pending if it has not ended
	pod       bool
	whyKept   string // why it runs in a form that its spec does not request now; "" if it does

	at path
	r  reporter
}

// placements is the part of a status that says on which nodes and devices tasks are.
type placements struct {
	places      []v1alpha1.TaskPlacement
	alternative string // the name of the chosen alternative; "" if not given
	at          path   // the path of the object that has these fields
	field       string // the name of the field that has the alternative
}

// canHold reports whether the number of devices is one that the task can hold. The alternatives
// of a model have tasks of the same names, and are distinguished by this.
func canHold(t *cluster.Task, devices []int) bool {
	need := &t.Shape.Need
	return devices == nil || !t.Shape.ServesModel() || (need.None() == (len(devices) == 0) && (need.Devices == 0 || need.Devices == len(devices)))
}

// runningTasks finds the tasks of the job that its status places.
func (m *stateMaker) runningTasks(j *cluster.Job, o placements, r reporter) {
	places := o.places
	if len(places) == 0 {
		return
	}
	seen := map[string]int{}
	for i, p := range places {
		if k, twice := seen[p.Task]; twice {
			r.errorf(o.at.Add("placements", i), "task %s is already placed by placements[%d]", phrase.Quote(p.Task), k)
			return
		}
		seen[p.Task] = i
	}
	if m.cells == nil {
		m.cells = make(map[string]string, len(m.nodes))
		for _, n := range m.nodes {
			m.cells[n.Name] = n.Cell
		}
	}
	if runningAlternative(j) != nil && !hasAlternative(j, o.alternative) {
		o.alternative = "" // the spec does not have the alternative any more: find one by the tasks that run
	}
	for _, a := range m.likelyAlternatives(j, places) {
		if tasks := m.tasksOf(a, o); tasks != nil {
			for i, t := range tasks {
				m.running = append(m.running, runningTask{
					job: j, task: t, node: places[i].Node, devices: places[i].Devices, started: convert.Nanoseconds(places[i].Started),
					releasing: places[i].State == convert.TaskReleasing, ended: convert.EndStatus(&places[i]),
					at: o.at.Add("placements", i), r: r,
				})
			}
			return
		}
	}
	m.reportPlacements(j, o, r)
}

// likelyAlternatives returns the alternatives of the job. Those for the node group of the first
// node are first, then those that request as many devices as each task has.
func (m *stateMaker) likelyAlternatives(j *cluster.Job, places []v1alpha1.TaskPlacement) []*cluster.Alternative {
	devices := make(map[string]int, len(places))
	for _, p := range places {
		devices[p.Task] = len(p.Devices)
	}
	var own, exact, others []*cluster.Alternative
	for i := range j.Alternatives {
		a := &j.Alternatives[i]
		switch w := a.Whole; {
		case w != nil && w.Only != nil && *w.Only == m.groupOf[places[0].Node]:
			own = append(own, a)
		case !a.Running && requestsDevices(a, devices):
			exact = append(exact, a)
		default:
			others = append(others, a)
		}
	}
	return slices.Concat(own, exact, others)
}

// requestsDevices reports whether the alternative has exactly these tasks, with these numbers of
// devices, of which none is 0.
func requestsDevices(a *cluster.Alternative, devices map[string]int) bool {
	return len(a.Tasks) == len(devices) && !slices.ContainsFunc(a.Tasks, func(t *cluster.Task) bool {
		n, there := devices[t.Name]
		return !there || n == 0 || t.Shape.Need.Devices != n
	})
}

// tasksOf returns the task of the alternative for each placement. It returns nil if the
// alternative lacks one of the tasks or is for another cell.
func (m *stateMaker) tasksOf(a *cluster.Alternative, o placements) []*cluster.Task {
	if len(a.Tasks) == 0 {
		return nil
	}
	cell := a.Tasks[0].Shape.Cell
	if want := o.alternative; want != "" && !a.Running && want != a.Name && want+" in "+cell != a.Name {
		return nil
	}
	byName := make(map[string]*cluster.Task, len(a.Tasks))
	for _, t := range a.Tasks {
		byName[t.Name] = t
	}
	out := make([]*cluster.Task, 0, len(o.places))
	for _, p := range o.places {
		t := byName[p.Task]
		if t == nil || !canHold(t, p.Devices) || (cell != "" && p.Node != "" && m.cells[p.Node] != cell) {
			return nil
		}
		out = append(out, t)
	}
	return out
}

// reportPlacements reports why no alternative has the tasks that run.
func (m *stateMaker) reportPlacements(j *cluster.Job, o placements, r reporter) {
	const compared = 1000 // how many names are considered for a suggestion
	known := map[string]bool{}
	var tasks, alternatives []string
	for _, a := range j.Alternatives {
		if a.Name != "" {
			alternatives = append(alternatives, a.Name)
		}
		for _, t := range a.Tasks {
			if !known[t.Name] && len(tasks) < compared {
				tasks = append(tasks, t.Name)
			}
			known[t.Name] = true
		}
	}
	if a := o.alternative; a != "" && !slices.ContainsFunc(alternatives, func(s string) bool { return s == a || strings.HasPrefix(s, a+" in ") }) {
		at := o.at.Add(o.field)
		if len(alternatives) == 0 {
			r.errorf(at, "%s has no alternatives to choose from; leave it out", j.ID)
		} else {
			r.errorf(at, "there is no alternative %s%s", phrase.Quote(a), nearest.Hint(a, alternatives))
		}
		return
	}
	unknown := false
	for i, p := range o.places {
		if !known[p.Task] {
			r.errorf(o.at.Add("placements", i, "task"), "%s has no task %s%s", j.ID, phrase.Quote(p.Task), phrase.Suggestion(p.Task, tasks))
			unknown = true
		}
	}
	if !unknown {
		r.errorf(o.at.Add("placements"), "no alternative of %s has all these tasks on nodes of one of its cells", j.ID)
	}
}

// restore adds the tasks that run to State. It adds the jobs of which all devices are known
// first, then the other jobs, for which it chooses among the devices that are left, and then
// the jobs that are kept although their spec has changed. Finally it marks the tasks that are
// being deleted as releasing.
func (m *stateMaker) restore(s *cluster.State) {
	chosen := map[*cluster.Job]bool{} // jobs with a task for which devices must be chosen
	for _, w := range m.running {
		chosen[w.job] = chosen[w.job] || w.devices == nil && w.holdings == nil
	}
	slices.SortFunc(m.running, func(a, b runningTask) int {
		return cmp.Or(compareBool(chosen[a.job], chosen[b.job]), strings.Compare(a.job.ID, b.job.ID),
			compareBool(a.devices == nil, b.devices == nil), strings.Compare(a.task.ID, b.task.ID))
	})
	var kept [][]runningTask
	for from := 0; from < len(m.running); {
		to := from + 1
		for to < len(m.running) && m.running[to].job == m.running[from].job {
			to++
		}
		if of := m.running[from:to]; !m.placeJob(s, of) {
			kept = append(kept, of)
		}
		from = to
	}
	m.keepRunning(s, kept) // these jobs get what the other jobs leave free
	for i := range m.running {
		if w := &m.running[i]; w.releasing && w.task.Runs() {
			seen := cluster.SeenOn(w.task, w.task.Node, w.task.Claims, w.started)
			seen.Releasing = true
			m.recordError(s.Apply(seen))
		}
	}
}

// compareBool sorts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// placeJob adds the tasks of one job to State. It reports false, and has added none, if
// they are no longer what the job requests and the job is to be kept as it runs.
func (m *stateMaker) placeJob(s *cluster.State, of []runningTask) bool {
	as := runningAlternative(of[0].job)
	if as != nil && slices.Contains(as.Tasks, of[0].task) {
		return false
	}
	for i := range of {
		w := &of[i]
		n := m.nodeOf(s, w)
		if n == nil {
			continue
		}
		claims, problem := w.claims(n)
		switch {
		case problem == "":
		case as != nil:
			for k := range i {
				m.recordError(s.Apply(cluster.TaskGone{Task: of[k].task.Ref()}))
			}
			of[0].whyKept = fmt.Sprintf("%s on %s: %s", w.task.Name, w.node, problem)
			return false
		case w.pod:
			m.unplaced.add(w.job.ID)
		default:
			w.r.errorf(w.at, "%s cannot be running on %s: %s", w.task.Name, w.node, problem)
			continue
		}
		m.place(s, w, n, claims)
	}
	if j := of[0].job; j.Chosen >= 0 && j.Alternatives[j.Chosen].Running {
		m.noteKept(s, j, "")
	}
	return true
}

// nodeOf returns the node that the task is on, nil if there is no such node. For a task
// that has ended it records that in State and returns nil.
func (m *stateMaker) nodeOf(s *cluster.State, w *runningTask) *cluster.Node {
	if w.ended != cluster.Pending {
		m.recordError(s.Apply(cluster.TaskGone{Task: w.task.Ref(), Ended: w.ended}))
		return nil
	}
	return s.Node(w.node)
}

// place adds the task to State as running on the node with the claims.
func (m *stateMaker) place(s *cluster.State, w *runningTask, n *cluster.Node, claims []cluster.Claim) {
	if err := s.CanRun(w.task, n, claims); err != nil && w.pod && len(claims) > 0 {
		m.unplaced.add(w.job.ID)
		claims = nil
	} else if err != nil {
		w.r.errorf(w.at, "%s", err)
		return
	}
	m.recordError(s.Apply(cluster.SeenOn(w.task, n, claims, w.started)))
}

// claims returns what the task holds of the devices of the node. The second result says
// why it cannot be there, and is "" if it can.
func (w *runningTask) claims(n *cluster.Node) ([]cluster.Claim, string) {
	if w.holdings != nil {
		known := *w
		known.holdings = nil
		if known.devices = w.indexes(n); known.devices != nil {
			if claims, problem := known.claims(n); problem == "" {
				return claims, ""
			}
		}
	}
	if w.devices == nil {
		claims, ok := n.Choose(w.task.Shape, nil)
		if !ok {
			return nil, "too few of its devices are free for that; list the devices of every running task, or correct the node"
		}
		return claims, ""
	}
	wanted := map[int]bool{}
	products := map[string]bool{}
	for _, i := range w.devices {
		if problem := checkDevice(n, i, wanted[i]); problem != "" {
			return nil, problem
		}
		if d := &n.Devices[i]; !w.task.Shape.Takes(d) {
			return nil, fmt.Sprintf("device %d is %s", i, w.whyRefused(n, i))
		}
		wanted[i] = true
		products[n.Devices[i].Product] = true
	}
	if w.task.Shape.Need.None() && len(wanted) > 0 {
		return nil, "it asks for no devices"
	}
	// Choose computes how much of each of the listed devices the shape needs.
	shape := *w.task.Shape
	shape.Need.Selected = nil
	for i := range wanted {
		shape.Need.Selected = append(shape.Need.Selected, n.Devices[i].ID)
	}
	slices.SortFunc(shape.Need.Selected, cluster.DeviceID.Compare)
	if len(products) == 1 {
		for p := range products {
			shape.Need.Products = []string{p}
		}
	}
	if claims, ok := n.Choose(&shape, nil); ok && len(claims) == len(wanted) {
		return claims, ""
	}
	return nil, fmt.Sprintf("devices %v are not what the task asks for", w.devices)
}

// indexes returns the indexes of the devices that the pod is known to hold, and nil if the node does
// not list them all.
func (w *runningTask) indexes(n *cluster.Node) []int {
	var out []int
	for _, h := range w.holdings {
		i := slices.IndexFunc(n.Devices, func(d cluster.Device) bool { return d.UUID == h.Device })
		if i < 0 {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// whyRefused returns why the device does not take the task.
func (w *runningTask) whyRefused(n *cluster.Node, i int) string {
	d := &n.Devices[i]
	switch {
	case d.Lost:
		return "lost"
	case !w.task.Shape.Usable(d):
		return "not of the kind that it requests"
	}
	for _, t := range n.Tasks {
		for _, c := range t.Claims {
			if c.Device == i {
				return "held by " + t.ID
			}
		}
	}
	return "held by other tasks"
}
