package intree

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// Assumed is what the filters take for true beside the objects of the Store, because it was
// decided and the API server has not confirmed it.
type Assumed struct {
	// Objects are volumes and claims as they will be. The filters read them instead of those in
	// the Store.
	Objects []runtime.Object
	// Pending are ResourceClaims that are being allocated, with their allocations.
	Pending []*resourcev1.ResourceClaim
	// Holds are the reservations for tasks, by task.
	Holds []Hold
	// Gone are pods with claims that were deleted or have ended, and whose claims are not
	// deallocated yet, in order.
	Gone []types.UID
}

// Hold is what is reserved for the claims of a task on a node.
type Hold struct {
	Task   TaskKey     `json:"task"`
	Node   string      `json:"node"`
	Phase  string      `json:"phase"`            // reserved, preparing, prepared, failed or releasing
	Claims []types.UID `json:"claims,omitempty"` // the claims in Pending that are being allocated for the task
}

var phaseNames = [...]string{reserved: "reserved", preparing: "preparing", prepared: "prepared", failed: "failed", releasing: "releasing"}

// Assumed returns what the filters take for true when the next session is opened on the State
// of the view. It ends the reservations of tasks that are not placed any more, as the session
// does.
func (s *Store) Assumed(v cluster.View) Assumed {
	if s.primary == nil {
		return Assumed{}
	}
	s.primary.claims.settle(v)
	out := s.primary.assumed.list(s.primary.claims)
	out.Holds, out.Gone = s.primary.claims.list(), s.gone.list()
	return out
}

// list returns the reservations, by task.
func (c *claims) list() []Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Hold
	for _, key := range slices.SortedFunc(maps.Keys(c.held), compareKeys) {
		h := c.held[key]
		kept := Hold{Task: key, Node: h.node, Phase: phaseNames[h.phase]}
		for _, claim := range h.pending {
			kept.Claims = append(kept.Claims, claim.UID)
		}
		out = append(out, kept)
	}
	return out
}

// Assume makes the filters of plugins that are built from now on take a for true. It must be
// called after the Store was filled.
func (s *Store) Assume(a Assumed) error {
	for _, o := range a.Objects {
		if err := s.Put(o); err != nil {
			return err
		}
	}
	for _, uid := range a.Gone {
		s.gone.add(uid)
	}
	for _, h := range a.Holds {
		if !slices.Contains(phaseNames[:], h.Phase) {
			return fmt.Errorf("the claims of task %s/%s have the phase %q; want one of %s", h.Task.Job, h.Task.Task, h.Phase, strings.Join(phaseNames[:], ", "))
		}
	}
	s.assumed = a
	return nil
}

// restore holds what was held for the claims of tasks. The reservation of a volume is not undone
// in the session, since the volume is among the objects: it is as if it were written.
func (c *claims) restore(a *Assumed) {
	for _, was := range a.Holds {
		known := c.tracker.store.pods[was.Task]
		if known == nil {
			continue
		}
		h := &hold{state: framework.NewCycleState(), pod: known.info.Pod, node: was.Node, phase: holdPhase(slices.Index(phaseNames[:], was.Phase))}
		for _, claim := range a.Pending {
			if slices.Contains(was.Claims, claim.UID) {
				h.pending = append(h.pending, claim)
			}
		}
		if i := slices.IndexFunc(c.kinds, func(k claimKind) bool { return k.name == names.DynamicResources }); i >= 0 && len(h.pending) > 0 {
			h.kinds = []*claimKind{&c.kinds[i]}
		}
		c.held[was.Task] = h
	}
}

// assumptions notes what VolumeBinding and DynamicResources assume. It is used by the goroutine
// of the session, and revert also by those that allocate.
type assumptions struct {
	store  *Store
	claims fwk.ResourceClaimTracker
	// touched are the names of ResourceClaims that may differ from those in the Store.
	touched map[types.NamespacedName]bool

	mu      sync.Mutex
	volumes map[objectID]assumedVolume // volumes, and claims for which one is provisioned
}

// assumedVolume is a volume or a claim that is assumed for the volumes of a pod.
type assumedVolume struct {
	object runtime.Object
	owner  *volumebinding.PodVolumes
}

// watchAssumptions notes what the plugins assume from now on.
func watchAssumptions(list []*wrapped, h *handle, store *Store) *assumptions {
	a := &assumptions{
		store: store, claims: h.dra.ResourceClaims(), touched: map[types.NamespacedName]bool{},
		volumes: map[objectID]assumedVolume{},
	}
	for _, w := range list {
		if p, is := w.filter.(*volumebinding.VolumeBinding); is {
			p.Binder = &watchedBinder{p.Binder, a}
		}
	}
	for _, c := range store.assumed.Pending {
		// The tracker of upstream returns no error.
		_ = a.claims.SignalClaimPendingAllocation(c.UID, c)
	}
	h.dra.tracker.takeSignalled() // they are not those of the next reservation
	return a
}

