package intree

import (
	"fmt"
	"reflect"
	"time"

	"github.com/berth-project/berth/cluster"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
)

// TaskKey identifies a task of State and, by its UID, one of several tasks that have the
// same name at different times.
type TaskKey struct {
	Job  string `json:"job"`
	Task string `json:"task"`
	UID  string `json:"uid,omitempty"`
}

// KeyOf returns the key of a task. For the shadow of a task that moves, it is that of the
// task.
func KeyOf(t *cluster.Task) TaskKey {
	if moving := t.ShadowOf(); moving != nil {
		t = moving
	}
	return TaskKey{t.Job.ID, t.Name, t.UID}
}

// Store holds the objects of Kubernetes that the in-tree plugins read beside State: the pod
// of each task, nodes, volumes, claims and others. It is filled between sessions and must
// not be changed while a session runs, so that the answers of a session are constant. It
// is not safe for concurrent use. The Store keeps the objects, which must not be changed.
type Store struct {
	client    kubernetes.Interface // nil: nothing is written
	primary   *plugin              // the plugin that was built first
	pods      map[TaskKey]*pod
	samples   map[string]*sample // by podkind.Key; without ""
	nodes     map[string]*v1.Node
	factory   informers.SharedInformerFactory
	informers map[reflect.Type]*frozenInformer
	gone      gonePods
	slices    int      // how many ResourceSlices there are
	holdings  Holdings // nil: devices of claims are counted only
	epoch     uint64   // grows when an object other than a pod or a node changes
	changes   []change // what changed, in order
	dropped   int      // how many changes are not in changes any more
	observe   func(Update)
	assumed   Assumed // see Assume; its Objects are in the informers
}

// sample stands for the pods of the Store that have one key.
type sample struct {
	pod  *v1.Pod // see sampleOf
	pods int     // how many pods have the key
}

// maxChanges is how many changes a Store keeps for plugins that have not seen them. Each may
// keep two versions of a pod in memory.
const maxChanges = 1 << 12

// change is one change of a Store. A plugin follows it, and decides whether it may cure
// rejections.
type change struct {
	task         TaskKey           // the task of a pod
	node         string            // the name of a node
	resource     fwk.EventResource // the kind of the object
	earlier, now any               // the object before and after; nil if there is none
}

// unregistered is the resource of kinds for which no plugin registers events. Any change of
// such an object may cure a rejection.
const unregistered fwk.EventResource = ""

// kinds are the kinds of object that Put accepts, with the names that plugins register
// events for.
var kinds = []struct {
	object   runtime.Object
	resource fwk.EventResource
}{
	{&v1.PersistentVolume{}, fwk.PersistentVolume},
	{&v1.PersistentVolumeClaim{}, fwk.PersistentVolumeClaim},
	{&storagev1.StorageClass{}, fwk.StorageClass},
	{&storagev1.CSINode{}, fwk.CSINode},
	{&storagev1.CSIDriver{}, fwk.CSIDriver},
	{&storagev1.CSIStorageCapacity{}, fwk.CSIStorageCapacity},
	{&storagev1.VolumeAttachment{}, fwk.VolumeAttachment},
	{&resourcev1.ResourceClaim{}, fwk.ResourceClaim},
	{&resourcev1.ResourceSlice{}, fwk.ResourceSlice},
	{&resourcev1.DeviceClass{}, fwk.DeviceClass},
	{&v1.Namespace{}, unregistered},
	{&v1.Node{}, fwk.Node}, // see PutNode
	{&v1.Pod{}, fwk.Pod},   // see PutPod
}

// NewStore returns an empty Store.
func NewStore() *Store {
	s := &Store{
		pods: map[TaskKey]*pod{}, samples: map[string]*sample{}, nodes: map[string]*v1.Node{}, informers: map[reflect.Type]*frozenInformer{},
		factory: informers.NewSharedInformerFactory(nil, 0), // never started
		gone:    newGonePods(),
	}
	for _, k := range kinds {
		informer := newFrozenInformer()
		s.informers[reflect.TypeOf(k.object)] = informer
		// The factory keeps the first informer of each kind.
		s.factory.InformerFor(k.object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer })
	}
	return s
}

// PutPod adds or replaces the pod of a task. The pod must have a UID.
func (s *Store) PutPod(key TaskKey, o *v1.Pod) error {
	p, err := newPod(o)
	if err != nil {
		return fmt.Errorf("pod of task %s/%s: %w", key.Job, key.Task, err)
	}
	c := change{task: key, resource: fwk.Pod, now: o}
	s.count(p, +1)
	if known := s.pods[key]; known != nil {
		c.earlier = known.info.Pod
		s.count(known, -1)
	}
	s.pods[key] = p
	if o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed {
		s.gone.note(o)
	} else {
		s.gone.remove(o.UID)
	}
	_, _ = s.informers[reflect.TypeFor[*v1.Pod]()].put(o) // VolumeBinding reads it when it binds
	s.log(c)
	return nil
}

