package scheduler

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/recent"
	"github.com/berth-project/berth/kube/internal/facts"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/queuestatus"
	"github.com/berth-project/berth/kube/internal/selector"
	"github.com/berth-project/berth/kube/internal/watch"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// objects gives each object to the feed, which returns facts for the State, and to the Store,
// from which the filters of Kubernetes read.
type objects struct {
	feed    *feed.Feed
	store   *intree.Store
	pods    map[types.UID]*corev1.Pod
	names   map[types.NamespacedName]types.UID
	invalid invalidQueues
	notes   map[types.UID][]feed.Note    // how each pod was read, if its user should know
	tasks   map[types.UID]intree.TaskKey // the task that each pod is in State
	// gone are pods of which a read has shown that they are gone, before the watch has delivered
	// that.
	gone map[types.UID]bool
	// claims are the versions of the ResourceClaims, and deleted are pods and claims that were
	// deleted lately. Both tell what a read delivers later than the watch.
	claims  map[types.UID]uint64
	deleted *recent.Set[types.UID]
}

// maxDeleted is how many deleted objects are remembered. A read ends soon after it began.
const maxDeleted = 1 << 12

func newObjects(o feed.Options, store *intree.Store) *objects {
	o.Match = selector.New()
	x := &objects{invalid: invalidQueues{byName: map[string]queuestatus.Invalid{}}, feed: feed.New(o), store: store, pods: map[types.UID]*corev1.Pod{}, names: map[types.NamespacedName]types.UID{}, tasks: map[types.UID]intree.TaskKey{}, notes: map[types.UID][]feed.Note{}, gone: map[types.UID]bool{}, claims: map[types.UID]uint64{}, deleted: recent.New[types.UID](maxDeleted)}
	store.UseHoldings(x.feed.Holdings)
	return x
}

// isOld reports whether the event has a version of a pod or a ResourceClaim that is known, or an
// older one. An object that was read after a refused request, or by the barrier, may be newer
// than what the watch delivers next, or may be gone: what the watch delivers of it before its
// deletion is old. What the barrier has read may be older than what the watch has delivered.
func (x *objects) isOld(e watch.Event) bool {
	if e.Deleted {
		return false
	}
	switch o := e.Object.(type) {
	case *corev1.Pod:
		known := x.pods[o.UID]
		return x.gone[o.UID] || x.deleted.Has(o.UID) || known != nil && isUpTo(o, feed.Revision(&known.ObjectMeta))
	case *resourcev1.ResourceClaim:
		return x.deleted.Has(o.UID) || isUpTo(o, x.claims[o.UID])
	}
	return false
}

// isUpTo reports whether the object has the revision or an earlier one. A revision of 0 is not
// known.
func isUpTo(o metav1.ObjectMetaAccessor, revision uint64) bool {
	own := feed.Revision(o.GetObjectMeta().(*metav1.ObjectMeta))
	return own != 0 && own <= revision
}

// isKnown reports whether the pod or ResourceClaim was delivered or read before.
func (x *objects) isKnown(o any) bool {
	uid := uidOf(o)
	_, isClaim := x.claims[uid]
	return isClaim || x.pods[uid] != nil
}

// read returns the facts that the event makes true.
func (x *objects) read(e watch.Event) ([]cluster.Change, []feed.Note) {
	out, notes := facts.Of(x.feed, e)
	switch o := e.Object.(type) {
	case *corev1.Pod:
		if e.Deleted {
			break
		}
		if x.pods[o.UID], x.names[nameOf(o)] = o, o.UID; len(notes) > 0 {
			x.notes[o.UID] = notes
		} else if len(out) > 0 {
			delete(x.notes, o.UID)
		}
	case *unstructured.Unstructured:
		if facts.IsQueue(o) {
			x.invalid.set(o, notes)
		}
	}
	return out, notes
}

// follow notes which pods are which tasks, as a fact says.
func (x *objects) follow(fact cluster.Change) {
	switch f := fact.(type) {
	case cluster.TaskPut:
		x.setTask(types.UID(f.Task.UID), intree.TaskKey{Job: f.Job, Task: f.Task.Name, UID: f.Task.UID})
	case cluster.JobPut:
		for i := range f.Job.Alternatives {
			for _, t := range f.Job.Alternatives[i].Tasks {
				x.setTask(types.UID(t.UID), intree.TaskKey{Job: f.Job.ID, Task: t.Name, UID: t.UID})
			}
		}
	}
}

func (x *objects) setTask(uid types.UID, key intree.TaskKey) {
	was, known := x.tasks[uid]
	x.tasks[uid] = key
	if !known || was == key {
		return
	}
	x.store.DeletePod(was)
	if pod := x.pods[uid]; pod != nil { // it is a task of another job since its group is known
		_ = x.store.PutPod(key, pod)
	}
}

// keep gives the object to the Store, after the facts about it are in State.
func (x *objects) keep(e watch.Event) {
	switch o := e.Object.(type) {
	case *corev1.Pod:
		key, isTask := x.tasks[o.UID]
		switch {
		case e.Deleted:
			delete(x.gone, o.UID)
			x.deleted.Add(o.UID)
			delete(x.pods, o.UID)
			delete(x.notes, o.UID)
			if x.names[nameOf(o)] == o.UID {
				delete(x.names, nameOf(o))
			}
			delete(x.tasks, o.UID)
			x.store.DeletePod(key)
		case isTask:
			// The only error is a pod without a UID, which an API server does not have.
			_ = x.store.PutPod(key, o)
		}
	case *corev1.Node:
		if e.Deleted {
			x.store.DeleteNode(o.Name)
		} else {
			x.store.PutNode(o)
		}
	case *schedulingv1.PriorityClass, *policyv1.PodDisruptionBudget, *batchv1.Job, *unstructured.Unstructured:
	case runtime.Object:
		if claim, is := o.(*resourcev1.ResourceClaim); is {
			x.keepClaim(claim, e.Deleted)
		}
		// Objects that no filter reads are no error: they are in the feed.
		if e.Deleted {
			_ = x.store.Delete(o)
		} else {
			_ = x.store.Put(o)
		}
	}
}

// keepClaim notes the version of the claim, or that it was deleted.
func (x *objects) keepClaim(o *resourcev1.ResourceClaim, deleted bool) {
	if deleted {
		delete(x.claims, o.UID)
		x.deleted.Add(o.UID)
	} else {
		x.claims[o.UID] = feed.Revision(&o.ObjectMeta)
	}
}

// pod returns the pod of a task; nil if there is none.
func (x *objects) pod(ref cluster.TaskRef) *corev1.Pod {
	_, uid, found := x.feed.Pod(ref)
	if !found {
		return nil
	}
	return x.pods[uid]
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// metaOf returns the metadata of the object that tell its versions apart.
func metaOf(o *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

// readByFilters reports whether the object is read by the filters of Kubernetes and makes no fact
// for the State: it may help a pod nevertheless.
func readByFilters(o any) bool {
	switch o := o.(type) {
	case *corev1.Pod:
		return len(o.Spec.ResourceClaims) > 0 // its status names claims that were created for it
	case *corev1.Node, *schedulingv1.PriorityClass, *policyv1.PodDisruptionBudget, *batchv1.Job, *unstructured.Unstructured:
		return false
	}
	return true
}
