package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionBudget bounds how many tasks of the selected jobs may be missing at a
// time because they were evicted or moved.
type DisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DisruptionBudgetSpec `json:"spec,omitempty"`
}

// DisruptionBudgetSpec has either minAvailable or maxUnavailable. A percentage is
// of all tasks of the selected jobs, and is rounded up.
type DisruptionBudgetSpec struct {
	// Selector selects the jobs that the budget covers, in the budget's own namespace.
	Selector JobSelector `json:"selector"`
	// MinAvailable is how many tasks must keep running, such as 2 or 30%.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many tasks may be missing, such as 2 or 30%.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
