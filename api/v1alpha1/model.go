package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Model is a model to serve. Each replica becomes a job, model/NAME-0,
// model/NAME-1, …, which takes the first form that fits: one device, several
// devices of a node, several nodes, layers partly in the node's memory, no device.
type Model struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ModelSpec   `json:"spec,omitempty"`
	Status ModelStatus `json:"status,omitempty"`
}

// ModelSpec is what to serve, how, and where.
type ModelSpec struct {
	// Replicas to serve; 1 unless given.
	Replicas *int `json:"replicas,omitempty"`
	// Backend is vllm, sglang, mindie, voxbox, llamacpp or custom; llamacpp for
	// GGUF files and vllm for everything else unless given.
	Backend string `json:"backend,omitempty"`
	// BackendVersion, such as 0.9.1; the newest that is known unless given.
	BackendVersion string      `json:"backendVersion,omitempty"`
	Source         ModelSource `json:"source"`
	// Context is how many tokens a sequence may have; as many as the model can unless given.
	Context int `json:"context,omitempty"`
	// Sequences that the cache must hold at once, each with a full context; 1 unless given.
	Sequences int `json:"sequences,omitempty"`
	// BatchTokens go through the model in one step; the backend's default unless given.
	BatchTokens int `json:"batchTokens,omitempty"`
	// GPUMemoryUtilization is the part of each device that vllm, sglang and mindie
	// claim: above 0 and at most 1; the backend's default unless given.
	GPUMemoryUtilization *resource.Quantity `json:"gpuMemoryUtilization,omitempty"`
	Parallelism          *Parallelism       `json:"parallelism,omitempty"`
	// KVCacheBits is 16, 8 or 4: what a cached number takes; 16 unless given.
	KVCacheBits int `json:"kvCacheBits,omitempty"`
	// Draft is a small model that guesses ahead; it is loaded beside the model.
	Draft *ModelSource `json:"draft,omitempty"`
	// Adapters are LoRA adapters that are loaded beside the model.
	Adapters []Adapter `json:"adapters,omitempty"`
	// Memory that is known better than it can be estimated.
	Memory *ModelMemory `json:"memory,omitempty"`
	// Resources of each task: cpu, memory and whatever else nodes count.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	Placement ModelPlacement      `json:"placement,omitempty"`

	// Queue that pays for it; "default" unless given.
	Queue    string `json:"queue,omitempty"`
	Priority int32  `json:"priority,omitempty"`
	// Preemptible models may be evicted for others. The default is as for jobs.
	Preemptible *bool `json:"preemptible,omitempty"`
	// StaleGrace is how long a replica may run below its minimum, as for jobs.
	StaleGrace *metav1.Duration `json:"staleGrace,omitempty"`
	// PreemptionDelay is for how long a replica evicts and moves nothing, as for jobs.
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
	Isolation       *Isolation       `json:"isolation,omitempty"`
	Tolerations     []Toleration     `json:"tolerations,omitempty"`
}

// ModelSource says where a model comes from: one of preset, gguf, huggingFace
// and localPath. None of them is needed where memory is given.
type ModelSource struct {
	// Preset by its name, such as llama-3.1-8b.
	Preset string `json:"preset,omitempty"`
	// GGUF file, whose header is read; relative to the manifest. Of a split model any part.
	GGUF string `json:"gguf,omitempty"`
	// HuggingFace directory with config.json and safetensors, whose headers are
	// read; relative to the manifest.
	HuggingFace string `json:"huggingFace,omitempty"`
	// LocalPath is a GGUF file or such a directory that lies on the nodes; it is
	// read where it is found here too.
	LocalPath string `json:"localPath,omitempty"`
	// Files is the name of the model's files in status.files of nodes; the
	// preset, or the path as it is written, unless given.
	Files string `json:"files,omitempty"`
}

