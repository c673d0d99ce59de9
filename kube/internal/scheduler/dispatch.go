package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/intree"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

// dispatcher has the bindings and evictions that were decided and not sent yet.
type dispatcher struct {
	leader  *live.Leader
	objects *objects
	sender  *bind.Sender
	limiter flowcontrol.RateLimiter // of evictions
	log     *slog.Logger

	toBind    []bind.Binding
	toPrepare []bind.Binding // bindings of pods with claims, those that are being prepared first
	toEvict   []eviction
	toRelease []func(context.Context) // what was allocated for pods that are not bound
	causes    map[string]string       // by UID: why a pod is being evicted
	changed   bool                    // a decision does not hold any more: a session must run
}

// addBinding adds a binding that was decided.
func (d *dispatcher) addBinding(b bind.Binding) {
	if d.objects.store.ClaimPhase(intree.TaskKey{Job: b.Task.Job, Task: b.Task.Name, UID: b.UID}) == intree.ClaimsReady {
		d.toBind = append(d.toBind, b)
	} else {
		d.toPrepare = append(d.toPrepare, b)
	}
}

// dispatch sends the bindings and evictions that are still what the State says, as far as
// requests may be under way. Facts that arrived since they were decided may have overtaken
// them.
func (d *dispatcher) dispatch() {
	d.toPrepare = d.dispatchBindings(d.toPrepare)
	d.toBind = d.dispatchBindings(d.toBind)
	d.toRelease = append(d.toRelease, d.objects.store.Releases()...)
	for len(d.toRelease) > 0 && d.sender.Release(d.toRelease[0]) {
		d.toRelease = d.toRelease[1:]
	}
	sent := 0
	for sent < len(d.toEvict) && d.dispatchEviction(&d.toEvict[sent]) != blocked {
		sent++
	}
	d.toEvict = remaining(d.toEvict, sent)
}

// dispatchEviction sends the eviction if the State still says that the pod is to be evicted. A pod
// that was not bound, because it was being prepared, is pending again without a request: the API
// server would delete it.
func (d *dispatcher) dispatchEviction(e *eviction) progress {
	t := d.taskOf(e.Pod, e.Attempt)
	if t == nil || t.Status != cluster.Releasing {
		return dropped
	}
	if pod := d.objects.pods[types.UID(e.UID)]; pod != nil && pod.Spec.NodeName == "" {
		// The State keeps a task whose binding was sent.
		_ = d.leader.Apply(cluster.TaskSeen{Task: e.Task, UID: e.UID})
		if t.Status != cluster.Releasing {
			d.changed = true
			return dropped
		}
	}
	if !d.sender.Free() || !d.limiter.TryAccept() || !d.sender.Evict(e.Eviction) {
		return blocked
	}
	d.causes[e.UID] = e.cause
	return dropped
}

// progress is what becomes of a binding that is waiting.
type progress uint8

const (
	dropped progress = iota // it was sent, or must not be sent
	kept                    // it is considered again in the next turn
	blocked                 // as many requests as allowed are under way: it and all that follow are kept
)

// dispatchBindings sends bindings of the list, and returns those that are kept.
func (d *dispatcher) dispatchBindings(list []bind.Binding) []bind.Binding {
	rest := list[:0]
	for i := range list {
		switch d.dispatchBinding(&list[i]) {
		case kept:
			rest = append(rest, list[i])
		case blocked:
			if len(rest) == 0 {
				return list[i:]
			}
			return append(rest, list[i:]...)
		}
	}
	if len(rest) == 0 {
		return nil // so that a long list is released
	}
	clear(list[len(rest):])
	return rest
}

// dispatchBinding sends the binding, or begins to prepare it, if the State still says that the
// pod is to be bound to the node. It is called again after a preparation, which may take minutes.
func (d *dispatcher) dispatchBinding(b *bind.Binding) progress {
	t := d.taskOf(b.Pod, b.Attempt)
	if t == nil || t.Status != cluster.Assumed || t.Node == nil || t.Node.Name != b.Node {
		return dropped
	}
	if reason := d.overtaken(t); reason != "" {
		d.log.Info("A binding is not sent.", "pod", b.Namespace+"/"+b.Name, "node", b.Node, "reason", reason)
		d.notBound(b)
		return dropped
	}
	key := intree.KeyOf(t)
	switch d.objects.store.ClaimPhase(key) {
	case intree.ClaimsReserved:
		if !d.sender.MayPrepare() {
			return blocked
		}
		d.sender.Prepare(*b, d.objects.store.Prepare(key))
		return kept
	case intree.ClaimsPreparing:
		return kept
	case intree.ClaimsFailed:
		d.notBound(b)
		return dropped
	}
	if d.matePrepares(t) {
		return kept
	}
	if !d.sender.Bind(*b) {
		return blocked
	}
	// The State rejects it only if the task is not Assumed, which was checked.
	_ = d.leader.Apply(cluster.BindSent{Task: b.Task, UID: b.UID, Attempt: b.Attempt})
	return dropped
}

// matePrepares reports whether the task belongs to a gang of which fewer pods than its minimum are
// bound, and the claims of another member are being allocated. If that fails, the gang is decided
// anew, which is possible only as long as none of its pods is bound.
func (d *dispatcher) matePrepares(t *cluster.Task) bool {
	job, bound := t.Job, 0
	for _, mate := range job.Tasks() {
		if mate.Status == cluster.Bound {
			bound++
		}
	}
	if len(job.Tasks()) == 1 || bound >= job.Alternatives[max(0, job.Chosen)].Min {
		return false
	}
	return slices.ContainsFunc(d.toPrepare, func(b bind.Binding) bool {
		mate := d.taskOf(b.Pod, b.Attempt)
		if mate == nil || mate == t || mate.Job != job || mate.Status != cluster.Assumed {
			return false
		}
		phase := d.objects.store.ClaimPhase(intree.KeyOf(mate))
		return phase == intree.ClaimsReserved || phase == intree.ClaimsPreparing
	})
}

// overtaken returns why the task must not be bound to its node any more; "" if it may be.
func (d *dispatcher) overtaken(t *cluster.Task) string {
	if d.leader.State().Node(t.Node.Name) == nil {
		return "the node is gone" // the API server would accept the binding: it does not check that the node exists
	}
	if r := d.objects.store.Rejects(t, t.Node); r != nil {
		return fmt.Sprintf("the node does not accept the pod any more: %s", r.Reason)
	}
	return ""
}

// notBound tells the State that the binding was not sent.
func (d *dispatcher) notBound(b *bind.Binding) {
	_ = d.leader.Apply(cluster.BindFailed{Task: b.Task, UID: b.UID, Attempt: b.Attempt})
	d.changed = true
}

// remaining returns the list without its first n entries. A list that is empty is released.
func remaining[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// taskOf returns the task if it still is the pod with the UID, and the decision with the
// attempt is its latest.
func (d *dispatcher) taskOf(p bind.Pod, attempt uint64) *cluster.Task {
	t := d.leader.State().Task(p.Task)
	if t == nil || t.UID != p.UID || t.Attempt != attempt {
		return nil
	}
	return t
}
