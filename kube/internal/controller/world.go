package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/kube/internal/facts"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/berth-project/berth/kube/internal/workload"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WorldOptions configure a World.
type WorldOptions struct {
	Engine          *engine.Engine
	SchedulerNames  []string // of the pods that Berth places
	Profiles        bool     // each scheduler name is the name of a profile
	Workload        workload.Options
	ModelsDirectory string // has the files of models that specs name by a relative path; "": there is none
	AdmitOnly       bool   // only Admit is called, so that neither models nor their objects are kept
	Clock           func() time.Time
}

// World is what is known of the cluster: a State of nodes and of the pods that have a node, and
// the models with their objects. It is safe for concurrent use.
type World struct {
	options WorldOptions

	mu     sync.Mutex
	feed   *feed.Feed
	state  *cluster.State
	fleet  modelset.Fleet
	sample modelset.Sample // for Admit
	models map[types.NamespacedName]*v1alpha1.Model
	owned  map[types.NamespacedName]*objects // by model
	others map[string]types.UID              // by keyOf: objects of no model that have a name which a model may need
	listed map[string]types.NamespacedName   // by keyOf: the model among whose objects an object is
	claims claimTable
}

// objects are the objects of one model.
type objects struct {
	pods        map[string]*corev1.Pod
	deployments map[string]*appsv1.Deployment
	sets        map[string]*unstructured.Unstructured // LeaderWorkerSets
	services    map[string]*corev1.Service
}

func newOwned() *objects {
	return &objects{map[string]*corev1.Pod{}, map[string]*appsv1.Deployment{}, map[string]*unstructured.Unstructured{}, map[string]*corev1.Service{}}
}

// NewWorld returns a World of a cluster without objects.
func NewWorld(o WorldOptions) *World {
	return &World{
		options: o, state: cluster.NewState(),
		feed:   feed.New(feed.Options{SchedulerNames: o.SchedulerNames, Profiles: o.Profiles, DevicesEnforced: o.Workload.DevicesEnforced, Replicas: true}),
		models: map[types.NamespacedName]*v1alpha1.Model{}, owned: map[types.NamespacedName]*objects{}, others: map[string]types.UID{}, listed: map[string]types.NamespacedName{}, claims: newClaimTable(),
	}
}

