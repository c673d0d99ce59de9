package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
)

// State makes a new State of the objects. Equal objects give equal States, whatever the
// order and the files in which they were read.
func (b *Bundle) State() (*cluster.State, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if f := b.snapshot(); f != nil {
		b.Notes = f.Notes
		return f.state()
	}
	b.unusable = map[string]string{}
	m := stateMaker{bundle: b, environment: b.Environment(), defects: tallies{}, offered: totals{}, asked: totals{}}
	m.convert()
	if err := m.errs.Err(); err != nil {
		return nil, err
	}
	s := cluster.NewState()
	m.apply(s)
	m.switchToState(s)
	m.models(s)
	m.restore(s)
	m.applyReadings(s)
	s.CountDemand()
	if err := m.errs.Err(); err != nil {
		return nil, err
	}
	b.plans = m.plans
	b.Notes = append(b.Notes, m.notes()...)
	slices.Sort(b.Notes)
	return s, nil
}

// stateMaker makes a State of a bundle.
type stateMaker struct {
	bundle      *Bundle
	environment *convert.Environment
	errs        Errors

	queues  []*cluster.Queue
	nodes   []*cluster.Node
	jobs    []*cluster.Job
	budgets []*cluster.Budget
	plans   []*model.Result
	running []runningTask
	cells   map[string]string // of the nodes, by name

	groupOf map[string]cluster.GroupKey // node group of each node; set by models

	offered, asked totals
	tasks, devices int
	keptReplicas   tally   // replicas that run in a way that is not what their spec requests now
	defects        tallies // nodes by the notes of their conversion
	unplaced       tally   // pods for which their node has too few free devices
	incomplete     tally   // gangs with fewer pods than their minimum
	strangers      tally   // workloads in queues of other schedulers
	inner          tally   // workloads in queues that have others below them
	absent         tally   // pods on nodes that are not in the input
	dump           *dump
}

