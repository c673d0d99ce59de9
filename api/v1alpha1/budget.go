package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionBudget bounds how many tasks of some jobs may be missing at a time
// because somebody evicted or moved them.
type DisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DisruptionBudgetSpec `json:"spec,omitempty"`
}

// DisruptionBudgetSpec has either minAvailable or maxUnavailable. Percentages
// are of all tasks that the selected jobs have, and are rounded up.
type DisruptionBudgetSpec struct {
	// Selector of the jobs it is about, in the budget's own namespace.
	Selector JobSelector `json:"selector"`
	// MinAvailable tasks must be left running: 2 or 30%.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// MaxUnavailable tasks may be missing: 2 or 30%.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
