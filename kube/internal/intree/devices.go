package intree

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/recent"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
)

// devices is what DynamicResources reads and writes in memory: the objects of the Store, and the
// allocations that are not written yet. A claim whose pods are all leaving counts as not
// allocated, so that its devices can be reserved for another pod; see waitForDevices.
type devices struct {
	fwk.SharedDRAManager
	tracker *claimTracker
}

func newDevices(base fwk.SharedDRAManager, s *Store) *devices {
	return &devices{base, &claimTracker{ResourceClaimTracker: base.ResourceClaims(), store: s, leaving: map[types.UID]bool{}, inFlight: map[types.UID]*resourcev1.ResourceClaim{}}}
}

// ResourceClaims returns the claims.
func (d *devices) ResourceClaims() fwk.ResourceClaimTracker { return d.tracker }

// claimTracker is the claims and their allocations.
type claimTracker struct {
	fwk.ResourceClaimTracker
	store   *Store
	leaving map[types.UID]bool // the pods that release their room
	gone    uint64             // the version of the pods that are gone which PreFilters have seen
	// signalled are the claims for which Reserve has chosen devices since it was emptied.
	signalled []*resourcev1.ResourceClaim

	mu       sync.Mutex
	inFlight map[types.UID]*resourcev1.ResourceClaim // the claims for which devices are chosen, and not written
}

// SignalClaimPendingAllocation notes that Reserve has chosen devices for the claim.
func (t *claimTracker) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	if err := t.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim); err != nil {
		return err
	}
	t.mu.Lock()
	t.inFlight[uid] = claim
	t.mu.Unlock()
	noted := *claim
	noted.UID = uid
	t.signalled = append(t.signalled, &noted)
	return nil
}

// MaybeRemoveClaimPendingAllocation notes that the allocation was written or is undone.
func (t *claimTracker) MaybeRemoveClaimPendingAllocation(uid types.UID, force bool) bool {
	removed := t.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(uid, force)
	if removed {
		t.mu.Lock()
		delete(t.inFlight, uid)
		t.mu.Unlock()
	}
	return removed
}

// takeSignalled returns the claims for which Reserve has chosen devices since the last call.
func (t *claimTracker) takeSignalled() []*resourcev1.ResourceClaim {
	out := t.signalled
	t.signalled = nil
	return out
}

// undo releases the devices of the hold in memory.
func (t *claimTracker) undo(h *hold) {
	for _, c := range h.pending {
		if t.MaybeRemoveClaimPendingAllocation(c.UID, false) {
			t.AssumedClaimRestore(c.Namespace, c.Name)
		}
	}
}

// ListAllAllocatedDevices returns the devices that are allocated.
func (t *claimTracker) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	out, err := t.ResourceClaimTracker.ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	released, err := t.released()
	return out.Difference(released), err
}

// GatherAllocatedState returns what is allocated of devices.
func (t *claimTracker) GatherAllocatedState() (*structured.AllocatedState, error) {
	out, err := t.ResourceClaimTracker.GatherAllocatedState()
	if err != nil {
		return nil, err
	}
	released, err := t.released()
	out.AllocatedDevices = out.AllocatedDevices.Difference(released)
	return out, err
}

// released returns the devices that are allocated only to claims whose pods are leaving.
func (t *claimTracker) released() (sets.Set[structured.DeviceID], error) {
	if len(t.leaving) == 0 && t.store.gone.uids.Len() == 0 {
		return nil, nil
	}
	claims, err := t.List()
	if err != nil {
		return nil, err
	}
	out, held := sets.New[structured.DeviceID](), sets.New[structured.DeviceID]()
	t.store.gone.keep(claims)
	for _, c := range claims {
		if t.isReleased(c) {
			eachDevice(c, func(id structured.DeviceID) { out.Insert(id) })
		} else {
			eachDevice(c, func(id structured.DeviceID) { held.Insert(id) })
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.inFlight {
		eachDevice(c, func(id structured.DeviceID) { held.Insert(id) })
	}
	return out.Difference(held), nil
}

// isReleased reports whether the claim is allocated and all pods that it is reserved for are
// leaving or gone. Kubernetes deallocates it when they are gone.
func (t *claimTracker) isReleased(c *resourcev1.ResourceClaim) bool {
	if c.Status.Allocation == nil || len(c.Status.ReservedFor) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return !t.leaving[r.UID] && !t.store.gone.uids.Has(r.UID)
	})
}

