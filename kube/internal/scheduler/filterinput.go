package scheduler

import (
	"encoding/json"
	"fmt"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/history"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/objectfile"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// filterInput is what the filters of Kubernetes read in a session: the field kubernetes of a
// snapshot.
type filterInput struct {
	// Configuration is that of the scheduler, with the filters; nil: the default profile.
	Configuration *v1alpha1.SchedulerConfiguration `json:"configuration,omitempty"`
	Pods          []taskPod                        `json:"pods,omitempty"`
	Objects       []map[string]any                 `json:"objects,omitempty"`
	// Assumed are volumes and claims as they will be, which the filters read instead of those
	// in Objects.
	Assumed []map[string]any `json:"assumed,omitempty"`
	// Pending are ResourceClaims that are being allocated.
	Pending []map[string]any `json:"pending,omitempty"`
	// Holds are what is reserved for the claims of tasks.
	Holds []intree.Hold `json:"holds,omitempty"`
	// Gone are pods that are gone, and whose claims are not deallocated yet.
	Gone []types.UID `json:"gone,omitempty"`
}

// taskPod is the pod of a task.
type taskPod struct {
	Job  string         `json:"job"`
	Task string         `json:"task"`
	Pod  map[string]any `json:"pod"`
}

// encodeFilterInput returns what the filters read in the session, without what may be secret.
func encodeFilterInput(c *v1alpha1.SchedulerConfiguration, in *history.Input) (json.RawMessage, error) {
	out := filterInput{Configuration: c, Holds: in.Assumed.Holds, Gone: in.Assumed.Gone}
	var err error
	encode := func(o runtime.Object) map[string]any {
		fields, failed := objectfile.Encode(o)
		if failed != nil && err == nil {
			err = failed
		}
		return fields
	}
	for _, p := range in.Objects.Pods() {
		out.Pods = append(out.Pods, taskPod{p.Task.Job, p.Task.Task, encode(p.Pod)})
	}
	for _, o := range in.Objects.Others() {
		out.Objects = append(out.Objects, encode(o))
	}
	for _, o := range in.Assumed.Objects {
		out.Assumed = append(out.Assumed, encode(o))
	}
	for _, o := range in.Assumed.Pending {
		out.Pending = append(out.Pending, encode(o))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// PodsOf returns the pods in the field kubernetes of a snapshot.
func PodsOf(kubernetes json.RawMessage) ([]*corev1.Pod, error) {
	var f filterInput
	if err := json.Unmarshal(kubernetes, &f); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	var out []*corev1.Pod
	for i, p := range f.Pods {
		o, err := decode[*corev1.Pod](p.Pod)
		if err != nil {
			return nil, fmt.Errorf("kubernetes.pods[%d]: %w", i, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// fill puts the objects into the Store.
func (f *filterInput) fill(store *intree.Store) error {
	contents := intree.NewContents()
	for i, p := range f.Pods {
		o, err := decode[*corev1.Pod](p.Pod)
		if err != nil {
			return fmt.Errorf("kubernetes.pods[%d]: %w", i, err)
		}
		contents.Apply(intree.Update{Task: intree.TaskKey{Job: p.Job, Task: p.Task, UID: string(o.UID)}, Object: o})
	}
	for i, fields := range f.Objects {
		o, err := decode[runtime.Object](fields)
		if err != nil {
			return fmt.Errorf("kubernetes.objects[%d]: %w", i, err)
		}
		contents.Apply(intree.Update{Object: o})
	}
	if err := contents.Fill(store); err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	return f.assume(store)
}

// assume makes the filters take for true what they did when the session was opened.
func (f *filterInput) assume(store *intree.Store) error {
	a := intree.Assumed{Holds: f.Holds, Gone: f.Gone}
	for i, fields := range f.Assumed {
		o, err := decode[runtime.Object](fields)
		if err != nil {
			return fmt.Errorf("kubernetes.assumed[%d]: %w", i, err)
		}
		a.Objects = append(a.Objects, o)
	}
	for i, fields := range f.Pending {
		o, err := decode[*resourcev1.ResourceClaim](fields)
		if err != nil {
			return fmt.Errorf("kubernetes.pending[%d]: %w", i, err)
		}
		a.Pending = append(a.Pending, o)
	}
	if err := store.Assume(a); err != nil {
		return fmt.Errorf("kubernetes.assumed: %w", err)
	}
	return nil
}

// decode decodes an object, which must be of the type.
func decode[T runtime.Object](fields map[string]any) (T, error) {
	var none T
	o, err := objectfile.Decode(fields)
	if err != nil {
		return none, err
	}
	out, is := o.(T)
	if !is {
		return none, fmt.Errorf("the object is a %T", o)
	}
	return out, nil
}