// Take takes in what a watch has delivered. It returns errors about objects that cannot be read and
// facts that the State rejects; all others are taken in.
func (w *World) Take(events []watch.Event) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, e := range events {
		changes, _ := facts.Of(w.feed, e)
		for _, c := range changes {
			if err := w.state.Apply(c); err != nil {
				errs = append(errs, err)
			}
		}
		if err := w.keep(e); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// keep notes a model, or an object of a model.
func (w *World) keep(e watch.Event) error {
	if w.options.AdmitOnly {
		return nil
	}
	switch o := e.Object.(type) {
	case *corev1.Node:
		w.claims.keepNode(o, e.Deleted)
	case *corev1.Pod:
		put(w, pods, o, o.Labels[feed.LabelModel], e.Deleted, func(x *objects) map[string]*corev1.Pod { return x.pods })
	case *appsv1.Deployment:
		w.keepOther(deployments, o, e.Deleted)
		put(w, deployments, o, ownerOf(o), e.Deleted, func(x *objects) map[string]*appsv1.Deployment { return x.deployments })
	case *corev1.Service:
		w.keepOther(services, o, e.Deleted)
		put(w, services, o, ownerOf(o), e.Deleted, func(x *objects) map[string]*corev1.Service { return x.services })
	case *unstructured.Unstructured:
		switch o.GroupVersionKind().GroupKind() {
		case workload.LWS.GroupKind():
			w.keepOther(sets, o, e.Deleted)
			put(w, sets, o, ownerOf(o), e.Deleted, func(x *objects) map[string]*unstructured.Unstructured { return x.sets })
		case modelsource.Kind:
			return w.keepModel(o, e.Deleted)
		case nodeClaimKind:
			return w.claims.keep(o, e.Deleted, w.options.Clock())
		}
	}
	return nil
}

// ownerOf returns the name of the model that the object belongs to; "" if it belongs to none.
func ownerOf(o metav1.Object) string {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == v1alpha1.KindModel && strings.HasPrefix(owner.APIVersion, v1alpha1.Group+"/") {
		return owner.Name
	}
	return ""
}

// keepOther notes an object that belongs to no model. Such an object is never changed.
func (w *World) keepOther(resource schema.GroupVersionResource, o metav1.Object, deleted bool) {
	switch key := keyOf(resource, o); {
	case !deleted && ownerOf(o) == "":
		w.others[key] = o.GetUID()
	case !deleted || w.others[key] == o.GetUID():
		delete(w.others, key)
	}
}

// isOther reports whether an object of no model has the name of this one.
func (w *World) isOther(resource schema.GroupVersionResource, o metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, is := w.others[keyOf(resource, o)]
	return is
}

// put notes an object of the model; "" if it belongs to none. It may have belonged to another.
func put[T metav1.Object](w *World, resource schema.GroupVersionResource, o T, name string, deleted bool, table func(*objects) map[string]T) {
	id, key := keyOf(resource, o), types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
	if was, is := w.listed[id]; is && (deleted || was != key) {
		x := w.owned[was]
		if known, is := table(x)[o.GetName()]; is && deleted && known.GetUID() != o.GetUID() {
			return // another object has the name now
		}
		delete(table(x), o.GetName())
		delete(w.listed, id)
		if len(x.pods)+len(x.deployments)+len(x.sets)+len(x.services) == 0 {
			delete(w.owned, was)
		}
	}
	if deleted || name == "" {
		return
	}
	x := w.owned[key]
	if x == nil {
		x = newOwned()
		w.owned[key] = x
	}
	table(x)[o.GetName()], w.listed[id] = o, key
}

func (w *World) keepModel(o *unstructured.Unstructured, deleted bool) error {
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	if deleted {
		delete(w.models, key)
		return nil
	}
	m, err := modelsource.Decode(o.Object)
	if err != nil {
		return fmt.Errorf("model %s: %w", key, err)
	}
	w.models[key] = m
	return nil
}

// spec returns what the model asks for, with its source. The error lists all that is wrong.
func (w *World) spec(o *v1alpha1.Model) (*model.Spec, error) {
	r := modelsource.Reader{
		Feed: w.feed, SchedulerNames: w.options.SchedulerNames, Profiles: w.options.Profiles, Directory: w.options.ModelsDirectory,
		NoDirectory: "no directory of models is mounted in berth-controller (--models-directory)",
	}
	s, err := r.Spec(o)
	if err != nil {
		return nil, err
	}
	if err := workload.CheckName(o, s); err != nil {
		return nil, err
	}
	return s, workload.CheckTemplate(o)
}

// decide asks the engine.
func (w *World) decide(wants []modelset.Want) ([]modelset.Answer, error) {
	c := w.cluster()
	return c.Decide(wants)
}

// cluster returns the cluster on which models are decided.
func (w *World) cluster() modelset.Cluster {
	return modelset.Cluster{Engine: w.options.Engine, State: w.state, Fleet: &w.fleet, Now: w.options.Clock().UnixNano(), WholeDevices: !w.devicesEnforced()}
}

// devicesEnforced reports whether a container gets the devices that were chosen for it. Only the
// container runtime of NVIDIA can be told which.
func (w *World) devicesEnforced() bool {
	return w.options.Workload.DevicesEnforced && !slices.ContainsFunc(w.state.View().Groups(), func(g *cluster.Group) bool {
		return !strings.HasPrefix(g.Key.Resource, "nvidia.com/")
	})
}

// names returns the names of the models, sorted.
func (w *World) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(w.models), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// Groups returns the number of node groups and of nodes, for logs.
func (w *World) Groups() (groups, nodes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.state.View().Groups()), len(w.state.Nodes())
}

// objectsOf returns a copy of the tables of the objects of a model.
func (w *World) objectsOf(key types.NamespacedName) *objects {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.owned[key]
	if x == nil {
		return newOwned()
	}
	return &objects{maps.Clone(x.pods), maps.Clone(x.deployments), maps.Clone(x.sets), maps.Clone(x.services)}
}
