package whatif

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// workload is the workload of a question, as it was refused at the end of the simulation.
// Its methods make the changes of its request.
type workload struct {
	state   *cluster.State // as it is at the end of the simulation; tries do not change it
	id      string
	refusal *engine.Refusal
	attempt *engine.Attempt                         // the attempt of refusal that gave its reason
	rekey   func(role string, shape *cluster.Shape) // see Question.Rekey; may be nil
	known   []bound                                 // see bounds; nil before they are first read
}

func (w *workload) job() *cluster.Job { return w.state.Job(w.id) }

// shape returns the shape of the first task that could not be placed.
func (w *workload) shape() *cluster.Shape { return w.attempt.Task.Shape }

// role is a role of tasks of the workload, with their shape.
type role struct {
	name  string
	shape *cluster.Shape
}

// roles returns the roles of the tasks that are not placed, in the alternative of the attempt.
// The role of the task that could not be placed is first.
func (w *workload) roles() []role {
	out := []role{{w.attempt.Task.Role, w.shape()}}
	for _, t := range w.form().Tasks {
		if t.Node == nil && !slices.ContainsFunc(out, func(r role) bool { return r.name == t.Role }) {
			out = append(out, role{t.Role, t.Shape})
		}
	}
	return out
}

// alternative returns the index of the alternative that the job has chosen or, if it has not
// chosen one, of the alternative that the attempt tried. Consecutive alternatives that each
// name a node group share one attempt; the index is then that of the first of them.
func (w *workload) alternative() int {
	j := w.job()
	if j.Chosen >= 0 {
		return j.Chosen
	}
	namesGroup := func(i int) bool { return j.Alternatives[i].Whole != nil && j.Alternatives[i].Whole.Only != nil }
	index := 0
	for i := range w.refusal.Attempts {
		if &w.refusal.Attempts[i] == w.attempt {
			return index
		}
		index++
		for index < len(j.Alternatives) && namesGroup(index-1) && namesGroup(index) {
			index++
		}
	}
	return 0
}

// alternatives returns the index of the alternative of the attempt, and of those that differ from
// it only in the cell. A manifest has one form for all cells, so that they are edited together.
func (w *workload) alternatives() []int {
	all, own := w.job().Alternatives, w.alternative()
	out := []int{own}
	for i := range all {
		if i != own && sameExceptCell(&all[i], &all[own]) {
			out = append(out, i)
		}
	}
	return out
}

// sameExceptCell reports whether the alternatives request the same in different cells.
func sameExceptCell(a, b *cluster.Alternative) bool {
	if len(a.Tasks) == 0 || len(a.Tasks) != len(b.Tasks) || a.Whole != nil || b.Whole != nil || a.Tasks[0].Shape.Cell == b.Tasks[0].Shape.Cell {
		return false
	}
	same := a.Min == b.Min && a.Running == b.Running && reflect.DeepEqual(a.Subgroups, b.Subgroups) && reflect.DeepEqual(a.Topology, b.Topology)
	for i := 0; i < len(a.Tasks) && same; i++ {
		x, y := a.Tasks[i], b.Tasks[i]
		if same = x.Role == y.Role; i == 0 || x.Shape != a.Tasks[i-1].Shape || y.Shape != b.Tasks[i-1].Shape {
			same = same && encodedWithoutCell(*x.Shape) == encodedWithoutCell(*y.Shape)
		}
	}
	return same
}

func encodedWithoutCell(s cluster.Shape) string {
	s.Cell = ""
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error() // no value of a shape is one that JSON does not have
	}
	return string(text)
}

func (w *workload) form() *cluster.Alternative { return &w.job().Alternatives[w.alternative()] }

// shortSubgroup returns the index of the subgroup that is below its minimum, or -1 if the
// attempt did not fail because of a subgroup.
func (w *workload) shortSubgroup() int {
	if w.attempt.Subgroup == "" {
		return -1
	}
	return slices.IndexFunc(w.form().Subgroups, func(g cluster.Subgroup) bool { return g.Name == w.attempt.Subgroup })
}

// missing returns how many more tasks must be placed, at least 1. For surplus, these are all
// tasks that are not placed.
func (w *workload) missing() int {
	j, form := w.job(), w.form()
	switch {
	case w.refusal.Surplus:
		return max(1, j.Missing())
	case w.shortSubgroup() >= 0:
		return max(1, w.attempt.Min-w.attempt.Placed)
	case j.Chosen < 0:
		return form.Min
	}
	return max(1, form.Min-j.Placed())
}

// isSatisfied reports whether the minimum is placed in the State. If only surplus was refused,
// it reports whether all tasks are placed.
func (w *workload) isSatisfied(s *cluster.State) bool {
	j := s.Job(w.id)
	switch {
	case j == nil:
		return false // a change has removed the replica
	case w.refusal.Surplus:
		return j.Missing() == 0
	}
	return j.HasMinimum()
}

