// Package watch runs the informers of a scheduler, and collects what they deliver until it is
// taken. It interprets no object.
package watch

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Event is the newest version of one object, or the last one if the object was deleted.
type Event struct {
	Object  any
	Deleted bool
}

// Options of a Watch.
type Options struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Mapper finds out which of the optional kinds the API server has.
	Mapper meta.ResettableRESTMapper
	// Required are the resources that every API server has and that are watched, with their types.
	// Nil means all that a scheduler reads.
	Required []schema.GroupVersionResource
	// Optional are kinds that are watched as soon as the API server has them. Their objects
	// are delivered as *unstructured.Unstructured.
	Optional []schema.GroupKind
	// Versions are the versions in which optional kinds are read; others are read in the version
	// that the API server prefers.
	Versions map[schema.GroupKind]string
	// Transform is applied to each object before it is kept; nil: to none.
	Transform func(object any) any
	// Discovery is the time between two searches for optional kinds; 0 means 30 s.
	Discovery time.Duration
}

// transform applies Transform to what an informer has received, which is an object or a note that
// an object is gone.
func (o *Options) transform(object any) (any, error) {
	if o.Transform == nil {
		return object, nil
	}
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		gone.Obj = o.Transform(gone.Obj)
		return gone, nil
	}
	return o.Transform(object), nil
}

// required returns the resources that are watched with their types.
func (o *Options) required() []schema.GroupVersionResource {
	if o.Required != nil {
		return o.Required
	}
	return required
}

// required are the kinds that every API server has and that a scheduler reads.
var required = []schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithResource("nodes"),
	corev1.SchemeGroupVersion.WithResource("pods"),
	corev1.SchemeGroupVersion.WithResource("namespaces"),
	corev1.SchemeGroupVersion.WithResource("persistentvolumes"),
	corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	storagev1.SchemeGroupVersion.WithResource("storageclasses"),
	storagev1.SchemeGroupVersion.WithResource("csinodes"),
	storagev1.SchemeGroupVersion.WithResource("csidrivers"),
	storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"),
	storagev1.SchemeGroupVersion.WithResource("volumeattachments"),
	schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
	policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	batchv1.SchemeGroupVersion.WithResource("jobs"),
}

// newer are the kinds that not every API server has in the version that is read. They are
// watched as soon as it has.
var newer = map[schema.GroupKind]schema.GroupVersionResource{
	{Group: resourcev1.GroupName, Kind: "ResourceClaim"}: resourcev1.SchemeGroupVersion.WithResource("resourceclaims"),
	{Group: resourcev1.GroupName, Kind: "ResourceSlice"}: resourcev1.SchemeGroupVersion.WithResource("resourceslices"),
	{Group: resourcev1.GroupName, Kind: "DeviceClass"}:   resourcev1.SchemeGroupVersion.WithResource("deviceclasses"),
}

// Watch collects events. Its methods are safe for concurrent use.
type Watch struct {
	options  Options
	typed    informers.SharedInformerFactory
	untyped  dynamicinformer.DynamicSharedInformerFactory
	signal   chan struct{}
	stop     context.CancelFunc
	stopped  <-chan struct{}
	finding  sync.WaitGroup
	mu       sync.Mutex
	events   []Event
	synced   []func() bool
	found    map[schema.GroupKind]func() bool // optional kinds, and whether their objects have been delivered
	searched bool                             // the first search for optional kinds has ended
}

// Start starts the informers. They run until Stop is called.
func Start(o Options) (*Watch, error) {
	if o.Discovery == 0 {
		o.Discovery = 30 * time.Second
	}
	w := &Watch{
		options: o, signal: make(chan struct{}, 1), found: map[schema.GroupKind]func() bool{},
		typed:   informers.NewSharedInformerFactoryWithOptions(o.Client, 0, informers.WithTransform(o.transform)),
		untyped: dynamicinformer.NewDynamicSharedInformerFactory(o.Dynamic, 0),
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.stopped = stop, ctx.Done()
	for _, r := range o.required() {
		generic, err := w.typed.ForResource(r)
		if err != nil {
			stop()
			return nil, err
		}
		if _, err := w.add(generic.Informer()); err != nil {
			stop()
			return nil, err
		}
	}
	w.typed.Start(w.stopped)
	w.finding.Go(w.findOptional)
	return w, nil
}

// add lets the informer deliver to the Watch. It returns a function that reports whether the
// objects that exist have been delivered.
func (w *Watch) add(informer cache.SharedIndexInformer) (synced func() bool, err error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.put(Event{Object: o}) },
		UpdateFunc: w.update,
		DeleteFunc: func(o any) {
			if last, isLast := o.(cache.DeletedFinalStateUnknown); isLast {
				o = last.Obj
			}
			w.put(Event{Object: o, Deleted: true})
		},
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.searched { // a kind that appears later does not stop a scheduler that runs
		w.synced = append(w.synced, registration.HasSynced)
	}
	return registration.HasSynced, nil
}

