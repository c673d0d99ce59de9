package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Job is tasks that stand or fall together. Its labels are what other jobs'
// affinity selects.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   JobSpec   `json:"spec,omitempty"`
	Status JobStatus `json:"status,omitempty"`
}

// JobSpec is what a job asks for. It has either tasks or alternatives.
type JobSpec struct {
	// Queue that pays for it; "default" unless given.
	Queue    string `json:"queue,omitempty"`
	Priority int32  `json:"priority,omitempty"`
	// Preemptible jobs may be evicted for others. Unless given, jobs of Scavenger
	// queues, and of queues below one, are preemptible, and others are not.
	Preemptible *bool `json:"preemptible,omitempty"`
	// MinMember of the tasks are placed together, or none. Unless given: all of
	// them, or with subgroups their minima and all tasks that are in none.
	MinMember *int `json:"minMember,omitempty"`
	// Subgroups are parts of the job with minima and a topology of their own.
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups is how many of the subgroups without a parent must have their
	// minimum; all of them unless given. The rest is surplus, each as a whole.
	MinSubgroups *int `json:"minSubgroups,omitempty"`
	// Topology keeps all tasks near each other.
	Topology *Topology `json:"topology,omitempty"`
	// RunTime is how long it runs once its minimum has started: simulations over
	// time end it then. Decisions do not look at it. None: it runs on.
	RunTime *metav1.Duration `json:"runTime,omitempty"`
	// StaleGrace is how long the job may run below its minimum before the rest of it
	// is evicted; below 0: for good. Unless given, the StaleGang plugin decides.
	StaleGrace *metav1.Duration `json:"staleGrace,omitempty"`
	// PreemptionDelay is for how long the job evicts and moves nothing after it was
	// created, or evicted last: it is placed where there is free room, and waits
	// otherwise, perhaps for nodes that are being added. None: it does not wait.
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
	// Cells to try, in order; the whole job goes into one. None: any node will do.
	Cells []string `json:"cells,omitempty"`
	// NodeSelector is labels that nodes must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
	Affinity     *Affinity         `json:"affinity,omitempty"`
	// Isolation is what tasks ask for that do not say otherwise.
	Isolation *Isolation `json:"isolation,omitempty"`
	Placement *Placement `json:"placement,omitempty"`
	Tasks     []Task     `json:"tasks,omitempty"`
	// Alternatives are forms the job may take, tried in order.
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Alternative is one form of a job. MinMember, Subgroups, Topology and Placement
// of the job hold where it says nothing.
type Alternative struct {
	Name      string     `json:"name,omitempty"`
	MinMember *int       `json:"minMember,omitempty"`
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups of its own subgroups, or of the job's.
	MinSubgroups *int       `json:"minSubgroups,omitempty"`
	Topology     *Topology  `json:"topology,omitempty"`
	Placement    *Placement `json:"placement,omitempty"`
	Tasks        []Task     `json:"tasks"`
}

// Subgroup is tasks of a job of which so many are placed with the job's minimum:
// a leader, and at least half of its workers. Subgroups may be in others.
type Subgroup struct {
	Name string `json:"name"`
	// Parent is the subgroup that it is in, by name; none: it is in the job itself.
	Parent string `json:"parent,omitempty"`
	// Tasks are entries of the job's tasks, by name; an entry is in one subgroup at
	// most. A subgroup that others are in needs none of its own.
	Tasks []string `json:"tasks,omitempty"`
	// MinMember of its own tasks are placed with its minimum; all of them unless given.
	MinMember *int `json:"minMember,omitempty"`
	// MinSubgroups is how many of the subgroups in it must have their minimum; all of
	// them unless given. The rest is surplus, each as a whole.
	MinSubgroups *int `json:"minSubgroups,omitempty"`
	// Topology keeps its tasks, and those of all subgroups in it, near each other.
	Topology *Topology `json:"topology,omitempty"`
}

// Topology keeps tasks near each other. A level is a label of nodes, such as
// rack; nodes with the same value of it form a domain.
type Topology struct {
	// Required is the level of which all tasks must be in one domain.
	Required string `json:"required,omitempty"`
	// Preferred levels, the narrowest first: tasks go into as few domains of each as possible.
	Preferred []string `json:"preferred,omitempty"`
}

// Task is so many equal tasks; each goes onto one node and is called name-0, name-1, …
type Task struct {
	Name string `json:"name"`
	// Replicas is how many there are; 1 unless given.
	Replicas *int `json:"replicas,omitempty"`
	// Resources of each: cpu, memory and whatever else nodes count. Devices have a field of their own.
	// A task is one container: without cpu it counts as 100m in scores, without memory as 200 MiB.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	Devices   *DeviceNeed         `json:"devices,omitempty"`
	Isolation *Isolation          `json:"isolation,omitempty"`
	// NodeSelector is labels that its nodes must have, beside those that the job asks for.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity to nodes, beside the job's.
	Affinity *NodeAffinity `json:"affinity,omitempty"`
}

// NodeAffinity draws tasks to nodes, or keeps them away.
type NodeAffinity struct {
	// Required: a node must match any of the terms, and what the job requires.
	Required []NodeTerm `json:"required,omitempty"`
	// Preferred terms add to a node's score, or take from it, as the job's do.
	Preferred []PreferredTerm `json:"preferred,omitempty"`
}

// DeviceNeed is what one task asks of the devices of its node: whole devices,
// or of each so much memory, or of each a share.
type DeviceNeed struct {
	// Count of devices; 1 unless given.
	Count *int `json:"count,omitempty"`
	// Memory of each device.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Share of each device, above 0 and at most 1: 0.5 or 500m.
	Share *resource.Quantity `json:"share,omitempty"`
	// TotalMemory that the devices must give together.
	TotalMemory *resource.Quantity `json:"totalMemory,omitempty"`
	// SameProduct forbids a mix of products.
	SameProduct bool `json:"sameProduct,omitempty"`
	// Products that will do; any unless given.
	Products []string `json:"products,omitempty"`
	// Partition is the MIG profile to ask for.
	Partition string `json:"partition,omitempty"`
}

// Isolation is how strictly a task is kept from others.
type Isolation struct {
	// CPU is BestEffort, WholeCore or StrictIsolated.
	CPU string `json:"cpu,omitempty"`
	// GPU is Shared, SessionExclusive, DeviceExclusive or PartitionExclusive.
	GPU string `json:"gpu,omitempty"`
	// Session names the session of SessionExclusive; tasks of one session may share devices.
	Session string `json:"session,omitempty"`
}

// Placement is how tasks relate to nodes.
type Placement struct {
	// Unit is Device (the default) or Node: whole nodes of one group, never two replicas on one.
	Unit string `json:"unit,omitempty"`
	// NodesPerReplica with unit Node; 1 unless given.
	NodesPerReplica *int `json:"nodesPerReplica,omitempty"`
	// InstanceType requires the label node.kubernetes.io/instance-type.
	InstanceType string `json:"instanceType,omitempty"`
}

// Toleration lets tasks past a taint.
type Toleration struct {
	// Key of the taint; none with Exists tolerates everything.
	Key string `json:"key,omitempty"`
	// Operator is Equal (the default) or Exists.
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	// Effect to tolerate; every effect unless given.
	Effect string `json:"effect,omitempty"`
}

// Affinity draws a job to nodes and other jobs, or keeps it away from them.
type Affinity struct {
	// Required: a node must match any of the terms.
	Required []NodeTerm `json:"required,omitempty"`
	// Preferred terms add to a node's score, or take from it.
	Preferred []PreferredTerm `json:"preferred,omitempty"`
	// Jobs is affinity to other jobs.
	Jobs []JobTerm `json:"jobs,omitempty"`
}

// NodeTerm is conditions on a node's labels that hold together.
type NodeTerm struct {
	MatchExpressions []Requirement `json:"matchExpressions"`
}

// PreferredTerm is a term with a weight from -100 to 100; below 0 pushes away.
type PreferredTerm struct {
	Weight           int32         `json:"weight"`
	MatchExpressions []Requirement `json:"matchExpressions"`
}

// Requirement is one condition on labels.
type Requirement struct {
	Key string `json:"key"`
	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt.
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// JobTerm ties a job to others within a domain of nodes.
type JobTerm struct {
	Selector JobSelector `json:"selector"`
	// Within is the label whose value makes a domain, such as rack; none: the node itself.
	Within string `json:"within,omitempty"`
	// Anti keeps away from the selected jobs instead.
	Anti bool `json:"anti,omitempty"`
	// Weight from 1 to 100 makes it a preference; none: it is required.
	Weight int32 `json:"weight,omitempty"`
	// Namespaces to look in; the job's own unless given.
	Namespaces []string `json:"namespaces,omitempty"`
}

// JobSelector picks jobs by their labels; everything in it must hold.
type JobSelector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// JobStatus says what already runs.
type JobStatus struct {
	// Alternative that runs, by its name; the first one that has all the placed tasks unless given.
	Alternative string          `json:"alternative,omitempty"`
	Placements  []TaskPlacement `json:"placements,omitempty"`
	// TornSince is since when it has run below its minimum; unless given, a session
	// notes it when it first sees it.
	TornSince *metav1.Time `json:"tornSince,omitempty"`
	// Evicted is when a task of it was evicted last; the preemption delay counts from
	// there.
	Evicted *metav1.Time `json:"evicted,omitempty"`
}

// TaskPlacement is where one task runs, or how it ended.
type TaskPlacement struct {
	// Task by its name and number: worker-0.
	Task string `json:"task"`
	// Node that it is on; none where it has ended.
	Node string `json:"node,omitempty"`
	// State is Running (the default), Releasing, Succeeded or Failed. A task that is
	// Releasing holds its room until it has left. One that has ended holds nothing and
	// is not placed again: if it Succeeded it counts for the minimum, and if it Failed it does not.
	State string `json:"state,omitempty"`
	// Devices by index; chosen for it unless given.
	Devices []int `json:"devices,omitempty"`
	// Started is when it began to run; long ago unless given.
	Started *metav1.Time `json:"started,omitempty"`
}
