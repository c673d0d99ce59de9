package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (c JobPut) apply(s *State) error {
	spec := &c.Job
	if spec.JobDetails = spec.details(); spec.Earmarked != nil {
		spec.OwnDetails().Earmarked = nil // a decision, which no fact reports
	}
	if err := spec.check(); err != nil {
		return err
	}
	j := s.roster.jobs[spec.ID]
	switch {
	case j == nil:
		s.specs.add(spec, c.Revision)
	case !j.absent && stale(c.Revision, j.revision):
	case uidsDiffer(j.UID, spec.UID):
		s.specs.replace(j, spec, c.Revision)
	case !j.absent && j.sameSpec(spec):
		j.revision = max(j.revision, c.Revision)
	default:
		s.specs.respec(j, spec, c.Revision)
	}
	return nil
}

// uidsDiffer reports whether both UIDs are known and they are not equal.
func uidsDiffer(a, b string) bool { return a != "" && b != "" && a != b }

// check returns an error if the job is malformed.
func (j *Job) check() error {
	switch {
	case j.ID == "":
		return fmt.Errorf("a job has no ID")
	case len(j.Alternatives) == 0:
		return fmt.Errorf("%s has no tasks", j.ID)
	case j.Open && len(j.Alternatives) > 1:
		return fmt.Errorf("%s is open and has %d alternatives; an open job must have one", j.ID, len(j.Alternatives))
	}
	for i := range j.Alternatives {
		alt := &j.Alternatives[i]
		for _, t := range alt.Tasks {
			if err := t.check(len(alt.Subgroups)); err != nil {
				return fmt.Errorf("%s: %w", j.ID, err)
			}
		}
		if err := alt.checkParents(); err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
		if name, found := duplicateName(alt.Tasks); found {
			return fmt.Errorf("%s: two tasks are named %q", j.ID, name)
		}
		if j.Open {
			continue
		}
		if alt.Min < 1 || alt.Min > len(alt.Tasks) {
			return fmt.Errorf("%s: the minimum is %d, and there are %d tasks", j.ID, alt.Min, len(alt.Tasks))
		}
		if err := alt.checkSubgroups(); err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
	}
	return nil
}

// duplicateName returns the first name that two tasks have, and whether there is one.
func duplicateName(tasks []*Task) (name string, found bool) {
	if len(tasks) < 2 {
		return "", false
	}
	names := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		if names[t.Name] {
			return t.Name, true
		}
		names[t.Name] = true
	}
	return "", false
}

// check returns an error if the task is malformed. subgroups is how many subgroups its
// alternative has.
func (t *Task) check(subgroups int) error {
	switch {
	case t == nil || t.Name == "":
		return fmt.Errorf("a task has no name")
	case strings.Contains(t.Name, "/"):
		return fmt.Errorf("the name of task %s contains a slash", t.Name)
	case t.Shape == nil:
		return fmt.Errorf("task %s has no shape", t.Name)
	case hasDuplicate(t.Shape.Resources):
		return fmt.Errorf("task %s requests a resource twice", t.Name)
	case t.Subgroup < 0 || t.Subgroup > subgroups:
		return fmt.Errorf("task %s is in subgroup %d, and there are %d", t.Name, t.Subgroup, subgroups)
	}
	return nil
}

// hasDuplicate reports whether a resource is in the list twice.
func hasDuplicate(list Resources) bool {
	for i := range list {
		if slices.ContainsFunc(list[:i], func(a Amount) bool { return a.Name == list[i].Name }) {
			return true
		}
	}
	return false
}

