package convert

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxTasks is the largest number of tasks of all jobs of a cluster together.
	MaxTasks = 2_000_000
	// maxJobTasks is the largest number of tasks of one job, in all of its alternatives
	// and cells together.
	maxJobTasks = 100_000
)

// Units of placement.
const (
	unitDevice = "Device"
	unitNode   = "Node"
)

// JobID returns job/NAME or job/NAMESPACE/NAME.
func JobID(o *v1alpha1.Job) string { return scopedID("job", &o.ObjectMeta) }

// scopedID returns the ID of an object that may be in a namespace.
func scopedID(kind string, m *metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return kind + "/" + m.Name
	}
	return kind + "/" + m.Namespace + "/" + m.Name
}

// created returns when the object was created, in nanoseconds; 0 if that is not known.
func created(m *metav1.ObjectMeta) int64 { return Nanoseconds(&m.CreationTimestamp) }

// Nanoseconds returns the time in nanoseconds since 1970, as State counts it. It is 0
// if t is nil or zero, or is before 1970 or after 2200 in UTC. State has 0 for a time that
// is not known.
func Nanoseconds(t *metav1.Time) int64 {
	if t == nil || t.IsZero() || t.UTC().Year() < 1970 || t.UTC().Year() > 2200 {
		return 0
	}
	return t.UnixNano()
}

// checkTime reports a time for which Nanoseconds returns 0, so that State would take it
// for a time that is not known. A nil time is valid: the field may be left out.
func checkTime(t *metav1.Time, at path, r reporter) {
	switch {
	case t == nil || Nanoseconds(t) != 0:
	case t.Unix() == 0:
		r.errorf(at, "1970-01-01T00:00:00Z stands for a time that is not known; write a later time, or leave it out")
	default:
		r.errorf(at, "want a time from 1970 to 2200, have %s", t.UTC().Format(time.RFC3339))
	}
}

// Job converts a job of Berth. The tasks that its status places are pending in the
// result.
func Job(o *v1alpha1.Job, env *Environment) (*cluster.Job, Notes) {
	var notes Notes
	r := reporter{&notes}
	spec := path{"spec"}
	checkName(o.Name, "job", r)
	checkNamespace(o.Namespace, r)
	checkLabels(o.Labels, path{"metadata", "labels"}, r)
	j := &cluster.Job{
		ID: JobID(o), Namespace: o.Namespace, Queue: o.Spec.Queue, Priority: o.Spec.Priority,
		Created: created(&o.ObjectMeta), Labels: maps.Clone(o.Labels), Chosen: -1,
	}
	details := j.OwnDetails()
	j.Preemptible, details.Remarks = env.preemptible(o.Spec.Preemptible, o.Spec.Queue)
	if d := o.Spec.RunTime; d != nil {
		if j.RunFor = int64(d.Duration); j.RunFor <= 0 {
			r.errorf(spec.Add("runTime"), "want more than 0, have %s; leave it out for a job that runs on", d.Duration)
		}
	}
	details.StaleGrace = staleGrace(o.Spec.StaleGrace, spec.Add("staleGrace"), r)
	details.PreemptionDelay = preemptionDelay(o.Spec.PreemptionDelay, spec.Add("preemptionDelay"), r)
	checkTime(o.Status.TornSince, path{"status", "tornSince"}, r)
	checkTime(o.Status.Evicted, path{"status", "evicted"}, r)
	details.BelowMinimumSince, details.Evicted = Nanoseconds(o.Status.TornSince), Nanoseconds(o.Status.Evicted)
	checkDistinct(o.Spec.Cells, "cell", spec.Add("cells"), r)
	checkLabels(o.Spec.NodeSelector, spec.Add("nodeSelector"), r)
	if iso := o.Spec.Isolation; iso != nil {
		checkIsolation(iso, spec.Add("isolation"), r)
		if iso.Session != "" && iso.GPU != "" && iso.GPU != string(cluster.GPUSessionExclusive) {
			r.errorf(spec.Add("isolation", "session"), "a session needs gpu: %s beside it", cluster.GPUSessionExclusive)
		}
	}
	common := cluster.Shape{
		Tolerations: makeTolerations(o.Spec.Tolerations, spec.Add("tolerations"), r),
		Preemptible: j.Preemptible, Profile: env.profile(o.Spec.SchedulerName),
	}
	details.Affinity = makeAffinity(o.Spec.Affinity, &common, spec.Add("affinity"), r)
	for i := range o.Status.Placements {
		checkPlacement(&o.Status.Placements[i], path{"status", "placements", i}, r)
	}

	m := jobMaker{job: o, common: common, env: env, r: r, left: maxJobTasks}
	switch {
	case len(o.Spec.Tasks) > 0 && len(o.Spec.Alternatives) > 0:
		r.errorf(spec.Add("alternatives"), "a job has tasks or alternatives; move the tasks into an alternative of their own")
	case len(o.Spec.Alternatives) > 0:
		for i := range o.Spec.Alternatives {
			j.Alternatives = append(j.Alternatives, m.alternative(i)...)
		}
	default:
		a := v1alpha1.Alternative{Tasks: o.Spec.Tasks}
		j.Alternatives = m.perCell(&a, spec, spec)
	}
	return j, notes
}

