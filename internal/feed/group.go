package feed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// groupKey identifies the object that describes a group: a PodGroup, or the owner of pods.
type groupKey struct {
	source string
	name   types.NamespacedName
}

// group returns the key of the object that describes the pod's group. A LeaderWorkerSet has
// several groups, which are numbered after a slash.
func (p *pod) group() groupKey {
	name, _, _ := strings.Cut(p.member.name, "/")
	return groupKey{p.member.source, types.NamespacedName{Namespace: p.name.Namespace, Name: name}}
}

// group is what an object says about the job that it describes.
type group struct {
	uid          string
	created      int64
	min          int // 0: the object is not valid, and the group waits
	queue        string
	class        string // the name of its priority class; "" for that of its pods
	priority     *int32
	preemptible  *bool
	topology     cluster.Topology
	subgroups    []cluster.Subgroup
	minSubgroups int
	// apart is set if the parts are jobs of their own, because some are created only after
	// others are ready. minOf has the minima of parts that are jobs.
	apart bool
	minOf map[string]int
}

// parts returns the names of the subgroups.
func (g *group) parts() []string {
	var out []string
	for _, s := range g.subgroups {
		out = append(out, s.Name)
	}
	return out
}

// priorityIn returns the priority of the group, given the priorities of the classes, and
// false if it is that of its pods.
func (g *group) priorityIn(classes map[string]int32) (int32, bool) {
	if g.priority != nil {
		return *g.priority, true
	}
	value, known := classes[g.class]
	return value, known
}

// PutPodGroup reports a PodGroup of Kubernetes. With the policy basic, each pod is placed
// on its own.
func (f *Feed) PutPodGroup(o *schedulingv1alpha2.PodGroup) ([]cluster.Change, []Note) {
	g := group{min: 1, class: o.Spec.PriorityClassName, priority: o.Spec.Priority}
	var notes convert.Notes
	if gang := o.Spec.SchedulingPolicy.Gang; gang != nil {
		g.min = checkedMin(int64(gang.MinCount), field.Path{"spec", "schedulingPolicy", "gang", "minCount"}, &notes)
	}
	if c := o.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		g.topology.Required = c.Topology[0].Key
	}
	unread := func(name string, is bool, what string) {
		if is {
			notes = append(notes, convert.Note{Severity: convert.Ignored, Path: field.Path{"spec", name}, Message: "with " + what + ", which berth does not read"})
		}
	}
	unread("resourceClaims", len(o.Spec.ResourceClaims) > 0, "resourceClaims")
	unread("disruptionMode", o.Spec.DisruptionMode != nil && *o.Spec.DisruptionMode == schedulingv1alpha2.DisruptionModePodGroup, "disruptionMode PodGroup")
	return f.putGroup(byPodGroup, "PodGroup", &o.ObjectMeta, &g, notes)
}

// PutJob reports a Job, so that the minimum of its pods is known.
//
// An Indexed Job of which all pods run at the same time (completions equals parallelism) is
// a gang of all its pods: this is the form in which distributed programs are run, and the
// rule of the Job controller of Kubernetes for the PodGroups that it makes. The pods of any
// other Job work through a list of items; each is placed on its own.
func (f *Feed) PutJob(o *batchv1.Job) ([]cluster.Change, []Note) {
	g := group{min: 1}
	s := &o.Spec
	indexed := s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
	if indexed && s.Parallelism != nil && s.Completions != nil && *s.Parallelism == *s.Completions && *s.Parallelism > 1 {
		g.min = int(*s.Parallelism)
	}
	return f.putGroup(byJob, "Job", &o.ObjectMeta, &g, nil)
}

// PutGroup reports an object of a kind that is not part of Kubernetes and that describes a
// group of pods; see GroupKinds.
func (f *Feed) PutGroup(o *unstructured.Unstructured) ([]cluster.Change, []Note) {
	kind := o.GroupVersionKind().GroupKind()
	source := sources[kind]
	m := metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
	}
	var notes convert.Notes
	if source == "" {
		return nil, namedNotes(kind.Kind, &m, convert.Notes{{Severity: convert.Ignored, Path: field.Path{"kind"}, Message: "of a kind that describes no group of pods"}})
	}
	x := object{o.Object, &notes}
	g := x.describe(source)
	return f.putGroup(source, kind.Kind, &m, &g, notes)
}

// DeletePodGroup reports that a PodGroup of Kubernetes was removed. In this and in the next
// functions, an empty UID means any object of this name. The pods of a group that is gone
// wait; those that run are not affected.
func (f *Feed) DeletePodGroup(name types.NamespacedName, uid types.UID) []cluster.Change {
	return f.deleteGroup(byPodGroup, name, uid)
}

// DeleteJob reports that a Job was removed.
func (f *Feed) DeleteJob(name types.NamespacedName, uid types.UID) []cluster.Change {
	return f.deleteGroup(byJob, name, uid)
}

// DeleteGroup reports that an object was removed that PutGroup reported.
func (f *Feed) DeleteGroup(kind schema.GroupKind, name types.NamespacedName, uid types.UID) []cluster.Change {
	return f.deleteGroup(sources[kind], name, uid)
}

func (f *Feed) putGroup(source, kind string, m *metav1.ObjectMeta, g *group, list convert.Notes) ([]cluster.Change, []Note) {
	if isNew, _ := f.versions.admit(source, m); !isNew {
		return nil, nil
	}
	if list.Invalid() {
		*g = group{}
	}
	g.uid, g.created = string(m.UID), convert.Nanoseconds(&m.CreationTimestamp)
	key := groupKey{source, nameOf(m)}
	f.groups[key] = g
	return f.regroup(key), namedNotes(kind, m, list)
}

func (f *Feed) deleteGroup(source string, name types.NamespacedName, uid types.UID) []cluster.Change {
	if !f.versions.remove(source, name, uid) {
		return nil
	}
	key := groupKey{source, name}
	delete(f.groups, key)
	return f.regroup(key)
}

// regroup reports what changes for the pods of the group, after its object has changed.
func (f *Feed) regroup(key groupKey) []cluster.Change {
	var out []cluster.Change
	settled := map[*job]bool{}
	for _, name := range slices.SortedFunc(maps.Keys(f.waiting[key]), compareNames) {
		p := f.waiting[key][name]
		if p.job != nil && f.jobOf(p) != p.job {
			p.job.drop(p)
			out = append(out, f.place(p)...)
		}
		if p.job != nil && !settled[p.job] {
			settled[p.job] = true
			out = append(out, f.settle(p.job)...)
		}
	}
	return out
}

// checkedMin returns the minimum, and 0 with a note if it is not valid.
func checkedMin(n int64, at field.Path, notes *convert.Notes) int {
	if n < 1 || n > convert.MaxTasks {
		*notes = append(*notes, convert.Note{Severity: convert.Invalid, Path: at, Message: fmt.Sprintf("want a number of pods from 1 to %d, have %d", convert.MaxTasks, n)})
		return 0
	}
	return int(n)
}
