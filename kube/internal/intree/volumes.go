package intree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// volumePlugin is what VolumeBinding does after a node is chosen.
type volumePlugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.ReservePlugin
	fwk.PreBindPlugin
}

// volumes chooses volumes for claims that wait for their first consumer. A claim and a volume
// are reserved in memory when a task is placed, so that no other task of the session gets the
// volume, and are bound by Prepare before the pod is.
type volumes struct {
	plugin volumePlugin
	index  int    // of the plugin among the wrapped ones
	epoch  uint64 // grows when a reservation is made or released

	mu   sync.Mutex
	held map[TaskKey]*volumeHold
}

// volumeHold is what is reserved for a task on a node.
type volumeHold struct {
	state fwk.CycleState
	pod   *v1.Pod
	node  string
}

// newVolumes returns nil if VolumeBinding is not among the plugins.
func newVolumes(list []*wrapped) *volumes {
	for i, w := range list {
		if p, is := w.filter.(volumePlugin); is && w.name == names.VolumeBinding {
			return &volumes{plugin: p, index: i, held: map[TaskKey]*volumeHold{}}
		}
	}
	return nil
}

// needsVolumes reports whether the pod of the task has claims.
func (p *plugin) needsVolumes(t *cluster.Task, _ *cluster.Job) bool {
	known := p.store.pods[KeyOf(t)]
	return known != nil && hasClaims(known.info.Pod)
}

func hasClaims(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// reserveVolumes chooses and reserves the volumes of the task on the node.
func (p *plugin) reserveVolumes(t *cluster.Task, n *cluster.Node) *engine.Rejection {
	key := KeyOf(t)
	known, node := p.store.pods[key], p.mirror.nodes[n.Name]
	if known == nil {
		return rejection(PodNotKnown, "")
	}
	if node == nil || node.info.Node() == nil {
		return rejection(NodeNotKnown, n.Name)
	}
	v, w := p.volumes, p.wrapped[p.volumes.index]
	hold := &volumeHold{state: framework.NewCycleState(), pod: known.info.Pod, node: n.Name}
	_, status := v.plugin.PreFilter(background, hold.state, hold.pod, nil)
	if status.IsSkip() {
		return nil // all claims are bound
	}
	if r := w.rejectionOf(status); r != nil {
		return r
	}
	if r := w.rejectionOf(v.plugin.Filter(background, hold.state, hold.pod, node.info)); r != nil {
		return r
	}
	if r := w.rejectionOf(v.plugin.Reserve(background, hold.state, hold.pod, hold.node)); r != nil {
		v.plugin.Unreserve(background, hold.state, hold.pod, hold.node)
		return r
	}
	v.epoch++
	v.mu.Lock()
	v.held[key] = hold
	v.mu.Unlock()
	return nil
}

// unreserveVolumes releases what reserveVolumes reserved.
func (p *plugin) unreserveVolumes(t *cluster.Task, _ *cluster.Node) { p.volumes.release(KeyOf(t)) }

func (v *volumes) release(key TaskKey) {
	if hold := v.take(key); hold != nil {
		v.plugin.Unreserve(background, hold.state, hold.pod, hold.node)
		v.epoch++
	}
}

// take returns what is reserved for the task, which then is not reserved any more.
func (v *volumes) take(key TaskKey) *volumeHold {
	v.mu.Lock()
	defer v.mu.Unlock()
	hold := v.held[key]
	delete(v.held, key)
	return hold
}

// settle ends the reservations of tasks that are not assumed any more. The claims of a task
// that was bound are bound, as the Store knows or will know. The volumes of a task that was
// not are free again.
func (v *volumes) settle(view cluster.View) {
	v.mu.Lock()
	keys := slices.Collect(maps.Keys(v.held))
	v.mu.Unlock()
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		t := taskOf(view, key)
		v.mu.Lock()
		node := v.held[key].node
		v.mu.Unlock()
		switch {
		case t == nil || t.Node == nil || t.Node.Name != node || t.Status == cluster.Pending:
			v.release(key)
		case t.Status == cluster.Bound || t.Status == cluster.Releasing:
			v.take(key)
			v.epoch++
		}
	}
}

func compareKeys(a, b TaskKey) int {
	for _, c := range [][2]string{{a.Job, b.Job}, {a.Task, b.Task}, {a.UID, b.UID}} {
		if c[0] < c[1] {
			return -1
		}
		if c[0] > c[1] {
			return 1
		}
	}
	return 0
}

// UseClient sets the client by which Prepare binds claims. It must be called before a plugin is
// built. Without it, pods with claims that wait for their first consumer are not bound.
func (s *Store) UseClient(c kubernetes.Interface) { s.client = c }

// Prepare returns a function that binds the claims of the task to the volumes that were chosen
// for it, and waits until the controllers of Kubernetes have confirmed it. It returns nil if
// the task has no such claims. The function may be called in any goroutine.
func (s *Store) Prepare(key TaskKey) func(context.Context) error {
	if s.primary == nil || s.primary.volumes == nil {
		return nil
	}
	v := s.primary.volumes
	v.mu.Lock()
	hold := v.held[key]
	v.mu.Unlock()
	if hold == nil {
		return nil
	}
	return func(ctx context.Context) error {
		if status := v.plugin.PreBind(ctx, hold.state, hold.pod, hold.node); !status.IsSuccess() {
			return fmt.Errorf("the volumes of the pod were not bound: %s", status.Message())
		}
		return nil
	}
}
