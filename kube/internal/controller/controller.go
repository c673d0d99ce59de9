// Package controller runs models on Kubernetes: it chooses the node group and the forms of their
// replicas, creates Deployments and LeaderWorkerSets for them, and reports in their status.
// docs/designs/0008-models-on-kubernetes.md describes the division of work with berth-scheduler,
// which places the pods.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/berth-project/berth/kube/internal/workload"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
)

// Options of a Controller.
type Options struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Mapper  meta.ResettableRESTMapper
	World   *World
	Others  []*World // take in the same objects, such as that of the webhook
	// NodeClass is the node class of the NodeClaims that are created for models with an instance type;
	// the zero value: none are created.
	NodeClass NodeClass
	Held      func() bool // whether this process may write
	Events    events.EventRecorder
	Pause     time.Duration // the least time between two turns that decide; 0 means 200 ms
	Log       *slog.Logger
}

// Controller makes the objects of models. Use New.
type Controller struct {
	options Options
	watch   *watch.Watch
	applier applier
	synced  atomic.Bool
	turned  atomic.Int64 // when the last turn ended, in nanoseconds since 1970
	led     bool         // the last turn was one of this process
	retry   time.Duration
	written map[types.NamespacedName]time.Time // by model: when its status was written last
	wake    time.Time                          // when a turn is needed though nothing has changed; zero: never
}

// New returns a Controller and starts its informers. Run must be called.
func New(o Options) (*Controller, error) {
	if o.Pause == 0 {
		o.Pause = 200 * time.Millisecond
	}
	w, err := watch.Start(watch.Options{
		Client: o.Client, Dynamic: o.Dynamic, Mapper: o.Mapper, Transform: strip, Versions: versions(),
		Required: []schema.GroupVersionResource{
			corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("namespaces"), services,
			schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), deployments,
		},
		Optional: []schema.GroupKind{modelsource.Kind, workload.LWS.GroupKind(), nodeClaimKind, queueKind},
	})
	if err != nil {
		return nil, err
	}
	return &Controller{options: o, watch: w, written: map[types.NamespacedName]time.Time{}, applier: applier{client: o.Client, dynamic: o.Dynamic, isOther: o.World.isOther, done: map[string]applied{}, costed: map[types.NamespacedName]time.Time{}}}, nil
}

var queueKind = schema.GroupKind{Group: modelsource.Kind.Group, Kind: "Queue"}

// strip returns the object without what is not read.
func strip(o any) any {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		if kind := o.GroupVersionKind().GroupKind(); kind == modelsource.Kind || kind == nodeClaimKind {
			out := o.DeepCopy()
			out.SetManagedFields(nil)
			return out
		} else if pin, has := o.GetAnnotations()[annotationApplied]; has && kind == workload.LWS.GroupKind() {
			out := feed.Strip(o).(*unstructured.Unstructured)
			annotate(out, pin)
			return out
		}
	case *appsv1.Deployment:
		if ownerOf(o) == "" {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
		}
		out := *o
		out.ManagedFields, out.Spec.Template = nil, corev1.PodTemplateSpec{}
		return &out
	case *corev1.Service:
		out := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation}}
		if ownerOf(o) != "" {
			out.OwnerReferences, out.Labels = o.OwnerReferences, o.Labels
		}
		return &out
	}
	return feed.Strip(o)
}

// Synced reports whether all objects that existed at the start are known.
func (c *Controller) Synced() bool { return c.synced.Load() }

// Turned returns when the last turn of the loop ended.
func (c *Controller) Turned() time.Time { return time.Unix(0, c.turned.Load()) }

// Run runs the controller until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	defer c.watch.Stop()
	dirty, last, pause := true, time.Time{}, c.options.Pause
	for {
		if c.receive() || c.due() {
			dirty = true
		}
		c.turned.Store(time.Now().UnixNano())
		if !c.synced.Load() && c.watch.Synced() {
			c.receive()
			c.synced.Store(true)
		}
		wait := time.Minute / 2
		c.led = c.led && c.options.Held()
		if dirty && c.synced.Load() && c.options.Held() {
			if wait = pause - time.Since(last); wait <= 0 {
				begin := time.Now()
				again := c.turn(ctx)
				dirty, last, wait = again, time.Now(), time.Minute/2
				// A turn looks at all models. With many of them it rests longer, so that most of the time is
				// left to others.
				pause = max(c.options.Pause, min(2*time.Since(begin), 5*time.Second))
				if c.retry = min(max(2*c.retry, time.Second), time.Minute); again {
					wait = c.retry // unless an object changes before
				} else {
					c.retry = 0
				}
			}
		} else if !c.synced.Load() || dirty {
			wait = time.Second / 4 // another process leads, or not all objects are known
		}
		if !c.wake.IsZero() {
			wait = min(wait, time.Until(c.wake))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.watch.Arrived():
		case <-time.After(max(wait, time.Millisecond)):
		}
	}
}