// holdsRoom reports whether a task of the job, or of another replica of its set, has a node.
func (w *workload) holdsRoom(s *cluster.State) bool {
	return slices.ContainsFunc(w.replicas(s), func(j *cluster.Job) bool {
		return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Node != nil })
	})
}

// editJob returns a change of the spec of the job. If the job is a replica, the specs of all
// replicas of its set change, because their manifest is one object. Tasks that have a node stay
// on it whatever edit does.
func (w *workload) editJob(edit func(*cluster.Job)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		for _, j := range w.replicas(s) {
			spec := j.Spec()
			edit(&spec)
			if err := s.Apply(cluster.JobPut{Job: spec}); err != nil {
				return err
			}
			if j.Open { // its tasks are not part of its spec
				if err := putTasks(s, j, spec.Alternatives[0].Tasks); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// putTasks gives the open job the tasks, and removes its others. The job is not open any more then, so
// that all tasks change at once: after each TaskPut, all tasks of the job would be counted again.
func putTasks(s *cluster.State, j *cluster.Job, tasks []*cluster.Task) error {
	kept := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		kept[t.Name] = true
	}
	for _, t := range slices.Clone(j.Tasks()) {
		if !kept[t.Name] && (t.Node != nil || t.Landing() != nil) {
			if err := s.Apply(cluster.TaskGone{Task: t.Ref()}); err != nil {
				return err
			}
		}
	}
	spec := j.Spec()
	spec.Open, spec.Alternatives[0].Tasks = false, tasks
	return s.Apply(cluster.JobPut{Job: spec})
}

// replicas returns the job, and the other replicas of its set.
func (w *workload) replicas(s *cluster.State) []*cluster.Job {
	j := s.Job(w.id)
	if j.Set.Name == "" {
		return []*cluster.Job{j}
	}
	return slices.Clone(s.View().Sets().Jobs(j.Set.Name))
}

// editForm returns a change that edits the alternative of the attempt, in all cells.
func (w *workload) editForm(edit func(*cluster.Alternative)) func(*cluster.State) error {
	list := w.alternatives()
	return w.editJob(func(j *cluster.Job) {
		for _, a := range list {
			if a < len(j.Alternatives) { // a replica that runs may have its own form only
				edit(&j.Alternatives[a])
			}
		}
	})
}

// withMin returns a change that sets the minimum that was not reached: that of the subgroup
// if a subgroup was short, and that of the job otherwise. The minimum of a subgroup changes
// the minimum of the job by the same number.
func (w *workload) withMin(n int) func(*cluster.State) error {
	sub := w.shortSubgroup()
	return w.editForm(func(form *cluster.Alternative) {
		if sub < 0 {
			form.Min = n
			return
		}
		form.Subgroups = slices.Clone(form.Subgroups)
		form.Min = max(1, form.Min-(form.Subgroups[sub].Min-n))
		form.Subgroups[sub].Min = n
	})
}

// editShape returns a change that edits the shapes in the alternative of the attempt, in all
// cells, of all tasks with the role.
func (w *workload) editShape(role string, edit func(*cluster.Shape)) func(*cluster.State) error {
	list := w.alternatives()
	return w.editShapesIf(func(a int, t *cluster.Task) bool { return slices.Contains(list, a) && t.Role == role }, edit)
}

// editAllShapes returns a change that edits the shapes of all tasks in all alternatives,
// because conditions on nodes apply to the whole job.
func (w *workload) editAllShapes(edit func(*cluster.Shape)) func(*cluster.State) error {
	return w.editShapesIf(func(int, *cluster.Task) bool { return true }, edit)
}

// editShapesIf returns a change that edits the shapes of the tasks for which chosen returns
// true. Chosen is called with the index of the alternative and with the task. Tasks that have
// a node, whether they run, are nominated or are releasing, keep their shape.
func (w *workload) editShapesIf(chosen func(int, *cluster.Task) bool, edit func(*cluster.Shape)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		return w.editJob(func(j *cluster.Job) {
			known := s.Job(j.ID).Alternatives
			for a := range j.Alternatives {
				for i, t := range j.Alternatives[a].Tasks {
					if chosen(a, t) && known[a].Tasks[i].Node == nil {
						shape := *t.Shape
						edit(&shape)
						w.setKey(t.Role, &shape)
						t.Shape = &shape
					}
				}
			}
		})(s)
	}
}

// setKey sets the Key of a shape of the role that was edited.
func (w *workload) setKey(role string, shape *cluster.Shape) {
	if w.rekey != nil {
		w.rekey(role, shape)
	}
}
