// Package v1alpha1 holds what people write: the manifests of nodes, queues,
// jobs, models, disruption budgets, the scheduler's configuration and scenarios. YAML
// files and, on Kubernetes, custom resources share these types.
//
// It says what can be written and refuses to know what it means: defaults,
// validation and the step to cluster.State are in package manifest, which can
// name the file and line of whatever is wrong.
package v1alpha1

// Group and version of everything in this package.
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
	// LabelPreemptible is "true" on pods that may be evicted for others, and "false"
	// on pods that may not, as a label or an annotation. The default is as for jobs.
	LabelPreemptible = "berth.dev/preemptible"
	// AnnotationPreemptionDelay is for how long a pod evicts and moves nothing, as a
	// job's preemptionDelay: "5m".
	AnnotationPreemptionDelay = "berth.dev/preemption-delay"
	// LabelInstanceType is what Placement.InstanceType asks for.
	LabelInstanceType = "node.kubernetes.io/instance-type"
)
