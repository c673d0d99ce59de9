package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionBudget protects the tasks of the selected jobs: none of them is evicted or
// moved while too few of them run. Tasks that were never placed count as missing too.
type DisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects jobs and says how many of their tasks must run.
	Spec DisruptionBudgetSpec `json:"spec,omitempty"`
}

// DisruptionBudgetSpec selects jobs and says how many of their tasks must run. It has
// either minAvailable or maxUnavailable. A percentage is of all tasks of the selected
// jobs, and is rounded up to whole tasks.
type DisruptionBudgetSpec struct {
	// Selector selects the jobs that the budget covers, in the budget's own namespace.
	Selector JobSelector `json:"selector"`
	// MinAvailable is how many tasks must keep running, such as 2 or 30%.
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many tasks may be missing, such as 2 or 30%.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
