package feed

import (
	"maps"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	kindQueue     = "Queue"
	kindBudget    = "PodDisruptionBudget"
	kindClass     = "PriorityClass"
	kindNamespace = "Namespace"
)

// clusterWide returns the key of an object that has no namespace.
func clusterWide(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: name}
}

// PutQueue reports a queue. An invalid queue is reported as removed, as it is after a
// restart.
func (f *Feed) PutQueue(o *v1alpha1.Queue) ([]cluster.Change, []Note) {
	isNew, replaced := f.versions.admit(kindQueue, &o.ObjectMeta)
	if !isNew {
		return nil, nil
	}
	q, list := convert.Queue(o, &f.env)
	if problem := parentProblem(q); problem != "" {
		list = append(list, convert.Note{Severity: convert.Invalid, Path: field.Path{"spec", "parent"}, Message: problem})
	}
	notes := namedNotes(kindQueue, &o.ObjectMeta, list)
	var out []cluster.Change
	if replaced || list.Invalid() {
		out = append(out, cluster.QueueGone{Name: o.Name})
	}
	if list.Invalid() {
		delete(f.queues, o.Name)
	} else {
		f.queues[o.Name] = q
		out = append(out, cluster.QueuePut{Queue: *q, Revision: Revision(&o.ObjectMeta)})
	}
	return append(out, f.tiersChanged()...), notes
}

// parentProblem returns what is wrong with the parent of the queue, and "" if nothing is.
func parentProblem(q *cluster.Queue) string {
	switch {
	case q.Parent != "" && q.Parent == q.Name:
		return "the queue is its own parent; name another, or leave it out"
	case q.Parent == cluster.DefaultQueue:
		return "no queue can be below the default queue, which has jobs; name another, or leave it out"
	case q.Parent != "" && q.Name == cluster.DefaultQueue:
		return "the default queue is at the top; leave the parent out"
	}
	return ""
}

// DeleteQueue reports that the queue was removed. An empty UID means any queue of this
// name.
func (f *Feed) DeleteQueue(name string, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindQueue, clusterWide(name), uid) {
		return nil
	}
	delete(f.queues, name)
	return append([]cluster.Change{cluster.QueueGone{Name: name}}, f.tiersChanged()...)
}

// tiersChanged returns the facts about jobs that are preemptible by their queue now, or
// are not any more.
func (f *Feed) tiersChanged() []cluster.Change {
	low := map[string]string{}
	for name := range f.queues {
		at := name
		for range f.queues { // the parents of a queue may form a cycle
			q := f.queues[at]
			if q == nil {
				break
			}
			if q.Tier == cluster.TierScavenger {
				low[name] = at
				break
			}
			at = q.Parent
		}
	}
	if maps.Equal(low, f.low) {
		return nil
	}
	f.low = low
	return f.settleAll("")
}

// PutPodDisruptionBudget reports a disruption budget.
func (f *Feed) PutPodDisruptionBudget(o *policyv1.PodDisruptionBudget) ([]cluster.Change, []Note) {
	if isNew, _ := f.versions.admit(kindBudget, &o.ObjectMeta); !isNew {
		return nil, nil
	}
	b, list := convert.PodDisruptionBudget(o)
	notes := namedNotes(kindBudget, &o.ObjectMeta, list)
	if list.Invalid() {
		return []cluster.Change{cluster.BudgetGone{Namespace: b.Namespace, Name: b.Name}}, notes
	}
	return []cluster.Change{cluster.BudgetPut{Budget: *b}}, notes
}

// DeletePodDisruptionBudget reports that the budget was removed. An empty UID means any
// budget of this name.
func (f *Feed) DeletePodDisruptionBudget(name types.NamespacedName, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindBudget, name, uid) {
		return nil
	}
	return []cluster.Change{cluster.BudgetGone{Namespace: name.Namespace, Name: name.Name}}
}

// PutPriorityClass sets the priority of groups that name the class. The priority of a pod
// is in the pod.
func (f *Feed) PutPriorityClass(o *schedulingv1.PriorityClass) []cluster.Change {
	if isNew, _ := f.versions.admit(kindClass, &o.ObjectMeta); !isNew {
		return nil
	}
	if value, known := f.classes[o.Name]; known && value == o.Value {
		return nil
	}
	f.classes[o.Name] = o.Value
	return f.settleAll("")
}

// DeletePriorityClass removes the class. An empty UID means any class of this name.
func (f *Feed) DeletePriorityClass(name string, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindClass, clusterWide(name), uid) {
		return nil
	}
	delete(f.classes, name)
	return f.settleAll("")
}

// PutNamespace sets the default queue of the namespace.
func (f *Feed) PutNamespace(o *corev1.Namespace) []cluster.Change {
	if isNew, _ := f.versions.admit(kindNamespace, &o.ObjectMeta); !isNew {
		return nil
	}
	return f.setDefaultQueue(o.Name, o.Annotations[AnnotationDefaultQueue])
}

// DeleteNamespace removes the default queue of the namespace. An empty UID means any
// namespace of this name.
func (f *Feed) DeleteNamespace(name string, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindNamespace, clusterWide(name), uid) {
		return nil
	}
	return f.setDefaultQueue(name, "")
}

func (f *Feed) setDefaultQueue(namespace, queue string) []cluster.Change {
	if f.defaults[namespace] == queue {
		return nil
	}
	if f.defaults[namespace] = queue; queue == "" {
		delete(f.defaults, namespace)
	}
	return f.settleAll(namespace)
}
