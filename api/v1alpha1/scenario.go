package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scenario is what should come of the objects it is in one file with. A bug
// report is a scenario.
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Description string `json:"description,omitempty"`
	// Now is the time at which it is decided; the latest that any object names unless given.
	Now    *metav1.Time `json:"now,omitempty"`
	Expect Expectation  `json:"expect,omitempty"`
}

// Expectation is what a session should decide. What is not named is not checked,
// and something must be: a scenario that checks nothing could not fail.
type Expectation struct {
	// Placements by task: the node each goes to.
	Placements map[string]string `json:"placements,omitempty"`
	// Devices by task: the indexes it gets.
	Devices map[string][]int `json:"devices,omitempty"`
	// Groups by workload: the group chosen for it.
	Groups map[string]string `json:"groups,omitempty"`
	// Pending workloads: nothing of them is placed.
	Pending  []string          `json:"pending,omitempty"`
	Refusals []ExpectedRefusal `json:"refusals,omitempty"`
	// Scores by task, node and plugin, before weights.
	Scores map[string]map[string]map[string]float64 `json:"scores,omitempty"`
	// Evictions are all tasks evicted; an empty list: none.
	Evictions []string `json:"evictions,omitempty"`
}

// ExpectedRefusal is a workload turned down.
type ExpectedRefusal struct {
	Workload string `json:"workload"`
	Reason   string `json:"reason,omitempty"`
	// Permanent: whether waiting cannot help.
	Permanent *bool `json:"permanent,omitempty"`
	// Message is part of the sentence that explains it.
	Message string `json:"message,omitempty"`
	// Counts of nodes by reason.
	Counts map[string]int `json:"counts,omitempty"`
}