// buildJob returns a new job with the given spec, of which nothing is placed. The job has
// its own tasks and its own maps and lists of labels, affinity terms, displaced jobs,
// alternatives and subgroups. It shares Shapes, and what the other pointers and lists
// refer to, with the spec: the caller must not change these.
func buildJob(spec *Job, revision uint64) *Job {
	j, made, list := allocateJob(spec)
	forms := j.Alternatives
	*j = *spec
	j.Labels, j.JobDetails = maps.Clone(spec.Labels), spec.details().kept()
	j.slot, j.queueIndex, j.pendingAt, j.revision, j.absent, j.tasksOnNodes, j.landings, j.ended, j.Chosen = 0, 0, 0, revision, false, 0, 0, 0, -1
	j.Queue = cmp.Or(j.Queue, DefaultQueue)
	j.Alternatives = forms
	for a := range forms {
		alt := &forms[a]
		*alt = spec.Alternatives[a]
		alt.Topology.Preferred = nilIfEmpty(alt.Topology.Preferred)
		alt.Subgroups = slices.Clone(alt.Subgroups)
		for i := range alt.Subgroups {
			alt.Subgroups[i].Topology.Preferred = nilIfEmpty(alt.Subgroups[i].Topology.Preferred)
		}
		if alt.Tasks = nil; j.Open {
			continue // the tasks of an open job are added by TaskPut
		}
		n := len(spec.Alternatives[a].Tasks)
		for i, t := range spec.Alternatives[a].Tasks {
			id := j.ID + "/" + t.Name
			if i == 0 {
				j.ID = id[:len(j.ID)] // the job and its tasks share the memory of their names
			}
			made[i] = Task{Job: j, ID: id, Name: id[len(j.ID)+1:], UID: t.UID, Role: t.Role, Index: t.Index, Shape: t.Shape, Alternative: a, Subgroup: t.Subgroup, subgroup: t.Subgroup}
			made[i].joinSubgroup(alt)
			list[i] = &made[i]
		}
		alt.Tasks = list[:n:n]
		made, list = made[n:], list[n:]
	}
	return j
}

// plainJob is the memory of a job with one alternative and one task.
type plainJob struct {
	job          Job
	alternatives [1]Alternative
	tasks        [1]Task
	list         [1]*Task
}

// allocateJob allocates a job, its alternatives, its tasks, and a list for pointers to
// these, with the sizes of the spec. Most jobs have one task; for them it makes a
// single allocation.
func allocateJob(spec *Job) (j *Job, tasks []Task, list []*Task) {
	count := 0
	for a := range spec.Alternatives {
		count += len(spec.Alternatives[a].Tasks)
	}
	if len(spec.Alternatives) == 1 && count == 1 {
		block := &plainJob{}
		block.job.Alternatives = block.alternatives[:]
		return &block.job, block.tasks[:], block.list[:]
	}
	return &Job{Alternatives: make([]Alternative, len(spec.Alternatives))}, make([]Task, count), make([]*Task, count)
}

// sameSpec reports whether the job has this spec already.
func (j *Job) sameSpec(spec *Job) bool {
	queue := cmp.Or(spec.Queue, DefaultQueue)
	return (spec.UID == "" || j.UID == spec.UID) && j.Namespace == spec.Namespace && j.Queue == queue && j.Priority == spec.Priority && j.Created == spec.Created &&
		j.Preemptible == spec.Preemptible && j.RunFor == spec.RunFor && j.PreemptionDelay == spec.PreemptionDelay && equalPointers(j.StaleGrace, spec.StaleGrace) && j.Open == spec.Open &&
		maps.Equal(j.Labels, spec.Labels) && slices.EqualFunc(j.Affinity, spec.Affinity, (JobTerm).equal) && slices.Equal(j.Remarks, spec.Remarks) &&
		j.Set.Name == spec.Set.Name && j.Set.Desired == spec.Set.Desired && equalPointers(j.Set.Group, spec.Set.Group) &&
		slices.EqualFunc(j.requested(), spec.Alternatives, func(a, b Alternative) bool { return a.sameSpec(&b, j.Open) })
}

func (t JobTerm) equal(o JobTerm) bool {
	return t.Within == o.Within && t.Anti == o.Anti && t.Weight == o.Weight && slices.Equal(t.Namespaces, o.Namespaces) && t.Selector.equal(o.Selector)
}

