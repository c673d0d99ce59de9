package scheduler

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Filled is a State that was made of a list of objects, as a Scheduler makes its State of what
// informers deliver.
type Filled struct {
	State *cluster.State
	Notes []feed.Note
	// Rejected are the errors about facts that the State rejected as malformed.
	Rejected []error
	objects  *objects
}

// Fill returns a new State of the objects, and puts into the Store what the filters of
// Kubernetes read. The pods in the Store name no node: a pod that is evicted in a simulation
// stands for the pod that replaces it, which no node is set for.
func Fill(o feed.Options, list []watch.Event, store *intree.Store) *Filled {
	f := &Filled{State: cluster.NewState(), objects: newObjects(o, store)}
	for _, e := range list {
		facts, notes := f.objects.read(e)
		f.Notes = append(f.Notes, notes...)
		for _, fact := range facts {
			f.objects.follow(fact)
			if err := f.State.Apply(fact); err != nil {
				f.Rejected = append(f.Rejected, err)
			}
		}
	}
	// The task of a pod is known only after all objects, because the object that describes
	// a group may follow its pods.
	for _, e := range list {
		if pod, isPod := e.Object.(*corev1.Pod); isPod && pod.Spec.NodeName != "" {
			replacement := *pod
			replacement.Spec.NodeName = ""
			e.Object = &replacement
		}
		f.objects.keep(e)
	}
	return f
}

// Feed returns the feed that read the objects.
func (f *Filled) Feed() *feed.Feed { return f.objects.feed }

// Task returns the task that the pod is in State. It returns false if the pod is no task.
func (f *Filled) Task(uid types.UID) (intree.TaskKey, bool) {
	key, isTask := f.objects.tasks[uid]
	return key, isTask
}
