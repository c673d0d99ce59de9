package queuestatus

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/live"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Input is what statuses are computed from.
type Input struct {
	Shares *live.QueueShares
	// Invalid are the queues that State does not have because their spec has an error, by
	// name. An entry that is older than the queue in State is ignored.
	Invalid map[string]Invalid
}

// Invalid is why a queue is not in State.
type Invalid struct {
	Revision uint64 // of the object that has the error (feed.Revision)
	Message  string // what is wrong, and what to write instead
}

// units converts amounts of State. Nodes of Kubernetes offer devices only under names that
// always mean devices.
var units = convert.Environment{DeviceResources: map[string]bool{}}

// maxMessage is how many characters of a message a condition has at most.
const maxMessage = 1024

// queues are the queues of an Input by name.
type queues struct {
	input  *Input
	byName map[string]*live.QueueShare
}

func newQueues(in *Input) *queues {
	out := &queues{input: in, byName: map[string]*live.QueueShare{}}
	for i := range in.Shares.Queues {
		q := &in.Shares.Queues[i]
		out.byName[q.Name] = q
	}
	return out
}

// status returns the status that the object should have, and false if State has not seen the
// object yet. Usage is not set.
func (qs *queues) status(o *v1alpha1.Queue, now time.Time) (*v1alpha1.QueueStatus, bool) {
	out := &v1alpha1.QueueStatus{ObservedGeneration: o.Status.ObservedGeneration, Conditions: append([]metav1.Condition{}, o.Status.Conditions...)}
	active := metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}
	var revision uint64
	q, invalid := qs.byName[o.Name], qs.input.Invalid[o.Name]
	switch {
	case q == nil && invalid.Message == "":
		return nil, false
	case q == nil || invalid.Revision > q.Revision:
		revision = invalid.Revision
		active.Reason, active.Message = v1alpha1.ReasonQueueInvalid, clip(invalid.Message)
	default:
		revision = q.Revision
		setAmounts(out, q)
		if active.Reason, active.Message = qs.treeProblem(q); active.Reason == "" {
			active.Status, active.Reason = metav1.ConditionTrue, v1alpha1.ReasonQueueActive
		}
	}
	// A newer version of the object may have another spec. Its generation counts when State
	// has that version.
	if feed.Revision(&o.ObjectMeta) <= revision {
		out.ObservedGeneration = o.Generation
	}
	active.ObservedGeneration = out.ObservedGeneration
	meta.SetStatusCondition(&out.Conditions, active)
	return out, true
}

// setAmounts sets the amounts and the number of jobs. An amount of a resource that the queue
// has a quota or share of is allocated even if it is 0, so that it is shown.
func setAmounts(out *v1alpha1.QueueStatus, q *live.QueueShare) {
	jobs := int32(q.PendingJobs)
	out.PendingJobs = &jobs
	out.Share, out.Allocated, out.Pending = list(q.Share), list(q.Used), list(q.Pending)
	allocate := func(name string) {
		if out.Allocated == nil {
			out.Allocated = corev1.ResourceList{}
		}
		if _, found := out.Allocated[corev1.ResourceName(name)]; !found {
			out.Allocated[corev1.ResourceName(name)] = units.Quantity(name, 0)
		}
	}
	for _, a := range q.Share {
		allocate(a.Name)
	}
	for _, a := range q.Quota {
		allocate(a.Name)
		amount := v1alpha1.QuotaAmount{Unlimited: a.Value == cluster.Unlimited}
		if !amount.Unlimited {
			amount.Quantity = units.Quantity(a.Name, a.Value)
		}
		if out.Quota == nil {
			out.Quota = map[corev1.ResourceName]v1alpha1.QuotaAmount{}
		}
		out.Quota[corev1.ResourceName(a.Name)] = amount
	}
}

func list(amounts cluster.Resources) corev1.ResourceList {
	if len(amounts) == 0 {
		return nil
	}
	out := corev1.ResourceList{}
	for _, a := range amounts {
		out[corev1.ResourceName(a.Name)] = units.Quantity(a.Name, a.Value)
	}
	return out
}

// treeProblem returns why the queue is not part of the tree of queues, and "" if it is.
func (qs *queues) treeProblem(q *live.QueueShare) (reason, message string) {
	if !q.Loose {
		return "", ""
	}
	seen := map[string]bool{}
	for at := q; ; {
		above := qs.byName[at.Parent]
		switch {
		case above == nil:
			return v1alpha1.ReasonParentMissing, fmt.Sprintf("queue %s, the parent of queue %s, does not exist or is invalid; jobs of the queue are not placed until it exists", at.Parent, at.Name)
		case seen[at.Name]:
			return v1alpha1.ReasonParentCycle, fmt.Sprintf("queue %s is above itself; one of the queues above it needs another parent", at.Name)
		}
		seen[at.Name] = true
		at = above
	}
}

// clip cuts a message that is too long for a condition.
func clip(s string) string {
	if runes := []rune(s); len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return s
}