// jobMaker makes the alternatives of one job: one for each pair of an alternative in its
// spec and a cell.
type jobMaker struct {
	job    *v1alpha1.Job
	common cluster.Shape
	env    *Environment
	r      reporter
	left   int64          // how many more tasks the job may have
	names  map[string]int // indexes of the alternatives by name
}

// alternative makes entry i of spec.alternatives for each cell.
func (m *jobMaker) alternative(i int) []cluster.Alternative {
	a := m.job.Spec.Alternatives[i]
	at := path{"spec", "alternatives", i}
	if a.Name == "" {
		a.Name = fmt.Sprintf("alternative %d", i+1)
	} else if j, twice := m.names[a.Name]; twice {
		m.r.errorf(at.Add("name"), "alternative %s is already entry %d", phrase.Quote(a.Name), j)
	}
	if m.names == nil {
		m.names = map[string]int{}
	}
	m.names[a.Name] = i
	minAt := at
	if a.MinMember == nil {
		minAt = path{"spec"}
	}
	return m.perCell(&a, at, minAt)
}

// perCell makes the alternative for each cell. At is where the alternative is
// written, minAt the object that has its minMember.
func (m *jobMaker) perCell(a *v1alpha1.Alternative, at, minAt path) []cluster.Alternative {
	if a.MinMember == nil {
		a.MinMember = m.job.Spec.MinMember
	}
	placementAt := at
	if a.Placement == nil {
		a.Placement, placementAt = m.job.Spec.Placement, path{"spec"}
	}
	if len(a.Tasks) == 0 {
		m.r.errorf(at.Add("tasks"), "the job has no tasks; add one such as {name: worker, devices: {count: 1}}")
		return nil
	}
	layout := m.layout(a, at, placementAt)
	if layout == nil {
		return nil
	}
	if !m.makeSubgroups(a, at, layout) {
		return nil
	}
	least, ok := m.minimum(a, minAt, layout)
	if !ok {
		return nil
	}
	cells := m.job.Spec.Cells
	if len(cells) == 0 {
		cells = []string{""}
	}
	total := int64(layout.total) * int64(len(cells))
	if total > m.left {
		m.r.errorf(at.Add("tasks"), "the job has more than %d tasks, all alternatives and cells counted; split it", maxJobTasks)
		return nil
	}
	m.left -= total
	out := make([]cluster.Alternative, 0, len(cells))
	for _, cell := range cells {
		name := a.Name
		if cell != "" && name != "" {
			name += " "
		}
		if cell != "" {
			name += "in " + cell
		}
		out = append(out, cluster.Alternative{
			Name: name, Tasks: layout.makeTasks(cell), Min: least, Whole: layout.whole,
			Subgroups: slices.Clone(layout.subgroups), MinSubgroups: layout.minSubgroups, Topology: layout.topology,
		})
	}
	return out
}

// layout is an alternative before its tasks are made. It is the same for every cell.
type layout struct {
	roles []role
	total int
	nodes int // per replica
	whole *cluster.WholeNodes

	subgroups    []cluster.Subgroup
	minSubgroups int
	topology     cluster.Topology
}

type role struct {
	name     string
	count    int
	shape    cluster.Shape
	subgroup int // index of its subgroup plus 1; 0 if it is in none
}

