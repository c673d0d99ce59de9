package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is whose turn it is and how much they may use.
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   QueueSpec   `json:"spec,omitempty"`
	Status QueueStatus `json:"status,omitempty"`
}

// QueueSpec is a tenant's standing and bounds.
type QueueSpec struct {
	// Parent is the queue above this one; none for a queue at the top. Only
	// queues with none below them may have jobs.
	Parent string `json:"parent,omitempty"`
	// Tier is Guaranteed, Standard (the default) or Scavenger.
	Tier string `json:"tier,omitempty"`
	// Priority orders queues of a tier, high first.
	Priority int32 `json:"priority,omitempty"`
	// Quota is what the queue deserves before anybody gets more than their own. A
	// resource that is not named has the sum of the quotas of the queues below it.
	// With unlimited, the queue deserves as much as there is, within its limit.
	Quota map[corev1.ResourceName]QuotaAmount `json:"quota,omitempty"`
	// Weight divides what is left over between siblings; 1 unless given. With a
	// weight of 0 the fair share of the queue ends at its quota: it may use what
	// is idle beyond that, and gives it back first.
	Weight *int64 `json:"weight,omitempty"`
	// OverQuotaWeight is the weight for single resources, where it differs.
	OverQuotaWeight map[string]int64 `json:"overQuotaWeight,omitempty"`
	// Limits bound what the tasks of the queue and of all below it hold together. A resource that is not
	// named is not limited; one with limit 0 is not theirs to use. Devices are
	// limited by their resource name, such as nvidia.com/gpu, or those of one
	// product by both, such as nvidia.com/gpu:NVIDIA-L4. MIG slices count under
	// their own name, such as nvidia.com/mig-1g.10gb, where the queue has terms for
	// it, and as a fraction of nvidia.com/gpu, such as 1/7, where it has none. The
	// same names serve quotas and weights.
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// MinRunTime protects what has only just started.
	MinRunTime *MinRunTime `json:"minRunTime,omitempty"`
}

// Unlimited is how a quota without a bound is written.
const Unlimited = "unlimited"

// QuotaAmount is a quantity, or unlimited.
type QuotaAmount struct {
	resource.Quantity
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

// MinRunTime is for how long tasks of the queue and of all below it are left
// alone once they have started, such as 10m. The nearest queue that says so counts.
type MinRunTime struct {
	// BeforePreempt protects from jobs that matter more, and from being moved.
	BeforePreempt *metav1.Duration `json:"beforePreempt,omitempty"`
	// BeforeReclaim protects from queues that take back their share.
	BeforeReclaim *metav1.Duration `json:"beforeReclaim,omitempty"`
}

// QueueStatus says what the queue used before.
type QueueStatus struct {
	// Usage is read where the profile lets the past count: FairShare with halfLife.
	Usage []QueueUsage `json:"usage,omitempty"`
}

// QueueUsage is what the tasks of a queue, and of all below it, held on average
// from one time to another. A queue without any has that of the queues below it.
type QueueUsage struct {
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`
	// Resources by the names that quotas have.
	Resources corev1.ResourceList `json:"resources"`
}
