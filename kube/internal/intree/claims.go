package intree

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// claims reserves what pods claim beside room: volumes that wait for their first consumer
// (VolumeBinding), and devices of ResourceClaims (DynamicResources). A volume or a device is
// reserved in memory when a task is placed, so that no other task of the session gets it, and is
// allocated through the API by the function that Prepare returns, before the pod is bound.
type claims struct {
	kinds   []claimKind
	epoch   uint64 // grows when a reservation is made or released
	tracker *claimTracker
	// toRelease are allocated for tasks that are not placed any more. Only the goroutine of the
	// sessions uses it.
	toRelease []*hold

	mu   sync.Mutex
	held map[TaskKey]*hold
}

// claimKind is one in-tree plugin that reserves.
type claimKind struct {
	plugin interface {
		fwk.PreFilterPlugin
		fwk.FilterPlugin
		fwk.ReservePlugin
		fwk.PreBindPlugin
	}
	name    string
	index   int // of the plugin among the wrapped ones
	matters func(*v1.Pod) bool
	// undo releases in memory what Reserve reserved. Unlike Unreserve of the plugin, it never
	// sends a request.
	undo func(*hold)
}

// hold is what is reserved for a task on a node.
type hold struct {
	state fwk.CycleState
	pod   *v1.Pod
	node  string
	kinds []*claimKind // in the order in which they have reserved
	phase holdPhase    // guarded by claims.mu
	// pending are the ResourceClaims for which devices were chosen, with these devices.
	pending []*resourcev1.ResourceClaim
}

// holdPhase says what may be done with a hold.
type holdPhase uint8

const (
	reserved  holdPhase = iota // it is in memory only, and can be undone
	preparing                  // the function that Prepare returned is running, and nothing else may change the hold
	prepared                   // what is claimed is allocated
	failed                     // it was not allocated or was released, and the reservation is undone
	releasing                  // the task is not placed any more, and what is allocated is being released
)

func newClaims(list []*wrapped, h *handle) *claims {
	c := &claims{held: map[TaskKey]*hold{}, tracker: h.dra.tracker}
	for i, w := range list {
		k := claimKind{name: w.name, index: i}
		switch w.name {
		case names.VolumeBinding:
			k.matters = hasVolumeClaims
			k.undo = func(h *hold) { k.plugin.Unreserve(background, h.state, h.pod, h.node) } // in memory only
		case names.DynamicResources:
			k.matters, k.undo = w.applies, h.dra.tracker.undo
		default:
			continue
		}
		var is bool
		if k.plugin, is = w.filter.(interface {
			fwk.PreFilterPlugin
			fwk.FilterPlugin
			fwk.ReservePlugin
			fwk.PreBindPlugin
		}); is {
			c.kinds = append(c.kinds, k)
		}
	}
	return c
}