// convert converts every object. Nodes and jobs are sorted by name.
func (m *stateMaker) convert() {
	b := m.bundle
	for _, o := range b.Queues {
		q, notes := convert.Queue(o, m.environment)
		b.reporter(o, &m.errs).report(notes)
		m.queues = append(m.queues, q)
	}
	m.nodes = make([]*cluster.Node, 0, len(b.Nodes)+len(b.CoreNodes))
	for _, o := range b.Nodes {
		n, notes := convert.Node(o)
		if !m.addNode(n, notes, b.reporter(o, &m.errs)) {
			return
		}
	}
	m.dump = m.readDump()
	if !m.dump.addNodes(m) {
		return
	}
	for _, o := range b.Jobs {
		r := b.reporter(o, &m.errs)
		j, notes := convert.Job(o, m.environment)
		r.report(notes)
		m.addJob(j, r)
		m.runningTasks(j, placements{o.Status.Placements, o.Status.Alternative, path{"status"}, "alternative"}, r)
	}
	m.dump.addJobs(m)
	for _, o := range b.Budgets {
		budget, notes := convert.DisruptionBudget(o)
		b.reporter(o, &m.errs).report(notes)
		m.budgets = append(m.budgets, budget)
	}
	for _, o := range b.CoreBudgets {
		budget, notes := convert.PodDisruptionBudget(o)
		b.reporter(o, &m.errs).report(notes)
		m.budgets = append(m.budgets, budget)
	}
	slices.SortFunc(m.nodes, func(a, b *cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(m.jobs, func(a, b *cluster.Job) int { return strings.Compare(a.ID, b.ID) })
}

// addNode adds a node. It reports false if there are too many devices in all; converting more
// nodes would then only take memory.
func (m *stateMaker) addNode(n *cluster.Node, notes convert.Notes, r reporter) bool {
	r.report(notes)
	m.defects.add(n.Name, notes, convert.Ignored)
	for _, l := range n.Resources {
		if !m.offered.add(l.Name, l.Capacity, 1) {
			r.errorf(namePath, "with this node the cluster has more %s than can be counted", l.Name)
		}
	}
	if m.devices += len(n.Devices); m.devices > maxDevicesInAll {
		r.errorf(path{"spec", "devices"}, "with this node there are more than %d devices; split the input", maxDevicesInAll)
		return false
	}
	m.nodes = append(m.nodes, n)
	return true
}

func (m *stateMaker) addJob(j *cluster.Job, r reporter) {
	before := m.tasks
	for i := range j.Alternatives {
		tasks := j.Alternatives[i].Tasks
		m.tasks += len(tasks)
		for _, t := range tasks {
			for _, a := range t.Shape.Resources {
				if !m.asked.add(a.Name, a.Value, 1) {
					r.errorf(namePath, "with %s the workloads ask for more %s than can be counted", j.ID, a.Name)
					return
				}
			}
		}
	}
	if m.tasks > convert.MaxTasks && before <= convert.MaxTasks {
		r.errorf(namePath, "with %s there are more than %d tasks; split the input", j.ID, convert.MaxTasks)
	}
	m.jobs = append(m.jobs, j)
}

// apply adds the objects to State.
func (m *stateMaker) apply(s *cluster.State) {
	for _, q := range topDown(m.queues) {
		m.recordError(s.Apply(cluster.QueuePut{Queue: *q}))
	}
	nodes := make([]cluster.Change, len(m.nodes))
	for i, n := range m.nodes {
		nodes[i] = cluster.NodePut{Node: *n}
	}
	m.recordError(s.ApplyAll(nodes))
	m.nodes = s.Nodes()
	for _, j := range m.jobs {
		m.recordError(s.Apply(cluster.JobPut{Job: *j}))
		if j.Open {
			for _, t := range j.Alternatives[0].Tasks {
				m.recordError(s.Apply(cluster.TaskPut{Job: j.ID, Task: *t}))
			}
		}
	}
	for _, b := range m.budgets {
		m.recordError(s.Apply(cluster.BudgetPut{Budget: *b}))
	}
}

// switchToState replaces the jobs and tasks that run by those of State, which are copies.
func (m *stateMaker) switchToState(s *cluster.State) {
	for i := range m.running {
		w := &m.running[i]
		if w.pod {
			w.job, w.task = s.Job(w.job.ID), s.Task(cluster.TaskRef{Job: w.job.ID, Name: w.task.Name})
			continue
		}
		for a := range w.job.Alternatives {
			if k := slices.Index(w.job.Alternatives[a].Tasks, w.task); k >= 0 {
				w.job = s.Job(w.job.ID)
				w.task = s.Task(cluster.TaskRef{Job: w.job.ID, Alternative: a, Name: w.task.Name})
				break
			}
		}
	}
}

// recordError records an error of State about a change. Changes are checked before, so there
// should be no such error. It has no position; without it, a State that lacks the change would
// be used.
func (m *stateMaker) recordError(err error) {
	if err != nil {
		m.errs = append(m.errs, Error{Message: err.Error()})
	}
}

// notes returns the notes that depend on converted objects.
func (m *stateMaker) notes() []string {
	out := append(quotaNotes(m.queues), productNotes(m.queues, m.nodes)...)
	out = append(out, resourceNotes(m.queues, m.jobs, m.nodes)...)
	var unused tally
	for i, o := range m.bundle.Budgets { // m.budgets has them before those of Kubernetes
		if coversNone(m.budgets[i], m.jobs) {
			unused.add(convert.DisruptionBudgetID(o))
		}
	}
	out = unused.note(out, "with a selector that matches no workload in the same namespace", "disruption budget")
	out = m.defects.note(out, "node")
	out = append(out, m.selectionNotes()...)
	out = m.keptReplicas.note(out, "kept in a form that is not what the spec asks for now", "replica")
	for _, kind := range slices.Sorted(maps.Keys(m.dump.notes)) {
		out = m.dump.notes[kind].note(out, kind)
	}
	out = m.strangers.note(out, "in a queue that is not in the input, counted for the queue default; declare the queue (kind: Queue of berth.dev)", "workload")
	out = m.inner.note(out, "in a queue that has others below it, counted for the queue default; name one of those", "workload")
	out = m.incomplete.note(out, "with fewer pods in the input than its minimum, not scheduled", "gang")
	out = m.absent.note(out, "on nodes that are not in the input, and not counted", "pod")
	return m.unplaced.note(out, "on devices that their node does not have free, counted without devices", "pod")
}

// coversNone reports whether the budget covers no job. The cause may be a typo in a label,
// which has no other visible effect.
func coversNone(b *cluster.Budget, jobs []*cluster.Job) bool {
	return !slices.ContainsFunc(jobs, b.Covers)
}
