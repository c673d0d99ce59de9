package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue holds the jobs of one team or purpose, and says how much they may use.
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the queue is entitled to, and what bounds it.
	Spec QueueSpec `json:"spec,omitempty"`
	// Status is what the queue used in the past and, on Kubernetes, what it uses now and what
	// its fair share is.
	Status QueueStatus `json:"status,omitempty"`
}

// QueueSpec is what a queue is entitled to and what bounds it.
type QueueSpec struct {
	// Parent is the queue above this one; empty for a queue at the top. Only queues with no
	// queues below them may have jobs.
	Parent string `json:"parent,omitempty"`
	// Tier is Guaranteed, Standard (the default) or Scavenger.
	Tier string `json:"tier,omitempty"`
	// Priority orders the queues of one tier, the highest first.
	Priority int32 `json:"priority,omitempty"`
	// Quota is what the queue is entitled to before any queue gets more than its quota. The quota
	// of a resource that is not named is the sum of the quotas of the queues below it.
	// With unlimited, the queue is entitled to everything that exists, within its limit.
	Quota map[corev1.ResourceName]QuotaAmount `json:"quota,omitempty"`
	// Weight is the proportion in which siblings divide what is left after quotas, from 0 to
	// 100000; 1 unless given. With a weight of 0, the fair share of the queue is its quota.
	// The queue may use idle resources beyond its quota, and these are reclaimed first.
	Weight *int64 `json:"weight,omitempty"`
	// OverQuotaWeight is the weight for single resources, if it differs from weight.
	OverQuotaWeight map[string]int64 `json:"overQuotaWeight,omitempty"`
	// Limits bound what the tasks of the queue and of all queues below it hold together. A
	// resource that is not named is not limited, and a resource with limit 0 may not be used.
	// Devices are limited by their resource name, such as nvidia.com/gpu; devices of one
	// product are limited by both names, such as nvidia.com/gpu:NVIDIA-L4. MIG slices count
	// under their own name, such as nvidia.com/mig-1g.10gb, if the queue has a quota, limit or
	// weight for that name, and otherwise as a fraction of nvidia.com/gpu, such as 1/7. Quotas
	// and weights use the same names.
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// MinRunTime protects tasks that started recently.
	MinRunTime *MinRunTime `json:"minRunTime,omitempty"`
}

// Unlimited is the text of a quota without a bound.
const Unlimited = "unlimited"

// QuotaAmount is a quantity or, if Unlimited is set, the word unlimited.
type QuotaAmount struct {
	resource.Quantity
	// Unlimited is set if the word unlimited is written; the quantity is then 0.
	Unlimited bool
}

// MarshalJSON writes the quantity, or unlimited.
func (a QuotaAmount) MarshalJSON() ([]byte, error) {
	if a.Unlimited {
		return json.Marshal(Unlimited)
	}
	return a.Quantity.MarshalJSON()
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *QuotaAmount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil && text == Unlimited {
		*a = QuotaAmount{Unlimited: true}
		return nil
	}
	a.Unlimited = false
	return a.Quantity.UnmarshalJSON(data)
}

// QuantityOrWord tells the decoder that the word unlimited may be written in place
// of the quantity. It returns the quantity to read the text into, nil for the word.
func (a *QuotaAmount) QuantityOrWord(text string) *resource.Quantity {
	if a.Unlimited = text == Unlimited; a.Unlimited {
		return nil
	}
	return &a.Quantity
}

// MinRunTime is how long tasks of the queue and of all queues below it are protected
// after their start, such as 10m. The times must be more than 0. For each of them, the
// nearest queue that sets it decides, from the task's own queue upwards.
type MinRunTime struct {
	// BeforePreempt is the time before a task may be preempted or moved.
	BeforePreempt *metav1.Duration `json:"beforePreempt,omitempty"`
	// BeforeReclaim is the time before a task may be reclaimed for another queue's fair share.
	BeforeReclaim *metav1.Duration `json:"beforeReclaim,omitempty"`
}

// ConditionActive is the type of the condition of a Queue that is True if jobs of the queue
// can be placed.
const ConditionActive = "Active"

// The reasons of ConditionActive.
const (
	// ReasonQueueActive: the queue is part of the tree of queues. The condition is True.
	ReasonQueueActive = "QueueActive"
	// ReasonQueueInvalid: the spec has an error, which the message states.
	ReasonQueueInvalid = "QueueInvalid"
	// ReasonParentMissing: a queue above this one does not exist, or is invalid.
	ReasonParentMissing = "ParentMissing"
	// ReasonParentCycle: the queue is above itself, or below a queue that is above itself.
	ReasonParentCycle = "ParentCycle"
)

// QueueStatus is what the queue used in the past, and what the scheduler reports about it.
// Only usage is input. On Kubernetes, the scheduler writes the other fields from time to
// time, and does not read them; files may contain them, and they are not read there either.
// All amounts are those of the queue and of all queues below it.
type QueueStatus struct {
	// Usage is used only by a profile in which past use counts: FairShare with halfLife.
	Usage []QueueUsage `json:"usage,omitempty"`
	// ObservedGeneration is the metadata.generation of the spec that the scheduler used last.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Quota is what the queue is entitled to by quotas: its own and, for each resource that
	// these do not name, the sum of those of the queues below it.
	Quota map[corev1.ResourceName]QuotaAmount `json:"quota,omitempty"`
	// Share is the fair share of the queue, for each resource that queues divide and that
	// the queue requests or has a quota of.
	Share corev1.ResourceList `json:"share,omitempty"`
	// Allocated is what placed tasks hold.
	Allocated corev1.ResourceList `json:"allocated,omitempty"`
	// Pending is what pending tasks request. Devices are counted by what the nodes of the
	// cluster would charge for them.
	Pending corev1.ResourceList `json:"pending,omitempty"`
	// PendingJobs is the number of jobs with pending tasks. It is missing until the scheduler
	// has reported it.
	PendingJobs *int32 `json:"pendingJobs,omitempty"`
	// Conditions has the condition Active, which is False if no job of the queue can be
	// placed, with the reason QueueInvalid, ParentMissing or ParentCycle.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QueueUsage is what the tasks of a queue and of all queues below it held on average
// between two times. A queue without usage has the sum of the usage of the queues below it.
type QueueUsage struct {
	// From is when the interval begins.
	From metav1.Time `json:"from"`
	// To is when the interval ends. It must be after from.
	To metav1.Time `json:"to"`
	// Resources have the same names as in quotas.
	Resources corev1.ResourceList `json:"resources,omitempty"`
}
