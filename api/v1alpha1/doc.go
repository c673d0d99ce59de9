// Package v1alpha1 defines the manifests that users write: nodes, queues, jobs,
// models, disruption budgets, the configuration of the scheduler, and scenarios.
// YAML files and, on Kubernetes, custom resources share these types.
//
// The package holds the types only. Defaults, validation and the conversion to
// cluster.State are in package manifest, which reports errors with file and line.
package v1alpha1

// Group and version of all kinds in this package.
const (
	Group      = "berth.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// The kinds of this version.
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
	// LabelInstanceType is the label that Placement.InstanceType requires.
	LabelInstanceType = "node.kubernetes.io/instance-type"
)
