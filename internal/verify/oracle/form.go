package oracle

import (
	"strings"

	"github.com/berth-project/berth/cluster"
)

// form is one alternative of a job.
type form struct {
	job    *cluster.Job
	index  int      // of the job in objects.jobs
	number int      // of the form among the forms of the job
	forms  []*form  // all forms of the job, in order
	branch []*queue // from the root down to the queue of the job
	alt    *cluster.Alternative
	tasks  []*task
	cost   int64 // the cost of evicting one of its tasks
}

// leaf returns the queue of the job.
func (f *form) leaf() *queue { return f.branch[len(f.branch)-1] }

// set returns the set of all tasks of the form.
func (f *form) set() taskSet { return setOf(f.tasks) }

// hasEnough reports whether the tasks that count make the minimum of the form and the
// minima of its subgroups.
func (f *form) hasEnough(counts func(*task) bool) bool {
	total := 0
	bySubgroup := make([]int, len(f.alt.Subgroups)+1)
	for _, t := range f.tasks {
		if counts(t) {
			total++
			bySubgroup[t.task.Subgroup]++
		}
	}
	for i := range f.alt.Subgroups {
		if bySubgroup[i+1] < f.alt.Subgroups[i].Min {
			return false
		}
	}
	return total >= f.alt.Min
}

// isEnough reports whether the tasks of the set make the minimum of the form.
func (f *form) isEnough(set taskSet) bool { return f.hasEnough(set.has) }

// task is a task of one form of a job.
type task struct {
	task    *cluster.Task
	index   int // in objects.tasks
	form    *form
	amounts vector // what it requests
}

// isEqual reports whether the tasks are interchangeable.
func (t *task) isEqual(o *task) bool {
	return t.form == o.form && t.task.Shape == o.task.Shape && t.task.Subgroup == o.task.Subgroup
}

// bit returns the set with only this task.
func (t *task) bit() taskSet { return 1 << t.index }

// taskSet is a set of tasks: bit i is the task with index i. A case must not have more than
// 64 tasks.
type taskSet uint64

// allTasks has every task.
const allTasks = ^taskSet(0)

func (s taskSet) has(t *task) bool { return s&t.bit() != 0 }

func setOf(tasks []*task) (set taskSet) {
	for _, t := range tasks {
		set |= t.bit()
	}
	return set
}

// sum returns what the tasks request together.
func sum(tasks []*task) (total vector) {
	for _, t := range tasks {
		total = total.plus(t.amounts, +1)
	}
	return total
}

// sumOf returns what the tasks of jobs in the leaf queue request together. Other tasks do not
// count.
func sumOf(tasks []*task, leaf *queue) (total vector) {
	for _, t := range tasks {
		if t.form.leaf() == leaf {
			total = total.plus(t.amounts, +1)
		}
	}
	return total
}

// list returns the IDs of the tasks.
func list(tasks []*task) string {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.task.ID
	}
	return strings.Join(ids, ", ")
}
