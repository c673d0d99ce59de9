package intree

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Update is one change of a Store.
type Update struct {
	Task    TaskKey        // the task of a pod; zero for other objects
	Object  runtime.Object // as it is now or, if Removed is set, as it was before
	Removed bool
}

// Observe sets the function that is called with each change of the Store. It must be set before
// the first one.
func (s *Store) Observe(f func(Update)) { s.observe = f }

func updateOf(c change) Update {
	u := Update{Task: c.task}
	if c.now == nil {
		u.Object, _ = c.earlier.(runtime.Object)
		u.Removed = true
	} else {
		u.Object, _ = c.now.(runtime.Object)
	}
	return u
}

// Contents are the objects of a Store at one time. The objects are shared with the Store and
// must not be changed.
type Contents struct {
	pods   map[TaskKey]*v1.Pod
	others map[objectID]runtime.Object // nodes and all other kinds
}

// objectID identifies an object other than a pod.
type objectID struct {
	kind reflect.Type
	name string // see objectKey
}

// NewContents returns the contents of an empty Store.
func NewContents() *Contents {
	return &Contents{pods: map[TaskKey]*v1.Pod{}, others: map[objectID]runtime.Object{}}
}

// Clone returns a copy.
func (c *Contents) Clone() *Contents {
	return &Contents{pods: maps.Clone(c.pods), others: maps.Clone(c.others)}
}

// Apply follows a change of the Store.
func (c *Contents) Apply(u Update) {
	if pod, isPod := u.Object.(*v1.Pod); isPod {
		if u.Removed {
			delete(c.pods, u.Task)
		} else {
			c.pods[u.Task] = pod
		}
		return
	}
	id := objectID{reflect.TypeOf(u.Object), objectKey(u.Object)}
	if u.Removed {
		delete(c.others, id)
	} else {
		c.others[id] = u.Object
	}
}

// TaskPod is the pod of a task.
type TaskPod struct {
	Task TaskKey
	Pod  *v1.Pod
}

// Pods returns the pods, by task.
func (c *Contents) Pods() []TaskPod {
	out := make([]TaskPod, 0, len(c.pods))
	for _, key := range slices.SortedFunc(maps.Keys(c.pods), compareKeys) {
		out = append(out, TaskPod{key, c.pods[key]})
	}
	return out
}

// Others returns the objects that are not pods, by kind, namespace and name.
func (c *Contents) Others() []runtime.Object {
	ids := slices.SortedFunc(maps.Keys(c.others), func(a, b objectID) int {
		if n := strings.Compare(a.kind.String(), b.kind.String()); n != 0 {
			return n
		}
		return strings.Compare(a.name, b.name)
	})
	out := make([]runtime.Object, 0, len(ids))
	for _, id := range ids {
		out = append(out, c.others[id])
	}
	return out
}

// Fill puts the contents into the Store. It returns an error if an object is of a kind that no
// in-tree plugin reads, or if a pod has no UID.
func (c *Contents) Fill(s *Store) error {
	for _, o := range c.Others() {
		if node, isNode := o.(*v1.Node); isNode {
			s.PutNode(node)
			continue
		}
		if err := s.Put(o); err != nil {
			return err
		}
	}
	for _, p := range c.Pods() {
		if err := s.PutPod(p.Task, p.Pod); err != nil {
			return fmt.Errorf("pod %s/%s: %w", p.Pod.Namespace, p.Pod.Name, err)
		}
	}
	return nil
}