// list returns what is assumed, in a fixed order.
func (a *assumptions) list(c *claims) Assumed {
	return Assumed{Objects: append(a.assumedVolumes(), a.assumedClaims()...), Pending: a.pending(c)}
}

// assumedVolumes returns the volumes and claims that are assumed, and forgets those of which the
// Store has another version.
func (a *assumptions) assumedVolumes() []runtime.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := map[objectID]runtime.Object{}
	for id, v := range a.volumes { // the order has no effect on the result
		known, found, err := a.store.informers[id.kind].indexer.Get(v.object)
		if err != nil || !found || !isSameVersion(known, v.object) {
			delete(a.volumes, id)
		} else {
			list[id] = v.object
		}
	}
	return (&Contents{others: list}).Others()
}

// isSameVersion reports whether both are the same version of an object. VolumeBinding reads an
// assumed object only as long as the informer has the version that it was made of.
func isSameVersion(a, b any) bool {
	x, errX := meta.Accessor(a)
	y, errY := meta.Accessor(b)
	return errX == nil && errY == nil && x.GetResourceVersion() == y.GetResourceVersion()
}

// pending returns the ResourceClaims that are being allocated.
func (a *assumptions) pending(c *claims) []*resourcev1.ResourceClaim {
	c.mu.Lock()
	for _, h := range c.held { // the order has no effect on the result
		for i := range h.pod.Spec.ResourceClaims {
			if name, _, err := resourceclaim.Name(h.pod, &h.pod.Spec.ResourceClaims[i]); err == nil && name != nil {
				a.touched[types.NamespacedName{Namespace: h.pod.Namespace, Name: *name}] = true
			}
		}
	}
	c.mu.Unlock()
	var out []*resourcev1.ResourceClaim
	for _, name := range a.touchedNames() {
		claim, err := a.claims.Get(name.Namespace, name.Name)
		if err != nil {
			continue
		}
		if allocation := a.claims.GetPendingAllocation(claim.UID); allocation != nil {
			claim = claim.DeepCopy()
			claim.Status.Allocation = allocation
			out = append(out, claim)
		}
	}
	return out
}

// assumedClaims returns the ResourceClaims that were allocated and are not so in the Store, and
// forgets the others.
func (a *assumptions) assumedClaims() []runtime.Object {
	var out []runtime.Object
	for _, name := range a.touchedNames() {
		claim, err := a.claims.Get(name.Namespace, name.Name)
		if err != nil {
			delete(a.touched, name)
			continue
		}
		known, found, err := a.store.informers[reflect.TypeFor[*resourcev1.ResourceClaim]()].indexer.Get(claim)
		switch same := found && err == nil && known == any(claim); {
		case !same:
			out = append(out, claim)
		case a.claims.GetPendingAllocation(claim.UID) == nil:
			delete(a.touched, name)
		}
	}
	return out
}

func (a *assumptions) touchedNames() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(a.touched), func(x, y types.NamespacedName) int {
		return compareKeys(TaskKey{x.Namespace, x.Name, ""}, TaskKey{y.Namespace, y.Name, ""})
	})
}

// watchedBinder notes which volumes and claims VolumeBinding assumes. Upstream's binder has no
// method that returns them.
type watchedBinder struct {
	volumebinding.SchedulerVolumeBinder
	assumptions *assumptions
}

// AssumePodVolumes calls the binder, and notes what it assumed.
func (b *watchedBinder) AssumePodVolumes(logger klog.Logger, pod *v1.Pod, node string, volumes *volumebinding.PodVolumes) (bool, error) {
	all, err := b.SchedulerVolumeBinder.AssumePodVolumes(logger, pod, node, volumes)
	if err != nil || all {
		return all, err
	}
	a := b.assumptions
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, binding := range volumes.StaticBindings {
		a.add(volumeOf(binding), volumes)
	}
	for _, p := range volumes.DynamicProvisions {
		a.add(p.PVC, volumes)
	}
	return all, nil
}

// add notes that the object is assumed for the volumes of a pod.
func (a *assumptions) add(o runtime.Object, owner *volumebinding.PodVolumes) {
	a.volumes[objectID{reflect.TypeOf(o), objectKey(o)}] = assumedVolume{o, owner}
}

// RevertAssumedPodVolumes calls the binder, and forgets what it assumed.
func (b *watchedBinder) RevertAssumedPodVolumes(volumes *volumebinding.PodVolumes) {
	b.SchedulerVolumeBinder.RevertAssumedPodVolumes(volumes)
	a := b.assumptions
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.volumes, func(_ objectID, v assumedVolume) bool { return v.owner == volumes })
}

// volumeOf returns the volume of the binding, which upstream does not export.
func volumeOf(b *volumebinding.BindingInfo) *v1.PersistentVolume {
	return (*v1.PersistentVolume)(reflect.ValueOf(b).Elem().FieldByName("pv").UnsafePointer())
}