// layout makes the layout of the alternative. It returns nil if the number of its
// tasks is not valid.
func (m *jobMaker) layout(a *v1alpha1.Alternative, at, placementAt path) *layout {
	p := &layout{nodes: 1}
	placement := v1alpha1.Placement{}
	if a.Placement != nil {
		placement = *a.Placement
	}
	selector := m.placement(&placement, placementAt.Add("placement"), len(a.Tasks), p)
	names := map[string]int{}
	total, countable := int64(0), true
	for i := range a.Tasks {
		t, at := &a.Tasks[i], at.Add("tasks", i)
		if checkNameAt(t.Name, "task", at.Add("name"), m.r) {
			if j, twice := names[t.Name]; twice {
				m.r.errorf(at.Add("name"), "task %s is already tasks[%d]; give it replicas or another name", phrase.Quote(t.Name), j)
			}
			names[t.Name] = i
		}
		replicas := 1
		if t.Replicas != nil {
			replicas = *t.Replicas
		}
		if replicas < 1 || replicas > maxJobTasks {
			m.r.errorf(at.Add("replicas"), "want from 1 to %d, have %d", maxJobTasks, replicas)
			countable = false
			continue
		}
		count := int64(replicas) * int64(p.nodes)
		total += count
		shape, memory := m.shape(t, at, p.nodes, placement.Unit == unitNode)
		shape.Selector = m.selector(selector, t.NodeSelector, at.Add("nodeSelector"))
		m.nodeAffinity(&shape, t.Affinity, at.Add("affinity"))
		if placement.Unit == unitNode {
			p.whole = &cluster.WholeNodes{Replicas: replicas, NodesPerReplica: p.nodes, Memory: memory}
		}
		for _, x := range shape.Resources {
			if x.Value > 0 && count > math.MaxInt64/x.Value {
				m.r.errorf(at.Add("resources", x.Name), "%d times this is too large to count", count)
			}
		}
		p.roles = append(p.roles, role{name: t.Name, count: int(min(count, maxJobTasks+1)), shape: shape})
	}
	if !countable {
		return nil
	}
	p.total = int(min(total, maxJobTasks+1))
	return p
}

// placement checks a placement and returns the labels that it requires of nodes. It
// sets how many nodes each replica takes.
func (m *jobMaker) placement(p *v1alpha1.Placement, at path, tasks int, into *layout) []cluster.Label {
	checkEnum(p.Unit, []string{unitDevice, unitNode}, at.Add("unit"), m.r)
	if n := p.NodesPerReplica; n != nil {
		switch {
		case p.Unit != unitNode:
			m.r.errorf(at.Add("nodesPerReplica"), "nodes per replica need unit: %s beside it", unitNode)
		case *n < 1 || *n > maxJobTasks:
			m.r.errorf(at.Add("nodesPerReplica"), "want from 1 to %d, have %d", maxJobTasks, *n)
		default:
			into.nodes = *n
		}
	}
	if p.Unit == unitNode && tasks != 1 {
		m.r.errorf(at.Add("unit"), "unit %s needs exactly one entry under tasks, have %d: its replicas take whole nodes", unitNode, tasks)
	}
	labels := maps.Clone(m.job.Spec.NodeSelector)
	if p.InstanceType != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		if v, set := labels[v1alpha1.LabelInstanceType]; set && v != p.InstanceType {
			m.r.errorf(at.Add("instanceType"), "nodeSelector already asks for the instance type %s; keep one", phrase.Quote(v))
		}
		labels[v1alpha1.LabelInstanceType] = p.InstanceType
		checkLabelValue(p.InstanceType, at.Add("instanceType"), m.r)
	}
	return cluster.SortLabels(labels)
}

// shape makes the shape of the tasks of one entry. The second result is the device
// memory that one replica needs on all of its nodes; it is 0 unless replicas take
// whole nodes.
func (m *jobMaker) shape(t *v1alpha1.Task, at path, nodes int, wholeNodes bool) (cluster.Shape, cluster.Bytes) {
	s := m.common
	var memory cluster.Bytes
	s.Resources = cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}}
	for _, a := range amounts(t.Resources, at.Add("resources"), m.r) {
		if IsDevice(a.Name) || m.env.DeviceResources[a.Name] {
			m.r.errorf(at.Add("resources", a.Name), "ask for devices under devices: {count: %d}", max(1, a.Value))
			continue
		}
		s.Resources = s.Resources.With(a.Name, a.Value)
	}
	if wholeNodes {
		s.Need, memory = makeNodeNeed(t.Devices, at.Add("devices"), m.r)
	} else {
		s.Need = makeNeed(t.Devices, at.Add("devices"), m.r)
	}
	s.Isolation = makeIsolation(m.job.Spec.Isolation, t.Isolation, at.Add("isolation"), m.r)
	roundUpCores(&s)
	s.LeftOut = slices.DeleteFunc(cluster.LeftOut(s.Resources), func(a cluster.Amount) bool {
		_, given := t.Resources[corev1.ResourceName(a.Name)] // a request of 0 is a request
		return given
	})
	return s, memory
}

// makeTasks makes the tasks for a cell, with one allocation for all.
func (p *layout) makeTasks(cell string) []*cluster.Task {
	tasks := make([]cluster.Task, p.total)
	out := make([]*cluster.Task, 0, p.total)
	for i := range p.roles {
		shape := p.roles[i].shape
		shape.Cell = cell
		for k := range p.roles[i].count {
			t := &tasks[len(out)]
			*t = cluster.Task{Name: p.roles[i].name + "-" + strconv.Itoa(k), Role: p.roles[i].name, Index: k, Shape: &shape, Subgroup: p.roles[i].subgroup}
			out = append(out, t)
		}
	}
	return out
}