// receive takes in what the watch has delivered. It reports true if something was.
func (c *Controller) receive() bool {
	served := c.watch.Delivered(nodeClaimKind) // before Take, which then has all NodeClaims
	events := c.watch.Take()
	if len(events) > 0 {
		c.take(events)
	}
	return c.options.World.setServed(served) || len(events) > 0
}

// due reports once that the time of wake has come.
func (c *Controller) due() bool {
	if c.wake.IsZero() || time.Now().Before(c.wake) {
		return false
	}
	c.wake = time.Time{}
	return true
}

// take takes in events.
func (c *Controller) take(events []watch.Event) {
	for i, w := range append([]*World{c.options.World}, c.options.Others...) {
		for _, err := range w.Take(events) {
			if i == 0 {
				c.options.Log.Warn("An object could not be taken in.", "error", err)
			}
		}
	}
}

// turn makes the objects of all models as they should be. It reports true if something failed and
// must be tried again.
func (c *Controller) turn(ctx context.Context) (again bool) {
	if !c.led {
		c.led = true
		c.options.World.forgetTroubles()
	}
	plans, err := c.options.World.plans()
	if err != nil {
		c.options.Log.Error("The engine failed.", "error", err)
		return true
	}
	c.wake, again = wake(plans), c.finishModels(ctx)
	c.forget(plans)
	for _, p := range plans {
		if ctx.Err() != nil || !c.options.Held() {
			return true
		}
		if err := c.carryOut(ctx, p); err != nil {
			again = true
			if !apierrors.IsConflict(err) {
				c.options.Log.Warn("The objects of a model could not be written.", "model", p.key.String(), "error", err)
			}
		}
	}
	return again
}

// forget removes what is remembered about models that are gone.
func (c *Controller) forget(plans []*plan) {
	known := map[types.NamespacedName]bool{}
	for _, p := range plans {
		known[p.key] = true
	}
	gone := func(key types.NamespacedName, _ time.Time) bool { return !known[key] }
	maps.DeleteFunc(c.written, gone)
	maps.DeleteFunc(c.applier.costed, gone)
	maps.DeleteFunc(c.applier.done, func(_ string, x applied) bool { return !known[x.model] })
}

// carryOut makes the objects of one model. The node group is written before the objects that
// depend on it, so that it is not chosen again.
func (c *Controller) carryOut(ctx context.Context, p *plan) error {
	if p.group != nil && p.spec.Group == nil {
		status := p.model.Status
		p.groupStatus(&status)
		_, err := writeStatus(ctx, c.options.Dynamic, p.model, &status)
		return err // the next turn continues, when the watch delivers it
	}
	if changed, err := c.holdClaims(ctx, p); changed || err != nil {
		return err
	}
	claims := c.applyClaims(ctx, p)
	var failed error
	if p.invalid == nil {
		failed = c.applier.apply(ctx, p, c.options.World.objectsOf(p.key))
		c.wake = earlier(c.wake, p.later)
	}
	status := p.status(failed)
	if next := c.written[p.key].Add(messagePeriod); onlyMessages(&p.model.Status, &status) && time.Now().Before(next) {
		c.wake = earlier(c.wake, next)
		return errors.Join(claims, failed, p.unserved)
	}
	wrote, err := writeStatus(ctx, c.options.Dynamic, p.model, &status)
	if err == nil {
		c.report(p, &status)
	}
	if wrote {
		c.written[p.key] = time.Now()
	}
	return errors.Join(claims, failed, p.unserved, err)
}

// earlier returns the earlier of the times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// report sends an event for each condition that has become true, and for each new problem. What
// ends by itself is no event.
func (c *Controller) report(p *plan, status *v1alpha1.ModelStatus) {
	if c.options.Events == nil {
		return
	}
	about := &corev1.ObjectReference{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindModel, Namespace: p.model.Namespace, Name: p.model.Name, UID: p.model.UID}
	for _, x := range status.Conditions {
		was := meta.FindStatusCondition(p.model.Status.Conditions, x.Type)
		if was != nil && was.Status == x.Status && was.Reason == x.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		switch {
		case x.Status == metav1.ConditionFalse && isProblem(x.Reason):
			kind = corev1.EventTypeWarning
		case x.Status == metav1.ConditionFalse || was == nil && x.Type == v1alpha1.ConditionAdmitted:
			continue
		}
		c.options.Events.Eventf(about, nil, kind, x.Reason, x.Type, "%s", eventText(x.Message))
	}
}

// isProblem reports whether a condition that is false for this reason needs attention. The others
// end by themselves.
func isProblem(reason string) bool {
	switch reason {
	case reasonWaiting, reasonStarting, reasonNotPlaced, reasonScaledDown, reasonWaitingForNodes:
		return false
	}
	return true
}

// eventText returns the message of an event, which the API server limits to 1,024 bytes.
func eventText(message string) string {
	const most = 1000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}
