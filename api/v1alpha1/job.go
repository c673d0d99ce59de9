package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Job is one or more tasks that are queued and placed as a unit. The affinity of other
// jobs selects a job by its labels.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the job requests.
	Spec JobSpec `json:"spec,omitempty"`
	// Status is what the job already runs.
	Status JobStatus `json:"status,omitempty"`
}

// JobSpec is what a job requests. It has either tasks or alternatives.
type JobSpec struct {
	// Queue is the queue that the job is charged to; "default" unless given.
	Queue string `json:"queue,omitempty"`
	// SchedulerName is the name of the profile that decides about the job, if the
	// configuration has profiles; the first profile unless given.
	SchedulerName string `json:"schedulerName,omitempty"`
	// Priority orders the jobs of one queue: a job of a higher priority is tried first, and
	// may preempt jobs of a lower one; 0 unless given.
	Priority int32 `json:"priority,omitempty"`
	// Preemptible jobs may be evicted for other jobs. Unless given, the jobs of Scavenger
	// queues, and of queues below one, are preemptible, and all other jobs are not.
	Preemptible *bool `json:"preemptible,omitempty"`
	// MinMember is the minimum: how many of the tasks are placed together, or not at all.
	// The default is all tasks; with subgroups, it is their minima and all tasks that are in
	// no subgroup.
	MinMember *int `json:"minMember,omitempty"`
	// Subgroups are sets of tasks of the job with a minimum and a topology of their own.
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups is how many of the subgroups without a parent must have their minimum;
	// all of them unless given. The remaining subgroups are surplus: each is placed with its
	// minimum or not at all.
	MinSubgroups *int `json:"minSubgroups,omitempty"`
	// Topology keeps all tasks near each other.
	Topology *Topology `json:"topology,omitempty"`
	// RunTime is how long the job runs after its minimum has started. Simulations over
	// time end the job then; decisions do not depend on it. Unless given, the job does not end.
	RunTime *metav1.Duration `json:"runTime,omitempty"`
	// StaleGrace is how long the job may run below its minimum before its remaining tasks
	// are evicted. A negative value means without end. Unless given, the StaleGang plugin decides.
	StaleGrace *metav1.Duration `json:"staleGrace,omitempty"`
	// PreemptionDelay is how long the job evicts and moves no other task after it was
	// created or last evicted. Until then it is placed only where room is free, and otherwise
	// waits, for example for nodes that are being added. A negative value means without end.
	// Unless given, there is no delay.
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
	// Cells are the cells to try, in order. All tasks of the job are placed in one cell.
	// Unless given, any node is allowed.
	Cells []string `json:"cells,omitempty"`
	// NodeSelector lists the labels that nodes must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are the taints of nodes that all tasks tolerate.
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// Affinity attracts the job to nodes and other jobs, or keeps it away from them.
	Affinity *Affinity `json:"affinity,omitempty"`
	// Isolation is the isolation of all tasks. A field that a task sets in its own isolation
	// replaces the field here.
	Isolation *Isolation `json:"isolation,omitempty"`
	// Placement is whether the tasks take devices or whole nodes; devices unless given.
	Placement *Placement `json:"placement,omitempty"`
	// Tasks are the tasks of the job, one entry for each kind.
	Tasks []Task `json:"tasks,omitempty"`
	// Alternatives are the forms that the job may take. They are tried in order, and the
	// first that can be placed is chosen.
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Alternative is one form of a job. MinMember, subgroups, topology and placement default to
// those of the job.
type Alternative struct {
	// Name is the name of the alternative, by which a status refers to it. The default is
	// "alternative 1" for the first one, and so on.
	Name string `json:"name,omitempty"`
	// MinMember is the minimum of the alternative.
	MinMember *int `json:"minMember,omitempty"`
	// Subgroups are sets of tasks of the alternative.
	Subgroups []Subgroup `json:"subgroups,omitempty"`
	// MinSubgroups refers to the alternative's subgroups, or to those of the job if it has none.
	MinSubgroups *int `json:"minSubgroups,omitempty"`
	// Topology keeps all tasks near each other.
	Topology *Topology `json:"topology,omitempty"`
	// Placement is whether the tasks take devices or whole nodes.
	Placement *Placement `json:"placement,omitempty"`
	// Tasks are the tasks of the alternative. They are not those of the job.
	Tasks []Task `json:"tasks"`
}

// Subgroup is a set of tasks of a job with a minimum of its own, such as a leader and at
// least half of its workers. A subgroup may contain other subgroups.
type Subgroup struct {
	// Name is the name of the subgroup.
	Name string `json:"name"`
	// Parent is the name of the subgroup that contains this one. Unless given, it is
	// directly in the job.
	Parent string `json:"parent,omitempty"`
	// Tasks are the names of entries of the job's tasks. An entry is in at most one
	// subgroup. A subgroup that contains other subgroups may have no tasks of its own.
	Tasks []string `json:"tasks,omitempty"`
	// MinMember is how many of its own tasks belong to its minimum; all of them unless given.
	MinMember *int `json:"minMember,omitempty"`
	// MinSubgroups is how many of the subgroups that it contains must have their minimum;
	// all of them unless given. The remaining subgroups are surplus: each is placed with its
	// minimum or not at all.
	MinSubgroups *int `json:"minSubgroups,omitempty"`
	// Topology keeps its tasks, and those of all subgroups that it contains, near each other.
	Topology *Topology `json:"topology,omitempty"`
}

// Topology keeps tasks near each other. A level is a label of nodes, such as rack.
// The nodes with one value of the label form a domain.
type Topology struct {
	// Required is the level at which all tasks must be in one domain.
	Required string `json:"required,omitempty"`
	// Preferred lists levels, the narrowest first. The tasks are placed in as few domains of
	// each as possible.
	Preferred []string `json:"preferred,omitempty"`
}

// Task is a number of equal tasks. Each is placed on one node; they are called name-0,
// name-1, …
type Task struct {
	// Name is the name of the entry, from which the names of the tasks are made. It is also
	// their role, by which the plugin TaskOrder orders them.
	Name string `json:"name"`
	// Replicas is the number of tasks; 1 unless given. With unit Node it is the number of
	// replicas, each of which takes nodesPerReplica nodes.
	Replicas *int `json:"replicas,omitempty"`
	// Resources are requested by each task: cpu, memory and any other resource that nodes
	// count. Devices have a field of their own. A task counts as one container: in scores, a
	// task without cpu counts as 100m, and a task without memory as 200 MiB.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Devices is what each task requests of the devices of its node. Unless given, it
	// requests no device or, with unit Node, all devices.
	Devices *DeviceNeed `json:"devices,omitempty"`
	// Isolation is how strictly each task is separated from other tasks. The default for
	// each of its fields is that of the job.
	Isolation *Isolation `json:"isolation,omitempty"`
	// NodeSelector lists labels that the task's nodes must have, in addition to the job's.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity to nodes, in addition to the job's.
	Affinity *NodeAffinity `json:"affinity,omitempty"`
}

// NodeAffinity attracts tasks to nodes, or keeps them away from nodes.
type NodeAffinity struct {
	// Required is a list of terms. A node must match one of them, and also what the job requires.
	Required []NodeTerm `json:"required,omitempty"`
	// Preferred terms raise or lower the score of a node, as the job's preferred terms do.
	Preferred []PreferredTerm `json:"preferred,omitempty"`
}

// DeviceNeed is what one task requests of the devices of its node: whole devices, or an
// amount of memory of each device, or a fraction of each device. Memory cannot be combined
// with share or totalMemory. With unit Node, a task takes all devices of its nodes, and
// memory, share and partition are not allowed.
type DeviceNeed struct {
	// Count is the number of devices; 1 unless given. With unit Node it is the least number
	// of devices that each node must have.
	Count *int `json:"count,omitempty"`
	// Memory is the memory that is requested of each device.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Share is the fraction of each device, above 0 and at most 1: 0.5 or 500m.
	Share *resource.Quantity `json:"share,omitempty"`
	// TotalMemory is the memory that the devices must provide together. With unit Node it
	// is the memory that all nodes of one replica must provide together.
	TotalMemory *resource.Quantity `json:"totalMemory,omitempty"`
	// SameProduct requires that all devices are of one product.
	SameProduct bool `json:"sameProduct,omitempty"`
	// SameLink requires that all devices are in one NVLink domain of their node, as the nodes'
	// links and their label nvidia.com/gpu.clique name it. Unless it is set, devices that are
	// connected well are only preferred. It is not for unit Node or partitions.
	SameLink bool `json:"sameLink,omitempty"`
	// Products lists the products that are allowed; any product unless given.
	Products []string `json:"products,omitempty"`
	// Partition is the MIG profile that is requested, such as 1g.10gb. The count is then the
	// number of slices.
	Partition string `json:"partition,omitempty"`
}

// Isolation is how strictly a task is separated from other tasks.
type Isolation struct {
	// CPU is BestEffort, WholeCore or StrictIsolated. With the last two, the cpu of the task
	// is rounded up to whole cores.
	CPU string `json:"cpu,omitempty"`
	// GPU is Shared, SessionExclusive, DeviceExclusive or PartitionExclusive.
	GPU string `json:"gpu,omitempty"`
	// Session is the session that SessionExclusive refers to. Tasks of one session may share
	// devices.
	Session string `json:"session,omitempty"`
}

// Placement is whether a job takes devices or whole nodes.
type Placement struct {
	// Unit is Device (the default) or Node. With Node, a job takes whole nodes of one group,
	// and no two replicas share a node. The job then has exactly one entry under tasks.
	Unit string `json:"unit,omitempty"`
	// NodesPerReplica is the number of nodes of a replica with unit Node; 1 unless given.
	NodesPerReplica *int `json:"nodesPerReplica,omitempty"`
	// InstanceType is the required value of the label node.kubernetes.io/instance-type.
	InstanceType string `json:"instanceType,omitempty"`
}

// Toleration allows tasks on nodes with a taint.
type Toleration struct {
	// Key is the key of the taint. An empty key with Exists tolerates every taint.
	Key string `json:"key,omitempty"`
	// Operator is Equal (the default) or Exists.
	Operator string `json:"operator,omitempty"`
	// Value is the value of the taint. It is compared with operator Equal only.
	Value string `json:"value,omitempty"`
	// Effect is the effect that is tolerated; every effect unless given.
	Effect string `json:"effect,omitempty"`
}

// Affinity attracts a job to nodes and other jobs, or keeps it away from them.
type Affinity struct {
	// Required is a list of terms. A node must match one of them.
	Required []NodeTerm `json:"required,omitempty"`
	// Preferred terms raise or lower the score of a node.
	Preferred []PreferredTerm `json:"preferred,omitempty"`
	// Jobs is affinity to other jobs.
	Jobs []JobTerm `json:"jobs,omitempty"`
}

// NodeTerm is a list of conditions on a node's labels. All of them must hold.
type NodeTerm struct {
	// MatchExpressions are the conditions, at least one.
	MatchExpressions []Requirement `json:"matchExpressions"`
}

// PreferredTerm is a term with a weight. The nodes that match it get a higher or a lower
// score.
type PreferredTerm struct {
	// Weight is from -100 to 100 and not 0. A negative weight lowers the score of nodes that
	// match.
	Weight int32 `json:"weight"`
	// MatchExpressions are conditions on a node's labels, at least one. All of them must hold.
	MatchExpressions []Requirement `json:"matchExpressions"`
}

// Requirement is one condition on labels.
type Requirement struct {
	// Key is the key of the label.
	Key string `json:"key"`
	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt, as in Kubernetes.
	Operator string `json:"operator"`
	// Values are the values that the label is compared with: at least one for In and NotIn,
	// one whole number for Gt and Lt, and none for the other operators.
	Values []string `json:"values,omitempty"`
}

// JobTerm requires or prefers that a job is in the same domain of nodes as other jobs.
type JobTerm struct {
	// Selector selects the other jobs.
	Selector JobSelector `json:"selector"`
	// Within is the label that names the domains, such as rack. Unless given, each node is a
	// domain.
	Within string `json:"within,omitempty"`
	// Anti keeps the job away from the selected jobs instead.
	Anti bool `json:"anti,omitempty"`
	// Weight from 1 to 100 makes the term a preference. Unless given, the term is required.
	Weight int32 `json:"weight,omitempty"`
	// Namespaces are those in which jobs are selected; the job's own namespace unless given.
	Namespaces []string `json:"namespaces,omitempty"`
}

// JobSelector selects jobs by their labels. It has at least one condition, and all
// conditions in it must hold.
type JobSelector struct {
	// MatchLabels are labels that a job must have.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions are further conditions on a job's labels.
	MatchExpressions []Requirement `json:"matchExpressions,omitempty"`
}

// JobStatus is what the job already runs.
type JobStatus struct {
	// Alternative is the name of the alternative that runs. The default is the first one
	// that has all placed tasks.
	Alternative string `json:"alternative,omitempty"`
	// Placements are where tasks run, or how they ended. Tasks that are not listed are pending.
	Placements []TaskPlacement `json:"placements,omitempty"`
	// TornSince is the time since which the job has run below its minimum. Unless given,
	// it is the time of the first session that finds the job below its minimum.
	TornSince *metav1.Time `json:"tornSince,omitempty"`
	// Evicted is when a task of the job was last evicted. The preemption delay is
	// counted from that time.
	Evicted *metav1.Time `json:"evicted,omitempty"`
}

// TaskPlacement is where one task runs, or how it ended.
type TaskPlacement struct {
	// Task is the name and number of the task, such as worker-0.
	Task string `json:"task"`
	// Node is the node that the task is on; empty if the task has ended.
	Node string `json:"node,omitempty"`
	// State is Running (the default), Releasing, Succeeded or Failed. A task that is
	// Releasing holds its room until its end is reported. A task that has ended holds
	// nothing and is not placed again; it counts for the minimum if it Succeeded, and does
	// not if it Failed.
	State string `json:"state,omitempty"`
	// Devices are the indexes of the task's devices; unless given, they are chosen.
	Devices []int `json:"devices,omitempty"`
	// Started is when the task started. Unless given, no minimum run time protects the task,
	// and simulations over time count its run time from their start.
	Started *metav1.Time `json:"started,omitempty"`
}
