package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is whose turn it is and how much they may use.
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec QueueSpec `json:"spec,omitempty"`
}

// QueueSpec is a tenant's standing and bounds.
type QueueSpec struct {
	// Tier is Guaranteed, Standard (the default) or Scavenger.
	Tier string `json:"tier,omitempty"`
	// Priority orders queues of a tier, high first.
	Priority int32 `json:"priority,omitempty"`
	// Weight divides what is left over between queues; 1 unless given.
	Weight *int64 `json:"weight,omitempty"`
	// Limits bound what the queue's tasks hold together. A resource that is not
	// named is not limited; one with limit 0 is not theirs to use. Devices are
	// limited by their resource name, such as nvidia.com/gpu.
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