// DeletePod removes the pod of a task. It does nothing if there is none.
func (s *Store) DeletePod(key TaskKey) {
	if known := s.pods[key]; known != nil {
		delete(s.pods, key)
		s.gone.note(known.info.Pod)
		s.count(known, -1)
		_, _ = s.informers[reflect.TypeFor[*v1.Pod]()].remove(known.info.Pod)
		s.log(change{task: key, resource: fwk.Pod, earlier: known.info.Pod})
	}
}

// count adds a pod to the pods that have its key, or removes it.
func (s *Store) count(p *pod, by int) {
	if p.key == "" {
		return
	}
	k := s.samples[p.key]
	if k == nil {
		k = &sample{pod: sampleOf(p.info.Pod)}
		s.samples[p.key] = k
	}
	if k.pods += by; k.pods == 0 {
		delete(s.samples, p.key)
	}
}

// sample returns a pod that stands for all pods with the key; nil if there is none.
func (s *Store) sample(key string) *v1.Pod {
	if key == "" {
		return &v1.Pod{}
	}
	if k := s.samples[key]; k != nil {
		return k.pod
	}
	return nil
}

// PutNode adds or replaces a node.
func (s *Store) PutNode(o *v1.Node) {
	c := change{node: o.Name, resource: fwk.Node, now: o}
	if known := s.nodes[o.Name]; known != nil {
		c.earlier = known
	}
	s.nodes[o.Name] = o
	_, _ = s.informers[reflect.TypeFor[*v1.Node]()].put(o) // VolumeBinding reads it when it binds
	s.log(c)
}

// DeleteNode removes a node. It does nothing if there is none.
func (s *Store) DeleteNode(name string) {
	if known := s.nodes[name]; known != nil {
		delete(s.nodes, name)
		_, _ = s.informers[reflect.TypeFor[*v1.Node]()].remove(known)
		s.log(change{node: name, resource: fwk.Node, earlier: known})
	}
}

// Put adds or replaces an object that is neither a pod nor a node. It returns an error if
// no in-tree plugin reads objects of this kind.
func (s *Store) Put(o runtime.Object) error {
	informer, resource, err := s.informer(o)
	if err != nil {
		return err
	}
	earlier, err := informer.put(o)
	if err != nil {
		return err
	}
	if resource == fwk.ResourceSlice && earlier == nil {
		s.slices++
	}
	s.epoch++
	s.log(change{resource: resource, earlier: earlier, now: o})
	return nil
}

// Delete removes the object with the kind, the namespace and the name of o. It does
// nothing if there is none.
func (s *Store) Delete(o runtime.Object) error {
	informer, resource, err := s.informer(o)
	if err != nil {
		return err
	}
	earlier, err := informer.remove(o)
	if err != nil || earlier == nil {
		return err
	}
	if resource == fwk.ResourceSlice {
		s.slices--
	}
	s.epoch++
	s.log(change{resource: resource, earlier: earlier})
	return nil
}

func (s *Store) informer(o runtime.Object) (*frozenInformer, fwk.EventResource, error) {
	for _, k := range kinds {
		if reflect.TypeOf(k.object) == reflect.TypeOf(o) {
			return s.informers[reflect.TypeOf(o)], k.resource, nil
		}
	}
	return nil, "", fmt.Errorf("objects of type %T are not read by in-tree plugins", o)
}

func (s *Store) log(c change) {
	if s.observe != nil {
		s.observe(updateOf(c))
	}
	if len(s.changes) == maxChanges {
		n := copy(s.changes, s.changes[maxChanges/2:])
		clear(s.changes[n:])
		s.changes, s.dropped = s.changes[:n], s.dropped+maxChanges/2
	}
	s.changes = append(s.changes, c)
}

// forget drops the changes before the position. A plugin that has not seen them reads the Store
// anew.
func (s *Store) forget(position int) {
	if n := position - s.dropped; n > 0 {
		rest := copy(s.changes, s.changes[n:])
		clear(s.changes[rest:])
		s.changes, s.dropped = s.changes[:rest], s.dropped+n
	}
}

// since returns the changes after the position, and the position after them. It returns
// false if some of them were dropped.
func (s *Store) since(position int) (list []change, now int, complete bool) {
	now = s.dropped + len(s.changes)
	if position < s.dropped {
		return nil, now, false
	}
	return s.changes[position-s.dropped:], now, true
}