// eachDevice calls the function for each device that is allocated to the claim alone.
func eachDevice(c *resourcev1.ResourceClaim, do func(structured.DeviceID)) {
	if c.Status.Allocation == nil {
		return
	}
	for i := range c.Status.Allocation.Devices.Results {
		if r := &c.Status.Allocation.Devices.Results[i]; r.ShareID == nil && (r.AdminAccess == nil || !*r.AdminAccess) {
			do(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
}

// occupied returns which of the claims is to get a device that another claim still has; "" if
// none is. It is safe for concurrent use.
func (t *claimTracker) occupied(pending []*resourcev1.ResourceClaim) string {
	wanted := sets.New[structured.DeviceID]()
	own := map[types.UID]bool{}
	for _, c := range pending {
		own[c.UID] = true
		eachDevice(c, func(id structured.DeviceID) { wanted.Insert(id) })
	}
	claims, err := t.List()
	if err != nil {
		return err.Error()
	}
	found := ""
	for _, c := range claims {
		if own[c.UID] {
			continue
		}
		eachDevice(c, func(id structured.DeviceID) {
			if text := id.String() + " is still allocated to " + c.Namespace + "/" + c.Name; wanted.Has(id) && (found == "" || text < found) {
				found = text
			}
		})
	}
	return found
}

// maxGone is how many pods are remembered that were deleted. Their claims are deallocated soon
// after.
const maxGone = 4096

// gonePods are the pods with claims that were deleted or have ended lately.
type gonePods struct {
	uids    *recent.Set[types.UID]
	version uint64      // grows when a pod is added, or removed because it exists again
	listed  []types.UID // the answer of list; nil if it must be made anew
}

func newGonePods() gonePods { return gonePods{uids: recent.New[types.UID](maxGone)} }

// note adds a pod that is deleted or has ended, if claims can be allocated for it.
func (g *gonePods) note(o *v1.Pod) {
	if mayHaveDevices(o) {
		g.add(o.UID)
	}
}

func (g *gonePods) add(uid types.UID) {
	if g.uids.Add(uid) {
		g.version++
		g.listed = nil
	}
}

// list returns the pods in the order of their UIDs. The caller must not change the list.
func (g *gonePods) list() []types.UID {
	if len(g.listed) != g.uids.Len() {
		g.listed = slices.Sorted(g.uids.All())
	}
	return g.listed
}

// keep forgets all pods except those that a claim is reserved for.
func (g *gonePods) keep(claims []*resourcev1.ResourceClaim) {
	if g.uids.Len() == 0 {
		return
	}
	reserved := map[types.UID]bool{}
	for _, c := range claims {
		for i := range c.Status.ReservedFor {
			reserved[c.Status.ReservedFor[i].UID] = true
		}
	}
	g.uids.Keep(func(uid types.UID) bool { return reserved[uid] })
	g.listed = nil
}

// remove forgets a pod that exists again. Pods of simulations do.
func (g *gonePods) remove(uid types.UID) {
	if g.uids.Remove(uid) {
		g.version++
		g.listed = nil
	}
}

// Holdings returns the devices of State that are held by what is allocated.
type Holdings func([]resourcev1.DeviceRequestAllocationResult) []cluster.Holding

// UseHoldings sets how allocated devices are found in State. Without it, the State chooses
// devices of its own, so that only their number is right until the allocation is known.
func (s *Store) UseHoldings(h Holdings) { s.holdings = h }

// chosenDevices returns the devices that were reserved for the task, together with those that its
// claims have already.
func (p *plugin) chosenDevices(t *cluster.Task, n *cluster.Node) []cluster.Holding {
	h, _ := p.claims.get(KeyOf(t))
	if h == nil || h.node != n.Name || p.store.holdings == nil {
		return nil
	}
	var results []resourcev1.DeviceRequestAllocationResult
	for _, c := range h.pending {
		results = append(results, c.Status.Allocation.Devices.Results...)
	}
	for i := range h.pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(h.pod, &h.pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if c, err := p.claims.tracker.Get(h.pod.Namespace, *name); err == nil && c.Status.Allocation != nil {
			results = append(results, c.Status.Allocation.Devices.Results...)
		}
	}
	return p.store.holdings(results)
}

// leave notes whether the pod of a task is leaving, so that the devices of its claims can be
// reserved for another pod.
func (c *claims) leave(t *cluster.Task, o *v1.Pod) {
	leaving, is := c.tracker.leaving, isLeaving(t)
	if !mayHaveDevices(o) || leaving[o.UID] == is {
		return
	}
	if c.epoch++; is {
		leaving[o.UID] = true
	} else {
		delete(leaving, o.UID)
	}
}

// isLeaving reports whether the room of the task is being released.
func isLeaving(t *cluster.Task) bool { return t.Status == cluster.Releasing && !t.Overdue() }

// mayHaveDevices reports whether claims can be allocated for the pod.
func mayHaveDevices(o *v1.Pod) bool {
	return hasResourceClaims(o) || o.Status.ExtendedResourceClaimStatus != nil
}

// readLeaving finds out which pods are leaving at the beginning of a session.
func (p *plugin) readLeaving(v cluster.View) {
	now := map[types.UID]bool{}
	for _, t := range v.Releasing() {
		if known := p.store.pods[KeyOf(t)]; known != nil && isLeaving(t) && mayHaveDevices(known.info.Pod) {
			now[known.info.Pod.UID] = true
		}
	}
	tracker := p.claims.tracker
	if !maps.Equal(now, tracker.leaving) || tracker.gone != p.store.gone.version {
		p.claims.epoch++
		tracker.leaving, tracker.gone = now, p.store.gone.version
	}
}

// areRequested reports whether a resource that the pod requests may be offered by devices of
// ResourceSlices, because a DeviceClass has its name.
func (d *devices) areRequested(o *v1.Pod) bool { return d.offer(extendedResources(o)) }

// offer reports whether a DeviceClass has one of the names.
func (d *devices) offer(names []v1.ResourceName) bool {
	return slices.ContainsFunc(names, func(name v1.ResourceName) bool { return d.DeviceClassResolver().GetDeviceClass(name) != nil })
}

// checksOffer reports whether rejection may return one. State has the devices of slices as
// devices of their nodes, whether pods can request them without a claim or not.
func (p *plugin) checksOffer(of *pod) bool { return len(of.extended) > 0 && p.store.slices > 0 }

// rejection returns a rejection if the pod requests a resource of its containers that neither a
// device plugin nor a DeviceClass offers on the node.
func (d *devices) rejection(of *pod, n *mirrorNode) *engine.Rejection {
	for _, name := range of.extended {
		if q, offered := n.info.Node().Status.Allocatable[name]; (!offered || q.IsZero()) && !d.offer([]v1.ResourceName{name}) {
			return rejection(ResourceNotOffered, string(name))
		}
	}
	return nil
}

// extendedResources returns the names of resources of containers that devices may offer.
func extendedResources(o *v1.Pod) []v1.ResourceName {
	var out []v1.ResourceName
	for _, list := range [...][]v1.Container{o.Spec.InitContainers, o.Spec.Containers} {
		for i := range list {
			for name, q := range list[i].Resources.Requests {
				if strings.Contains(string(name), "/") && !q.IsZero() && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
