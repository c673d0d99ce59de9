package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// workload is the one that a question is about, at the end of the simulation, where
// it was refused. It makes the changes that are changes of its request.
type workload struct {
	state   *cluster.State // what is tried on it is undone
	id      string
	refusal *engine.Refusal
	attempt *engine.Attempt // the main one of the refusal
}

func (w *workload) job() *cluster.Job { return w.state.Job(w.id) }

// shape is what the task that found no place asks for.
func (w *workload) shape() *cluster.Shape { return w.attempt.Task.Shape }

// alternative is the form of the job that the attempt was about.
func (w *workload) alternative() int {
	for i := range w.refusal.Attempts {
		if &w.refusal.Attempts[i] == w.attempt {
			if j := w.job(); j.Chosen >= 0 {
				return j.Chosen
			}
			return i
		}
	}
	return 0
}

func (w *workload) form() *cluster.Alternative { return &w.job().Alternatives[w.alternative()] }

// short is the subgroup that the attempt was short of, -1 if it was none.
func (w *workload) short() int {
	if w.attempt.Subgroup == "" {
		return -1
	}
	return slices.IndexFunc(w.form().Subgroups, func(g cluster.Subgroup) bool { return g.Name == w.attempt.Subgroup })
}

// missing is how many tasks must still find a place.
func (w *workload) missing() int {
	j, form := w.job(), w.form()
	switch {
	case w.refusal.Surplus:
		return max(1, j.Missing())
	case w.short() >= 0:
		return max(1, w.attempt.Min-w.attempt.Placed)
	case j.Chosen < 0:
		return form.Min
	}
	return max(1, form.Min-j.Placed())
}

// satisfied: the minimum has its place; where only surplus was missing, all has.
func (w *workload) satisfied() bool {
	if w.refusal.Surplus {
		return w.job().Missing() == 0
	}
	return w.job().Stands()
}

// rewrite gives the job another request: what runs of it stays where it is, and
// edit may change all that is pending.
func (w *workload) rewrite(edit func(*cluster.Job)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		j := s.Job(w.id)
		if j == nil {
			return fmt.Errorf("no workload %q", w.id)
		}
		spec := j.Spec()
		edit(&spec)
		return s.Apply(cluster.JobPut{Job: spec})
	}
}

// reform edits the form that the attempt was about.
func (w *workload) reform(edit func(*cluster.Alternative)) func(*cluster.State) error {
	a := w.alternative()
	return w.rewrite(func(j *cluster.Job) { edit(&j.Alternatives[a]) })
}

// atLeast sets the minimum that the attempt fell short of, the job's with its subgroup's.
func (w *workload) atLeast(n int) func(*cluster.State) error {
	sub := w.short()
	return w.reform(func(form *cluster.Alternative) {
		if sub < 0 {
			form.Min = n
			return
		}
		form.Subgroups = slices.Clone(form.Subgroups)
		form.Min = max(1, form.Min-(form.Subgroups[sub].Min-n))
		form.Subgroups[sub].Min = n
	})
}

// reshape edits the shape of the job's tasks like the one that found no place.
func (w *workload) reshape(edit func(*cluster.Shape)) func(*cluster.State) error {
	role, alternative := w.attempt.Task.Role, w.alternative()
	return w.reshapeIf(func(a int, t *cluster.Task) bool { return a == alternative && t.Role == role }, edit)
}

// reshapeAll edits the shape of every task of the job, in every form it may take:
// conditions on nodes are the whole job's.
func (w *workload) reshapeAll(edit func(*cluster.Shape)) func(*cluster.State) error {
	return w.reshapeIf(func(int, *cluster.Task) bool { return true }, edit)
}

// reshapeIf edits the shape of the tasks that are chosen, each given with the index
// of its form. Those that run keep theirs.
func (w *workload) reshapeIf(chosen func(int, *cluster.Task) bool, edit func(*cluster.Shape)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		known := s.Job(w.id).Alternatives
		return w.rewrite(func(j *cluster.Job) {
			for a := range j.Alternatives {
				for i, t := range j.Alternatives[a].Tasks {
					if chosen(a, t) && known[a].Tasks[i].Node == nil {
						shape := *t.Shape
						edit(&shape)
						t.Shape = &shape
					}
				}
			}
		})(s)
	}
}
