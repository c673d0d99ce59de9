// Package v1alpha1 defines the manifests that users write: nodes, queues, jobs,
// models, disruption budgets, the configuration of the scheduler, and scenarios.
// YAML files and, on Kubernetes, custom resources share these types. A file may have
// several documents, separated by lines with "---":
//
//	apiVersion: berth.dev/v1alpha1
//	kind: Node
//	metadata: {name: gpu-1}
//	spec:
//	  resources: {cpu: 64, memory: 512Gi}
//	  devices: {product: NVIDIA-L4, count: 8, memory: 24Gi}
//	---
//	apiVersion: berth.dev/v1alpha1
//	kind: Job
//	metadata: {name: train}
//	spec:
//	  tasks:
//	  - {name: worker, replicas: 2, devices: {count: 4}}
//
// Amounts are quantities of Kubernetes, such as 500m or 80Gi. Durations are written as in
// Go, such as 30s or 1h30m, and times as in RFC 3339, such as 2026-01-02T15:04:05Z.
//
// The package holds the types only. Other packages set defaults, validate objects and
// convert them to cluster.State. An unknown field is an error.
package v1alpha1

// Group and version of all kinds in this package.
const (
	Group      = "berth.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// The kinds of this version. A Snapshot is the State of a cluster as a file, which berth
// simulate --snapshot-out writes; it has no type in this package.
const (
	KindNode                   = "Node"
	KindQueue                  = "Queue"
	KindJob                    = "Job"
	KindModel                  = "Model"
	KindDisruptionBudget       = "DisruptionBudget"
	KindSchedulerConfiguration = "SchedulerConfiguration"
	KindScenario               = "Scenario"
	KindSnapshot               = "Snapshot"
)

// Labels and annotations that Berth reads on Kubernetes objects.
const (
	// LabelCell is the cell of a node.
	LabelCell = "berth.dev/cell"
	// LabelQueue is the queue of a pod, as a label or an annotation.
	LabelQueue = "berth.dev/queue"
	// LabelPreemptible is "true" on pods that may be evicted for other jobs, and "false"
	// on pods that may not, as a label or an annotation. The default is that of a Job.
	LabelPreemptible = "berth.dev/preemptible"
	// AnnotationPreemptionDelay is how long a pod evicts and moves no other task, such
	// as "5m". It has the meaning of preemptionDelay of a Job.
	AnnotationPreemptionDelay = "berth.dev/preemption-delay"
	// AnnotationIsolation of a node is the isolation that it offers, as NodeIsolation in JSON,
	// such as {"cpu": ["WholeCore"], "gpu": ["DeviceExclusive"]}. That of a pod is the
	// isolation that it requests, as Isolation in JSON, such as {"gpu": "DeviceExclusive"}.
	AnnotationIsolation = "berth.dev/isolation"
	// LabelInstanceType is the label that Placement.InstanceType requires.
	LabelInstanceType = "node.kubernetes.io/instance-type"
)
