package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Model is a model to serve. Each replica becomes a job, model/NAME-0, model/NAME-1, …,
// which takes the first form that fits: one device, several devices of a node, several
// nodes, some layers in the memory of the node, or no device.
type Model struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is which model is served, how, and where.
	Spec ModelSpec `json:"spec,omitempty"`
	// Status is what was chosen for the model, and what runs.
	Status ModelStatus `json:"status,omitempty"`
}

// ModelSpec is which model is served, how, and where.
type ModelSpec struct {
	// Replicas is the number of replicas, from 0 to 10000; 1 unless given.
	Replicas *int `json:"replicas,omitempty"`
	// Backend is vllm, sglang, mindie, voxbox, llamacpp or custom. The default is llamacpp for
	// GGUF files, voxbox for presets of speech models, and vllm for all other models.
	Backend string `json:"backend,omitempty"`
	// BackendVersion is the version of the backend, such as 0.9.1. The default is the newest
	// version that is known.
	BackendVersion string `json:"backendVersion,omitempty"`
	// Source is where the model is read from.
	Source ModelSource `json:"source,omitempty"`
	// Context is the number of tokens that a sequence may have. The default is the maximum
	// of the model. If no node of the cluster can hold that many, the default is 32768.
	Context int `json:"context,omitempty"`
	// Sequences is the number of sequences that the cache must hold at once, each with a
	// full context; 1 unless given.
	Sequences int `json:"sequences,omitempty"`
	// BatchTokens is the number of tokens that the model processes in one step
	// (max_num_batched_tokens of vllm). The default is the backend's, which may depend on its
	// version and on the device.
	BatchTokens int `json:"batchTokens,omitempty"`
	// MaxSequences is the number of sequences that the server processes at once at most
	// (max_num_seqs of vllm). It determines the memory for sampling, and not the size of the
	// KV cache. The default is the backend's.
	MaxSequences int `json:"maxSequences,omitempty"`
	// Eager is set if the server captures no graphs (enforce_eager of vllm).
	Eager bool `json:"eager,omitempty"`
	// DType is the type of the numbers of weights that are not quantised: auto (the default),
	// bfloat16, float16 or float32. With auto, servers load numbers of 32 bits as 16 bits.
	DType string `json:"dtype,omitempty"`
	// Quantization is how the server quantises weights as it loads them: fp8, int8 or
	// bitsandbytes. Weights that are already quantised in the files stay as they are.
	Quantization string `json:"quantization,omitempty"`
	// GPUMemoryUtilization is the fraction of each device that vllm, sglang and mindie
	// claim: above 0 and at most 1, for sglang less than 1. The default is the backend's.
	// Other backends claim as many bytes as they need, and do not have this field.
	GPUMemoryUtilization *resource.Quantity `json:"gpuMemoryUtilization,omitempty"`
	// Parallelism is how a replica is divided among devices.
	Parallelism *Parallelism `json:"parallelism,omitempty"`
	// KVCacheBits is the size of a number in the KV cache: 16, 8 or 4 bits. The default is 16,
	// or 8 if the files have scales for such a cache and the server uses them.
	KVCacheBits int `json:"kvCacheBits,omitempty"`
	// MicroBatch is how many tokens llamacpp computes at once, as its --ubatch-size; 512 unless
	// given. Other backends do not have this field.
	MicroBatch int `json:"microBatch,omitempty"`
	// FlashAttention is whether llamacpp uses flash attention, as its --flash-attn; true unless
	// given. Without it, attention takes memory for each pair of tokens. Other backends do not
	// have this field.
	FlashAttention *bool `json:"flashAttention,omitempty"`
	// FullWindowCache is whether llamacpp caches the whole context in layers that look back
	// only a window, as its --swa-full; false unless given. Other backends do not have this
	// field.
	FullWindowCache bool `json:"fullWindowCache,omitempty"`
	// Draft is a small model for speculative decoding. It is loaded beside the model.
	Draft *ModelSource `json:"draft,omitempty"`
	// Adapters are LoRA adapters that are loaded beside the model.
	Adapters []Adapter `json:"adapters,omitempty"`
	// Memory replaces estimates by known amounts.
	Memory *ModelMemory `json:"memory,omitempty"`
	// Resources are requested by each task: cpu, memory and any other resource that nodes
	// count.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Placement is where replicas are placed.
	Placement ModelPlacement `json:"placement,omitempty"`

	// Queue is the queue that the model is charged to; "default" unless given.
	Queue string `json:"queue,omitempty"`
	// SchedulerName is the name of the profile that decides about the replicas. It has the
	// meaning of schedulerName of a Job.
	SchedulerName string `json:"schedulerName,omitempty"`
	// Priority is the priority of the replicas. It has the meaning of priority of a Job.
	Priority int32 `json:"priority,omitempty"`
	// Preemptible models may be evicted for other jobs. The default is that of a Job.
	Preemptible *bool `json:"preemptible,omitempty"`
	// StaleGrace is how long a replica may run below its minimum. It has the meaning of
	// staleGrace of a Job.
	StaleGrace *metav1.Duration `json:"staleGrace,omitempty"`
	// PreemptionDelay is how long a replica evicts and moves no other task. It has the
	// meaning of preemptionDelay of a Job.
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
	// Isolation is how strictly the tasks are separated from other tasks.
	Isolation *Isolation `json:"isolation,omitempty"`
	// Tolerations are the taints of nodes that all tasks tolerate.
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// Server is how the server of a replica is started. Only berth-controller uses it.
	Server *ModelServer `json:"server,omitempty"`
	// Template is a PodTemplateSpec of Kubernetes, which is merged into the template of the
	// pods of the replicas as a strategic merge patch. The container of the server is named
	// server. docs/serving.md lists the fields that it must not set, because Berth decides about
	// them. Only berth-controller uses it.
	Template *runtime.RawExtension `json:"template,omitempty"`
}