func hasVolumeClaims(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// HasClaims reports whether the pod claims something beside room.
func (s *Store) HasClaims(pod *v1.Pod) bool {
	return hasVolumeClaims(pod) || hasResourceClaims(pod) || s.primary != nil && s.primary.devices.areRequested(pod)
}

func hasResourceClaims(pod *v1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 }

// needsClaims reports whether the pod of the task has claims.
func (p *plugin) needsClaims(t *cluster.Task, _ *cluster.Job) bool {
	known := p.store.pods[KeyOf(t)]
	return known != nil && slices.ContainsFunc(p.claims.kinds, func(k claimKind) bool { return k.matters(known.info.Pod) })
}

// reserveClaims chooses and reserves what the task claims on the node.
func (p *plugin) reserveClaims(t *cluster.Task, n *cluster.Node) *engine.Rejection {
	key := KeyOf(t)
	known, node := p.store.pods[key], p.mirror.nodes[n.Name]
	if known == nil {
		return rejection(PodNotKnown, "")
	}
	if node == nil || node.info.Node() == nil {
		return rejection(NodeNotKnown, n.Name)
	}
	switch earlier, phase := p.claims.get(key); {
	case earlier == nil || phase == failed:
	case phase == releasing:
		return rejection(FilterFailed, "the claims of the pod are being released on node "+earlier.node)
	case earlier.node == n.Name:
		return nil // an eviction is undone while the claims are being allocated
	default:
		return rejection(FilterFailed, "the claims of the pod are being allocated for node "+earlier.node)
	}
	h := &hold{state: framework.NewCycleState(), pod: known.info.Pod, node: n.Name}
	for i := range p.claims.kinds {
		k := &p.claims.kinds[i]
		if !k.matters(h.pod) {
			continue
		}
		if r := p.reserve(k, h, node); r != nil {
			p.claims.undo(h)
			return r
		}
	}
	if len(h.kinds) > 0 {
		p.claims.mu.Lock()
		p.claims.held[key] = h
		p.claims.mu.Unlock()
	}
	return nil
}

// reserve lets one plugin reserve. The order of calls is that of kube-scheduler.
func (p *plugin) reserve(k *claimKind, h *hold, node *mirrorNode) *engine.Rejection {
	w := p.wrapped[k.index]
	_, status := k.plugin.PreFilter(background, h.state, h.pod, nil)
	if status.IsSkip() {
		return nil // all is allocated
	}
	if r := w.rejectionOf(status); r != nil {
		return r
	}
	if r := w.rejectionOf(k.plugin.Filter(background, h.state, h.pod, node.info)); r != nil {
		return r
	}
	h.kinds = append(h.kinds, k)
	p.claims.epoch++
	status = k.plugin.Reserve(background, h.state, h.pod, h.node)
	h.pending = append(h.pending, p.claims.tracker.takeSignalled()...)
	return w.rejectionOf(status)
}

// undo releases in memory what is reserved.
func (c *claims) undo(h *hold) {
	for _, k := range slices.Backward(h.kinds) {
		k.undo(h)
	}
	c.epoch++
}

// unreserveClaims releases what reserveClaims reserved, unless it is being allocated: settle
// does so later, if the task is not placed again.
func (p *plugin) unreserveClaims(t *cluster.Task, _ *cluster.Node) {
	if h, phase := p.claims.get(KeyOf(t)); h != nil && phase == reserved {
		p.claims.drop(KeyOf(t))
		p.claims.undo(h)
	}
}

// get returns what is held for the task, and its phase.
func (c *claims) get(key TaskKey) (*hold, holdPhase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[key]
	if h == nil {
		return nil, reserved
	}
	return h, h.phase
}

func (c *claims) drop(key TaskKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, key)
}

func (c *claims) setPhase(h *hold, phase holdPhase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.phase = phase
}

// settle ends the reservations of tasks that are not placed on the node any more, and of tasks
// whose claims are allocated and that are bound. A hold that is being prepared is kept.
func (c *claims) settle(view cluster.View) {
	c.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(c.held), compareKeys)
	c.mu.Unlock()
	for _, key := range keys {
		h, phase := c.get(key)
		t := taskOf(view, key)
		placed := t != nil && t.Node != nil && t.Node.Name == h.node && t.Status != cluster.Pending
		switch {
		case phase == preparing, phase == releasing, placed && t.Status == cluster.Assumed, placed && t.Status == cluster.Nominated:
		case phase == prepared && placed && t.Status == cluster.Releasing && !c.tracker.store.isBound(key):
			// The pod is to be evicted and was not bound: it becomes pending without a request,
			// and then what is allocated for it is released.
		case phase == reserved && !placed:
			c.drop(key)
			c.undo(h)
		case phase == prepared && !placed:
			c.setPhase(h, releasing)
			c.toRelease = append(c.toRelease, h)
		default:
			if c.drop(key); phase == reserved { // another scheduler has bound the pod
				c.undo(h)
			}
			c.epoch++
		}
	}
}

// isBound reports whether the pod of the task is bound to a node.
func (s *Store) isBound(key TaskKey) bool {
	known := s.pods[key]
	return known != nil && known.info.Pod.Spec.NodeName != ""
}

func compareKeys(a, b TaskKey) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Task, b.Task), cmp.Compare(a.UID, b.UID))
}

// UseClient sets the client by which claims are allocated. It must be called before a plugin is
// built. Without it, Prepare must not be called.
func (s *Store) UseClient(c kubernetes.Interface) { s.client = c }

// waitForDevices waits until no other claim has the devices that were chosen. They may have been
// chosen while other pods had them that were leaving: Kubernetes deallocates the claims of these
// some time after they are gone. It returns what is in the way in the end, and "" if nothing is.
func (c *claims) waitForDevices(ctx context.Context, h *hold) string {
	text := ""
	for end := time.Now().Add(releaseTime); ; {
		if text = c.tracker.occupied(h.pending); text == "" || time.Now().After(end) {
			return text
		}
		select {
		case <-ctx.Done():
			return text
		case <-time.After(releasePause):
		}
	}
}

// releaseTime is how long the deallocation of devices may take after their pods are gone, and
// releasePause the time between two looks.
const (
	releaseTime  = 30 * time.Second
	releasePause = 50 * time.Millisecond
)

// undoTime is how long the release of allocated devices may take.
const undoTime = 10 * time.Second