// Parallelism is how a replica is divided. What is not given is chosen: the
// fewest devices that hold it.
type Parallelism struct {
	// Tensor divides every layer; it must divide the attention heads and the vocabulary.
	Tensor int `json:"tensor,omitempty"`
	// Pipeline divides the layers into stages.
	Pipeline int `json:"pipeline,omitempty"`
}

// Adapter is a LoRA adapter.
type Adapter struct {
	Name string `json:"name"`
	// Path of its directory, relative to the manifest; its headers are read.
	Path string `json:"path,omitempty"`
	// Memory it takes of each device, where it is not read.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// ModelMemory overrides estimates.
type ModelMemory struct {
	// Device is what a replica needs of each device it is on.
	Device *resource.Quantity `json:"device,omitempty"`
	// Total is what a replica needs of all its devices together.
	Total *resource.Quantity `json:"total,omitempty"`
	// Host is what it needs of the node's memory.
	Host *resource.Quantity `json:"host,omitempty"`
}

// ModelPlacement is where replicas go.
type ModelPlacement struct {
	// Strategy is Pack (the default) or Spread; Binpack is read as Pack.
	Strategy string `json:"strategy,omitempty"`
	// Unit is Device (the default) or Node: whole nodes of one group for all
	// replicas, never two replicas on one.
	Unit string `json:"unit,omitempty"`
	// Cells to try, in order. None: any node will do.
	Cells []string `json:"cells,omitempty"`
	// NodeSelector is labels that nodes must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Devices are the only ones that may be taken, written node:type:index, such as gpu-1:cuda:0.
	Devices []string `json:"devices,omitempty"`
	// DevicesPerReplica is how many a replica takes; the fewest that hold it unless given.
	DevicesPerReplica int `json:"devicesPerReplica,omitempty"`
	// Distributed lets a replica span several nodes.
	Distributed bool `json:"distributed,omitempty"`
	// CPUOffload lets layers, or all of the model, be in the node's memory where
	// the backend can.
	CPUOffload bool `json:"cpuOffload,omitempty"`
	// InstanceType of the nodes to use, and to ask a provisioner for; it needs unit Node.
	InstanceType string `json:"instanceType,omitempty"`
}

// ModelStatus says what was chosen and what runs.
type ModelStatus struct {
	// Group that was chosen for all replicas, with unit Node.
	Group *ModelGroup `json:"group,omitempty"`
	// Replicas that are there, whether or not they run.
	Replicas []ModelReplica `json:"replicas,omitempty"`
}

// ModelGroup names a group of nodes, and how many of them a replica takes.
type ModelGroup struct {
	Product string `json:"product"`
	// Count of devices of a node.
	Count int `json:"count"`
	// Memory of each device.
	Memory resource.Quantity `json:"memory"`
	// Resource that they are counted under; nvidia.com/gpu unless given.
	Resource string `json:"resource,omitempty"`
	// Sharing, where devices are shared.
	Sharing         *Sharing `json:"sharing,omitempty"`
	NodesPerReplica int      `json:"nodesPerReplica"`
}

// ModelReplica is a replica that is there.
type ModelReplica struct {
	// Replica by its number.
	Replica int `json:"replica"`
	// State is Running, Starting or Failed; Running unless given, where it has placements.
	State string `json:"state,omitempty"`
	// Created is when it was asked for; with the model unless given.
	Created *metav1.Time `json:"created,omitempty"`
	// Form that it took, by its name; the first one that has all the placed tasks unless given.
	Form       string          `json:"form,omitempty"`
	Placements []TaskPlacement `json:"placements,omitempty"`
	// TornSince is since when it has run below its minimum, as for jobs.
	TornSince *metav1.Time `json:"tornSince,omitempty"`
	// Evicted is when a task of it was evicted last, as for jobs.
	Evicted *metav1.Time `json:"evicted,omitempty"`
	// OffloadedLayers of TotalLayers are on devices.
	OffloadedLayers int `json:"offloadedLayers,omitempty"`
	TotalLayers     int `json:"totalLayers,omitempty"`
}
