package intree

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// ClaimPhase says what must be done before the pod of a task is bound.
type ClaimPhase uint8

// The phases of the claims of a task.
const (
	ClaimsReady     ClaimPhase = iota // nothing: the pod claims nothing, or all of it is allocated
	ClaimsReserved                    // Prepare must be called
	ClaimsPreparing                   // the function that Prepare returned is running
	ClaimsFailed                      // they were not allocated, and the pod must not be bound
)

// ClaimPhase returns the phase of the claims of a task that is placed.
func (s *Store) ClaimPhase(key TaskKey) ClaimPhase {
	if s.primary == nil {
		return ClaimsReady
	}
	h, phase := s.primary.claims.get(key)
	if h == nil {
		return ClaimsReady
	}
	return map[holdPhase]ClaimPhase{reserved: ClaimsReserved, preparing: ClaimsPreparing, prepared: ClaimsReady, failed: ClaimsFailed, releasing: ClaimsFailed}[phase]
}

// Prepare returns a function that allocates what was reserved for the claims of the task, and
// waits until the controllers of Kubernetes have confirmed it. The phase of the claims must be
// ClaimsReserved. The function must be called once, in any goroutine; if its context has ended, it
// does nothing. If it returns an error, devices that were allocated are released again, as far as
// the API server answers; volumes that were bound stay bound to their claims, as in
// kube-scheduler. If the context has ended meanwhile, it sends nothing more.
func (s *Store) Prepare(key TaskKey) func(context.Context) error {
	c := s.primary.claims
	h, _ := c.get(key)
	c.setPhase(h, preparing)
	return func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			c.setPhase(h, reserved)
			return err
		}
		text := c.waitForDevices(ctx, h)
		if text == "" {
			text = h.preBind(ctx)
		}
		switch {
		case text == "":
			c.setPhase(h, prepared)
			return nil
		case ctx.Err() != nil:
			c.setPhase(h, reserved) // what is only in memory is undone when State knows that the pod was not bound
		default:
			s.release(ctx, h)
			c.setPhase(h, failed)
		}
		return fmt.Errorf("what the pod claims was not allocated: %s", text)
	}
}

// preBind allocates what is reserved. It returns why it did not, and "" if it did.
func (h *hold) preBind(ctx context.Context) string {
	pod := h.podOnNode()
	for _, k := range h.kinds {
		if status := k.plugin.PreBind(ctx, h.state, pod, h.node); !status.IsSuccess() {
			return cmp.Or(status.Message(), "upstream gave no reason")
		}
	}
	return ""
}

// Releases returns functions that release what was allocated for tasks that are not placed any
// more. Each must be called once, in any goroutine. A function returns when the API server has
// answered, or its context has ended.
func (s *Store) Releases() []func(context.Context) {
	if s.primary == nil {
		return nil
	}
	var out []func(context.Context)
	for _, h := range s.primary.claims.toRelease {
		out = append(out, func(ctx context.Context) {
			s.release(ctx, h)
			s.primary.claims.setPhase(h, failed)
		})
	}
	s.primary.claims.toRelease = nil
	return out
}

// release undoes what was allocated. Devices are deallocated as well, unless another pod uses
// them: upstream does that only when the pod is tried again and does not fit, and until then the
// claim would tie the pod to the node.
func (s *Store) release(ctx context.Context, h *hold) {
	ctx, cancel := context.WithTimeout(ctx, undoTime)
	defer cancel()
	pod := h.podOnNode()
	for _, k := range slices.Backward(h.kinds) {
		k.plugin.Unreserve(ctx, h.state, pod, h.node)
	}
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			s.deallocate(ctx, *name, pod)
		}
	}
}

// deallocate takes the claim from the pod. If the API server does not answer, the claim stays
// allocated to the pod, which is then placed on the same node or deleted.
func (s *Store) deallocate(ctx context.Context, name string, pod *v1.Pod) {
	api := s.client.ResourceV1().ResourceClaims(pod.Namespace)
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		claim, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil || claim.Status.Allocation == nil {
			return err
		}
		status := &claim.Status
		status.ReservedFor = slices.DeleteFunc(status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
		if len(status.ReservedFor) == 0 {
			status.Allocation, status.Devices = nil, nil
		}
		if claim, err = api.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
		// Without this, the next session may take the claim for allocated until the watch
		// delivers that it is not.
		return s.primary.claims.tracker.AssumeClaimAfterAPICall(claim)
	})
}

// podOnNode returns the pod as it will be, which is what upstream passes.
func (h *hold) podOnNode() *v1.Pod {
	pod := *h.pod
	pod.Spec.NodeName = h.node
	return &pod
}

// Rejects reports whether a filter that looks at the node alone rejects it for the task now: the
// node was cordoned, tainted or labelled otherwise after the task was placed.
func (s *Store) Rejects(t *cluster.Task, n *cluster.Node) *engine.Rejection {
	if s.primary == nil || !s.primary.mattersStatic(t.Shape) {
		return nil
	}
	return s.primary.rejectStatic(t.Shape, n)
}