// update delivers a new version of an object. After a watch was interrupted, it may be another
// object of the same name; the earlier one is then delivered as deleted.
func (w *Watch) update(earlier, now any) {
	a, failed := meta.Accessor(earlier)
	b, failedToo := meta.Accessor(now)
	if failed == nil && failedToo == nil && a.GetUID() != b.GetUID() {
		w.put(Event{Object: earlier, Deleted: true})
	}
	w.put(Event{Object: now})
}

func (w *Watch) put(e Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	w.wake()
}

func (w *Watch) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Arrived returns a channel that has a value after events have arrived.
func (w *Watch) Arrived() <-chan struct{} { return w.signal }

// Take returns the events that have arrived since the last call. Events of one object are in
// order.
func (w *Watch) Take() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// Synced reports whether all objects that existed at the start have been delivered: a Take
// that follows returns the last of them.
func (w *Watch) Synced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.searched {
		return false
	}
	for _, synced := range w.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Delivered reports whether the API server has the optional kind and all its objects that existed
// have been delivered: a Take that follows returns the last of them.
func (w *Watch) Delivered(kind schema.GroupKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	synced := w.found[kind]
	return synced != nil && synced()
}

// findOptional watches optional kinds as soon as the API server has them.
func (w *Watch) findOptional() {
	for {
		complete := w.search()
		w.mu.Lock()
		w.searched = w.searched || complete
		done := len(w.found) == len(w.options.Optional)+len(newer)
		w.mu.Unlock()
		w.wake()
		if done {
			return
		}
		pause := w.options.Discovery
		if !complete {
			pause = min(pause, time.Second)
		}
		select {
		case <-w.stopped:
			return
		case <-time.After(pause):
		}
	}
}

// search looks for each optional kind that was not found yet. It reports false if the API
// server did not answer.
func (w *Watch) search() bool {
	w.options.Mapper.Reset()
	complete := true
	for kind, resource := range newer { // the order has no effect
		complete = w.find(kind, []string{resource.Version}, func(schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			generic, err := w.typed.ForResource(resource)
			if err != nil {
				return nil, err
			}
			return generic.Informer(), nil
		}) && complete
	}
	for _, kind := range w.options.Optional {
		var versions []string
		if v := w.options.Versions[kind]; v != "" {
			versions = []string{v}
		}
		complete = w.find(kind, versions, func(found schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			informer := w.untyped.ForResource(found).Informer()
			return informer, informer.SetTransform(w.options.transform)
		}) && complete
	}
	w.typed.Start(w.stopped)
	w.untyped.Start(w.stopped)
	return complete
}

// find watches the kind if the API server has it in one of the versions; nil means any. It
// reports false if it must be tried again.
func (w *Watch) find(kind schema.GroupKind, versions []string, informer func(schema.GroupVersionResource) (cache.SharedIndexInformer, error)) bool {
	w.mu.Lock()
	found := w.found[kind]
	w.mu.Unlock()
	if found != nil {
		return true
	}
	mapping, err := w.options.Mapper.RESTMapping(kind, versions...)
	switch {
	case meta.IsNoMatchError(err):
		return true
	case err != nil:
		return false
	}
	i, err := informer(mapping.Resource)
	if err != nil {
		return false
	}
	synced, err := w.add(i)
	if err != nil {
		return false
	}
	w.mu.Lock()
	w.found[kind] = synced
	w.mu.Unlock()
	w.finding.Go(func() {
		if cache.WaitForCacheSync(w.stopped, synced) {
			w.wake() // Delivered has changed, also if the kind has no objects
		}
	})
	return true
}

// Stop stops the informers, and returns when they have ended.
func (w *Watch) Stop() {
	w.stop()
	w.finding.Wait()
	w.typed.Shutdown()
	w.untyped.Shutdown()
}
