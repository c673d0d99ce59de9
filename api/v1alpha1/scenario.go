package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scenario is what should come of the objects it is in one file with. A bug
// report is a scenario.
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Description string `json:"description,omitempty"`
	// Now is the time at which it is decided, and at which the clock of Cycles starts: jobs created after it
	// arrive later. It is the latest that any object names unless given.
	Now *metav1.Time `json:"now,omitempty"`
	// Cycles makes it a course over time, as simulate --cycles does: at most so
	// many sessions. Everything else in expect then speaks of the end.
	Cycles *int `json:"cycles,omitempty"`
	// Every is how far the clock goes from cycle to cycle; 1m unless given.
	Every *metav1.Duration `json:"every,omitempty"`
	// Grace is how long evicted tasks take to leave; by the next cycle unless given.
	Grace  *metav1.Duration `json:"grace,omitempty"`
	Expect Expectation      `json:"expect,omitempty"`
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
	// Forms by workload: the alternative that was taken, by its name.
	Forms map[string]string `json:"forms,omitempty"`
	// Keep by workload and plugin: what it counted for when its set had too many.
	Keep map[string]map[string]float64 `json:"keep,omitempty"`
	// Provisions by model: what a provisioner is to do.
	Provisions map[string]ExpectedProvision `json:"provisions,omitempty"`
	// Pending workloads: nothing of them is placed.
	Pending  []string          `json:"pending,omitempty"`
	Refusals []ExpectedRefusal `json:"refusals,omitempty"`
	// Scores by task, node or group, and plugin, before weights. Groups have scores
	// where the task takes a whole node.
	Scores map[string]map[string]map[string]float64 `json:"scores,omitempty"`
	// Evictions are all tasks evicted; an empty list: none.
	Evictions []string `json:"evictions,omitempty"`
	// Timeline is what should hold at moments of a course; it needs cycles.
	Timeline []ExpectedMoment `json:"timeline,omitempty"`
	// Settled: whether nothing can change any more after the cycles; it needs cycles.
	Settled *bool `json:"settled,omitempty"`
}

// ExpectedProvision is what a provisioner is to do for a model.
type ExpectedProvision struct {
	// Create is how many NodeClaims.
	Create int `json:"create,omitempty"`
	// Remove are the nodes to remove.
	Remove []string `json:"remove,omitempty"`
}

// ExpectedMoment is what should hold once a cycle has decided.
type ExpectedMoment struct {
	// Cycle, counted from 1; or
	Cycle *int `json:"cycle,omitempty"`
	// At, the time since the start: 3m is the fourth cycle of 1m.
	At *metav1.Duration `json:"at,omitempty"`
	// Placements by task: the node it is on, or pending.
	Placements map[string]string `json:"placements,omitempty"`
	// Pending workloads: nothing of them is placed.
	Pending []string `json:"pending,omitempty"`
	// Ended workloads: their run time is over.
	Ended []string `json:"ended,omitempty"`
	// Queues by name: the devices they use.
	Queues map[string]float64 `json:"queues,omitempty"`
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
