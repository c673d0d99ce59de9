package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Scenario is the result that is expected of the other objects in its file. It is also
// the form of a bug report.
type Scenario struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Description says what the scenario shows. It is not used.
	Description string `json:"description,omitempty"`
	// Now is the time of the decision and, with cycles, the time of the first cycle. Jobs
	// that are created later arrive in a later cycle. The default is the latest time that
	// any object names.
	Now *metav1.Time `json:"now,omitempty"`
	// Cycles is the maximum number of sessions of a simulation over time, as with simulate
	// --cycles. The other fields of expect then describe its end.
	Cycles *int `json:"cycles,omitempty"`
	// Every is the time from one cycle to the next; 1m unless given.
	Every *metav1.Duration `json:"every,omitempty"`
	// Grace is how long evicted tasks still hold their room. Unless given, the room is free
	// in the next cycle.
	Grace *metav1.Duration `json:"grace,omitempty"`
	// Expand is true if the pods are made of Deployments, Jobs and other workloads that have
	// none, as with --expand.
	Expand bool `json:"expand,omitempty"`
	// Expect is the result that is expected.
	Expect Expectation `json:"expect,omitempty"`
}

// Expectation is what sessions should decide. What is not named is not checked. At
// least one field is required, because a scenario that checks nothing cannot fail.
//
// A workload is written as job/NAME or NAME, a replica of a model as model/NAME-0, and a
// task as job/NAME/worker-0. The name of the task may be left out if the workload has only
// one task.
type Expectation struct {
	// Placements is the node of each task, or pending.
	Placements map[string]string `json:"placements,omitempty"`
	// Devices is the device indexes of each task.
	Devices map[string][]int `json:"devices,omitempty"`
	// Layers is, for each task with layers of a model, how many layers are on each of its
	// devices, in the order of the devices.
	Layers map[string][]int `json:"layers,omitempty"`
	// Groups is the node group that is chosen for each workload.
	Groups map[string]string `json:"groups,omitempty"`
	// Forms is the name of the alternative that is chosen for each workload.
	Forms map[string]string `json:"forms,omitempty"`
	// Keep is, for each replica of a set that had too many replicas, the score that each
	// plugin gave it. The replicas with the highest sums are kept.
	Keep map[string]map[string]float64 `json:"keep,omitempty"`
	// Provisions is what a provisioner should do for each model.
	Provisions map[string]ExpectedProvision `json:"provisions,omitempty"`
	// Pending lists workloads of which no task is placed.
	Pending []string `json:"pending,omitempty"`
	// Refusals lists workloads that are refused, and why.
	Refusals []ExpectedRefusal `json:"refusals,omitempty"`
	// Scores is the score by task, by node or group, and by plugin, before weights. Groups
	// have scores if the task takes a whole node. It cannot be combined with cycles.
	Scores map[string]map[string]map[string]float64 `json:"scores,omitempty"`
	// Evictions lists all tasks that are evicted; an empty list means none.
	Evictions []string `json:"evictions,omitempty"`
	// Notes has a part of each note about how the input is read; an empty list means that there
	// is none. A note that no entry is a part of is a mismatch.
	Notes []string `json:"notes,omitempty"`
	// Timeline is what should hold at certain times of the simulation; it requires cycles.
	Timeline []ExpectedMoment `json:"timeline,omitempty"`
	// Settled is whether nothing can change any more after the cycles; it requires cycles.
	Settled *bool `json:"settled,omitempty"`
}

// ExpectedProvision is what a provisioner should do for a model.
type ExpectedProvision struct {
	// Create is the number of NodeClaims to create.
	Create int `json:"create,omitempty"`
	// Remove lists the nodes to remove.
	Remove []string `json:"remove,omitempty"`
}

// ExpectedMoment is what should hold after the decisions of one cycle. It has either
// cycle or at.
type ExpectedMoment struct {
	// Cycle is the number of the cycle, counted from 1.
	Cycle *int `json:"cycle,omitempty"`
	// At is the time since the start: with cycles of 1m, 3m is the fourth cycle.
	At *metav1.Duration `json:"at,omitempty"`
	// Placements is the node of each task, or pending, or ended, or "still to come" for a
	// task of a job that has not arrived.
	Placements map[string]string `json:"placements,omitempty"`
	// Pending lists workloads of which no task is placed.
	Pending []string `json:"pending,omitempty"`
	// Ended lists workloads that have ended.
	Ended []string `json:"ended,omitempty"`
	// Queues is the number of devices that each queue uses.
	Queues map[string]float64 `json:"queues,omitempty"`
}

// ExpectedRefusal is a workload that should be refused.
type ExpectedRefusal struct {
	// Workload is the workload, such as job/train.
	Workload string `json:"workload"`
	// Reason is the reason of the refusal, such as TooFewDevices.
	Reason string `json:"reason,omitempty"`
	// Permanent is whether neither waiting nor evicting helps.
	Permanent *bool `json:"permanent,omitempty"`
	// Message is a part of the sentence that explains the refusal.
	Message string `json:"message,omitempty"`
	// Counts is the number of nodes that are rejected for each reason.
	Counts map[string]int `json:"counts,omitempty"`
}