func (t Term) equal(o Term) bool {
	return slices.EqualFunc(t, o, func(a, b Requirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
}

func equalPointers[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func (a *Alternative) sameSpec(b *Alternative, open bool) bool {
	return a.Name == b.Name && a.Min == b.Min && a.MinSubgroups == b.MinSubgroups && a.Running == b.Running && a.Topology.equal(b.Topology) && a.Whole.equal(b.Whole) &&
		slices.EqualFunc(a.Subgroups, b.Subgroups, func(x, y Subgroup) bool {
			return x.Name == y.Name && x.Min == y.Min && x.Parent == y.Parent && x.MinSubgroups == y.MinSubgroups && x.Topology.equal(y.Topology)
		}) &&
		(open || slices.EqualFunc(a.Tasks, b.Tasks, (*Task).sameSpec))
}

// requested returns a copy of the alternatives without the tasks that the job does not
// request any more, which are kept only while they are on a node.
func (j *Job) requested() []Alternative {
	out := slices.Clone(j.Alternatives)
	for a := range out {
		out[a].Tasks = slices.DeleteFunc(slices.Clone(out[a].Tasks), func(t *Task) bool { return t.notRequested })
	}
	return slices.DeleteFunc(out, func(a Alternative) bool { return a.Running && len(a.Tasks) == 0 })
}

func (t *Topology) equal(o Topology) bool {
	return t.Required == o.Required && slices.Equal(t.Preferred, o.Preferred)
}

func (w *WholeNodes) equal(o *WholeNodes) bool {
	if w == nil || o == nil {
		return w == o
	}
	a, b := *w, *o
	a.Only, b.Only = nil, nil
	return a == b && equalPointers(w.Only, o.Only)
}

func (t *Task) sameSpec(o *Task) bool {
	return t.Name == o.Name && (o.UID == "" || t.UID == o.UID) && t.Role == o.Role && t.Index == o.Index && t.subgroup == o.Subgroup && t.Shape.same(o.Shape)
}

// same reports whether two shapes are equal.
func (s *Shape) same(o *Shape) bool { return s == o || s.encoding() == o.encoding() }

// sameInterned is a faster same for interned shapes. Equal interned shapes may be different
// pointers, because a shape that is not used may be dropped and interned again.
func (s *Shape) sameInterned(o *Shape) bool { return s == o || s.key != "" && s.key == o.key }

// byIndexAndName orders the tasks of an open job by index and name, so that their order
// does not depend on the order of the facts.
func byIndexAndName(a, b *Task) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), strings.Compare(a.Name, b.Name))
}

func (c JobSeen) apply(s *State) error {
	j := s.roster.jobs[c.Job]
	if j == nil || j.Health == c.Health && j.Offload == c.Offload {
		return nil
	}
	was := c
	was.Health, was.Offload = j.Health, j.Offload
	set := func(c JobSeen) {
		to := *j.JobDetails
		to.Health, to.Offload = c.Health, c.Offload
		j.JobDetails = to.shared()
		s.workload.update(j)
	}
	set(c)
	if s.journal.recording() {
		s.journal.recordUndo(func() { set(was) })
	}
	return nil
}

func (c JobGone) apply(s *State) error {
	j := s.roster.jobs[c.Job]
	switch {
	case j == nil || j.absent || uidsDiffer(j.UID, c.UID):
	case j.Open && len(j.Alternatives[0].Tasks) > 0:
		s.workload.earmark(j, nil)
		s.workload.changeStatus(j, jobStatus{})
		s.specs.respec(j, &Job{ID: j.ID, Open: true, Alternatives: []Alternative{{}}}, 0)
		s.workload.setAbsent(j, true)
	default:
		s.specs.remove(j)
	}
	return nil
}

func (c SetScaled) apply(s *State) error {
	if c.Set == "" || c.Desired < 0 {
		return fmt.Errorf("set %q cannot be scaled to %d", c.Set, c.Desired)
	}
	s.sets.scale(c.Set, c.Desired)
	return nil
}

// Spec returns a copy of the spec of the job, which a caller may change and report with
// JobPut. The copy shares only Shapes with the State. The caller may replace them, but must
// not change them.
func (j *Job) Spec() Job {
	spec := *j
	spec.Labels, spec.JobDetails = maps.Clone(j.Labels), j.details().copied()
	spec.Alternatives = copyAlternatives(j.requested())
	for a := range spec.Alternatives {
		alt := &spec.Alternatives[a]
		if alt.Whole = clonePointer(alt.Whole); alt.Whole != nil {
			alt.Whole.Only = clonePointer(alt.Whole.Only)
		}
		alt.Topology.Preferred = slices.Clone(alt.Topology.Preferred)
		for i := range alt.Subgroups {
			alt.Subgroups[i].Topology.Preferred = slices.Clone(alt.Subgroups[i].Topology.Preferred)
		}
	}
	return spec
}

// clonePointer returns a pointer to a copy of the value, or nil.
func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// copyAlternatives returns copies of the alternatives, with their own lists of tasks and
// subgroups. The tasks have only the fields of a spec.
func copyAlternatives(list []Alternative) []Alternative {
	out := slices.Clone(list)
	for a := range out {
		alt := &out[a]
		alt.Tasks = slices.Clone(alt.Tasks)
		alt.Subgroups = slices.Clone(alt.Subgroups)
		for i, t := range alt.Tasks {
			alt.Tasks[i] = &Task{Name: t.Name, UID: t.UID, Role: t.Role, Index: t.Index, Shape: t.Shape, Subgroup: t.subgroup}
		}
	}
	return out
}