// ModelServer is how the server of a replica is started.
type ModelServer struct {
	// Image is the image of the container. The default is the image that the project of the
	// backend publishes, in the version backendVersion. It is required for the backends custom,
	// mindie and voxbox.
	Image string `json:"image,omitempty"`
	// Command replaces the command and all arguments that Berth would set. In its texts,
	// $(BERTH_MODEL), $(BERTH_TENSOR_PARALLEL), $(BERTH_PIPELINE_PARALLEL),
	// $(BERTH_DATA_PARALLEL), $(BERTH_CONTEXT), $(BERTH_PORT) and $(BERTH_NODES) are replaced by
	// the values of the form, and in replicas of several pods also $(BERTH_LEADER),
	// $(BERTH_NODE_RANK) and $(BERTH_POD_IP).
	Command []string `json:"command,omitempty" strict:"lines"`
	// Args are added to the arguments that Berth sets.
	Args []string `json:"args,omitempty" strict:"lines"`
	// Port is the port at which the server answers requests, from 1 to 65535. The default is
	// the backend's.
	Port int32 `json:"port,omitempty"`
	// Distribution is how a vllm server is divided over several nodes: Ray, or Native (the
	// default), which means the flags --nnodes and --node-rank of vllm. Versions before 0.11.1
	// have Ray only.
	Distribution string `json:"distribution,omitempty"`
	// Cache is the volume that the files of models are kept on.
	Cache *ModelCache `json:"cache,omitempty"`
	// TokenSecret is the secret with the token for the Hugging Face Hub. The server gets it as
	// the variable HF_TOKEN; Berth does not read it.
	TokenSecret *SecretKey `json:"tokenSecret,omitempty"`
	// ImagePullSecrets are the names of the secrets with which images are pulled.
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// ModelCache is a volume for the files of models: either claim or hostPath.
type ModelCache struct {
	// Claim is the name of a PersistentVolumeClaim in the namespace of the model.
	Claim string `json:"claim,omitempty"`
	// HostPath is the absolute path of a directory of the nodes.
	HostPath string `json:"hostPath,omitempty"`
	// MountPath is where the volume is mounted; /models unless given.
	MountPath string `json:"mountPath,omitempty"`
}

// SecretKey is a key of a secret in the namespace of the model.
type SecretKey struct {
	// Name is the name of the secret.
	Name string `json:"name"`
	// Key is the key of the secret; token unless given.
	Key string `json:"key,omitempty"`
}

// ModelSource is where the model is read from: one of preset, gguf, huggingFace,
// localPath and config. No source is needed if memory.device or memory.total is given.
type ModelSource struct {
	// Preset is the name of a preset, such as llama-3.1-8b.
	Preset string `json:"preset,omitempty"`
	// GGUF is the path of a GGUF file, relative to the manifest. Its header is read. For a
	// split model, it is any one of the files.
	GGUF string `json:"gguf,omitempty"`
	// HuggingFace is the path of a directory with config.json and safetensors files, relative
	// to the manifest. The headers of the files are read.
	HuggingFace string `json:"huggingFace,omitempty"`
	// LocalPath is the path of a GGUF file or of such a directory on the nodes. If the path
	// exists on this machine too, it is read.
	LocalPath string `json:"localPath,omitempty"`
	// Config is the text of the config.json that is published with the model, of 512 KiB at
	// most. No file is read. It needs weights beside it.
	Config string `json:"config,omitempty" strict:"lines"`
	// Weights is how large all safetensors files of the model are together. It is allowed only
	// beside config.
	Weights *resource.Quantity `json:"weights,omitempty"`
	// Repository is the name of the repository on the Hugging Face Hub from which the server
	// loads the model, such as Qwen/Qwen3-8B. The default is that of the preset. It is needed
	// beside config on Kubernetes.
	Repository string `json:"repository,omitempty"`
	// Files is the name of the model's files in status.files of nodes. The default is the
	// name of the preset, or the path as it is written, or the repository.
	Files string `json:"files,omitempty"`
}

// Parallelism is how a replica is divided among devices. Unless given, the values that
// need the fewest devices are chosen; but if only tensor is given, a replica on one node has one
// stage. It is not allowed with unit Node, where a replica
// takes all devices of its nodes, nor for a model that is divided layer by layer.
type Parallelism struct {
	// Tensor is the number of devices that each layer is divided among. It must divide the
	// number of attention heads and the size of the vocabulary, which vllm and sglang pad to a
	// multiple of 64. These devices are on one node, or with distributed on whole nodes.
	Tensor int `json:"tensor,omitempty"`
	// Pipeline is the number of stages that the layers are divided into.
	Pipeline int `json:"pipeline,omitempty"`
	// Data is the number of data-parallel ranks of a replica, with vllm and sglang. Each rank
	// holds a whole copy of the model on tensor × pipeline devices of one node, except that
	// vllm divides the experts of a mixture over all ranks. With distributed, ranks may be on
	// different nodes.
	Data int `json:"data,omitempty"`
	// Expert divides the experts of a mixture over tensor × data devices, so that each device
	// holds whole experts.
	Expert bool `json:"expert,omitempty"`
}

// Adapter is a LoRA adapter. It has either path or memory.
type Adapter struct {
	// Name is the name of the adapter.
	Name string `json:"name"`
	// Path is the path of its directory, relative to the manifest. Its headers are read.
	Path string `json:"path,omitempty"`
	// Memory is what the adapter takes of each device.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// ModelMemory replaces estimates of memory. It has at most one of device and total.
type ModelMemory struct {
	// Device is what a replica needs of each of its devices.
	Device *resource.Quantity `json:"device,omitempty"`
	// Total is what a replica needs of all its devices together.
	Total *resource.Quantity `json:"total,omitempty"`
	// Host is what a replica needs of the memory of the node, also without devices.
	Host *resource.Quantity `json:"host,omitempty"`
}

// ModelPlacement is where replicas are placed.
type ModelPlacement struct {
	// Strategy is Pack (the default) or Spread. Binpack means Pack.
	Strategy string `json:"strategy,omitempty"`
	// Unit is Device (the default) or Node. With Node, all replicas take whole nodes of one
	// group, and no two replicas share a node.
	Unit string `json:"unit,omitempty"`
	// Cells are the cells to try, in order. Unless given, any node is allowed.
	Cells []string `json:"cells,omitempty"`
	// NodeSelector lists the labels that nodes must have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Devices are the only devices that may be used, written as node:type:index, such as
	// gpu-1:cuda:0. The index counts the devices of that type on the node, from 0. Unless
	// parallelism or devicesPerReplica is given, all of them are used: each replica gets an
	// equal number of them, or the fewest that it needs if the number of devices is not a
	// multiple of replicas.
	Devices []string `json:"devices,omitempty"`
	// DevicesPerReplica is the number of devices of a replica. The default is the fewest
	// that hold it.
	DevicesPerReplica int `json:"devicesPerReplica,omitempty"`
	// Partition is the MIG profile of the slice that a replica takes, such as 1g.10gb. A
	// replica takes one slice. Unless given, a replica takes whole devices, or the slice of
	// the smallest profile that holds it.
	Partition string `json:"partition,omitempty"`
	// Distributed allows a replica to be divided over several nodes. By default a replica is
	// divided over several nodes if the backend supports it and no single node can hold the
	// replica.
	Distributed *bool `json:"distributed,omitempty"`
	// CPUOffload allows some layers, or the whole model, in the memory of the node, if
	// the backend supports it.
	CPUOffload bool `json:"cpuOffload,omitempty"`
	// InstanceType is the instance type of the nodes that are used, and of the nodes that a
	// provisioner must create. It requires unit Node.
	InstanceType string `json:"instanceType,omitempty"`
	// DeviceLayers is how many layers of a GGUF model are on devices, as --n-gpu-layers of
	// llama.cpp: the last ones, of which the output layer is one. The other layers are in the
	// memory of the node. With 0, no device is used. Unless given, all layers are on devices,
	// or with cpuOffload as many as fit.
	DeviceLayers *int `json:"deviceLayers,omitempty"`
}

// ModelStatus is what was chosen for the model and what runs.
type ModelStatus struct {
	// Group is the node group that was chosen for all replicas, with unit Node.
	Group *ModelGroup `json:"group,omitempty"`
	// Replicas are the replicas that exist, whether or not they run.
	Replicas []ModelReplica `json:"replicas,omitempty"`

	// The following fields are written on Kubernetes only.

	// ObservedGeneration is the metadata.generation of the spec that berth-controller used last.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Admitted, GroupSelected (with unit Node), NodesClaimed (with instanceType),
	// Placed and Ready. Each has a reason code and the sentence that "berth why" begins with.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// CurrentReplicas is the number of replicas that exist.
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// ReadyReplicas is the number of replicas that answer requests.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Selector selects the pods of the model, as a text.
	Selector string `json:"selector,omitempty"`
	// GroupName is the name of the node group, such as "NVIDIA-L4 × 2, 24 GiB each".
	GroupName string `json:"groupName,omitempty"`
	// NodesPerReplica is the number of nodes of a replica. If replicas have different numbers,
	// it is the largest.
	NodesPerReplica int32 `json:"nodesPerReplica,omitempty"`
	// Estimate is how much memory a replica needs in the first form.
	Estimate *ModelEstimate `json:"estimate,omitempty"`
	// Workloads are the Deployments and LeaderWorkerSets of the model.
	Workloads []ModelWorkload `json:"workloads,omitempty"`
}

// Conditions of a Model.
const (
	ConditionAdmitted      = "Admitted"
	ConditionGroupSelected = "GroupSelected"
	ConditionNodesClaimed  = "NodesClaimed"
	ConditionPlaced        = "Placed"
	ConditionReady         = "Ready"
)

// ModelEstimate is how much memory a replica needs.
type ModelEstimate struct {
	// Form is the form that the figures are for, such as 2 devices (tp 2).
	Form string `json:"form"`
	// PerDevice is how much memory it needs of each device.
	PerDevice resource.Quantity `json:"perDevice"`
	// Parts are the parts of perDevice.
	Parts []MemoryPart `json:"parts,omitempty"`
	// Assumed lists what was assumed.
	Assumed []string `json:"assumed,omitempty"`
}

// MemoryPart is a part of the memory that a replica needs of each device.
type MemoryPart struct {
	// Name is weights, KV cache, activations or another part.
	Name string `json:"name"`
	// Memory is its size.
	Memory resource.Quantity `json:"memory"`
}

// ModelWorkload is an object that runs replicas of a model.
type ModelWorkload struct {
	// Kind is Deployment or LeaderWorkerSet.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Form is the form of its replicas.
	Form string `json:"form,omitempty"`
	// Replicas is how many replicas it should run.
	Replicas int32 `json:"replicas"`
}

// ModelGroup names a node group, and how many of its nodes a replica takes.
type ModelGroup struct {
	// Product is the product of the devices, such as NVIDIA-L4.
	Product string `json:"product"`
	// Count is the number of devices of a node.
	Count int `json:"count"`
	// Memory is the memory of each device.
	Memory resource.Quantity `json:"memory"`
	// Resource is the resource name of the devices; nvidia.com/gpu unless given.
	Resource string `json:"resource,omitempty"`
	// Sharing is set if the devices are shared.
	Sharing *Sharing `json:"sharing,omitempty"`
	// NodesPerReplica is the number of nodes that each replica takes, from 1 to 64.
	NodesPerReplica int `json:"nodesPerReplica"`
}

// ModelReplica is a replica that exists.
type ModelReplica struct {
	// Replica is the number of the replica, counted from 0.
	Replica int `json:"replica"`
	// State is Running, Starting or Failed. Unless given, a replica counts as running if all
	// its tasks run.
	State string `json:"state,omitempty"`
	// Created is when the replica was requested. On Kubernetes, and by default, it is when the model
	// was created.
	Created *metav1.Time `json:"created,omitempty"`
	// Pods are the names of its pods, on Kubernetes.
	Pods []string `json:"pods,omitempty"`
	// Form is the name of the form that the replica took. The default is the first one that
	// has all placed tasks.
	Form string `json:"form,omitempty"`
	// Placements are where tasks of the replica run, or how they ended.
	Placements []TaskPlacement `json:"placements,omitempty"`
	// TornSince is the time since which the replica has run below its minimum, as for a Job.
	TornSince *metav1.Time `json:"tornSince,omitempty"`
	// Evicted is when a task of the replica was last evicted, as for a Job.
	Evicted *metav1.Time `json:"evicted,omitempty"`
	// OffloadedLayers is how many of the TotalLayers are on devices.
	OffloadedLayers int `json:"offloadedLayers,omitempty"`
	// TotalLayers is the number of layers of the model, if it is divided layer by layer.
	TotalLayers int `json:"totalLayers,omitempty"`
}
