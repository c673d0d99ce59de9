package v1alpha1

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node is a machine that offers resources and devices.
type Node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeSpec   `json:"spec,omitempty"`
	Status NodeStatus `json:"status,omitempty"`
}

// NodeSpec says what a node has and what it promises.
type NodeSpec struct {
	// Cell is the set of nodes it is scheduled with; the label berth.dev/cell says the same.
	Cell string `json:"cell,omitempty"`
	// Resources are what tasks may use: cpu, memory and anything else that is
	// counted. Devices are not counted here but listed under devices.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Devices are the accelerators, one entry for each kind. Where there are none,
	// the labels of GPU Feature Discovery are read.
	Devices DeviceSets `json:"devices,omitempty"`
	// DeviceResource is the name devices are counted under; nvidia.com/gpu, or
	// what the devices' type is known by.
	DeviceResource string `json:"deviceResource,omitempty"`
	// Isolation is what the node can honour; one that says nothing supports BestEffort and Shared only.
	Isolation *NodeIsolation `json:"isolation,omitempty"`
	Taints    []Taint        `json:"taints,omitempty"`
	// Unschedulable nodes keep what runs and take nothing new.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// UnifiedMemory is set where devices and tasks share one memory, the node's:
	// devices then say how much of it they can use.
	UnifiedMemory bool `json:"unifiedMemory,omitempty"`
}

// NodeStatus is how a node is just now.
type NodeStatus struct {
	// State is READY (the default) or anything else, such as NOT_READY or
	// MAINTENANCE: then it keeps what runs and takes nothing new.
	State string `json:"state,omitempty"`
	// Files are models, drafts and paths that are there, and how far each has
	// come: READY, DOWNLOADING, ERROR, …
	Files map[string]string `json:"files,omitempty"`
	// FreeMemory of devices as a reading found it, by place in the node's list of devices. Where it
	// is less than what tasks leave, the reading holds.
	FreeMemory []resource.Quantity `json:"freeMemory,omitempty"`
}

// DeviceSets lists devices by kind. A single entry may be written without the list.
type DeviceSets []DeviceSet

// OneOrMany tells the decoder that one entry may stand without its list.
func (DeviceSets) OneOrMany() {}

// UnmarshalJSON reads one entry or a list of them.
func (d *DeviceSets) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
		var one DeviceSet
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*d = DeviceSets{one}
		return nil
	}
	return json.Unmarshal(data, (*[]DeviceSet)(d))
}

// DeviceSet is so many devices of one kind.
type DeviceSet struct {
	Product string `json:"product,omitempty"`
	// Count of physical devices.
	Count int `json:"count,omitempty"`
	// Memory of each.
	Memory resource.Quantity `json:"memory,omitempty"`
	// Reserved is memory of each that no task gets.
	Reserved *resource.Quantity `json:"reserved,omitempty"`
	// Type is the runtime they speak: cuda (the default), rocm, cann, …
	Type string `json:"type,omitempty"`
	// UUIDs, NUMA and Links, where given, have one entry for each device.
	UUIDs []string `json:"uuids,omitempty"`
	NUMA  []int    `json:"numa,omitempty"`
	Links []string `json:"links,omitempty"`
	// Link is the NVLink domain that all of them are in.
	Link string `json:"link,omitempty"`
	// Partitions replace every device by slices of it.
	Partitions []Partition `json:"partitions,omitempty"`
	// Sharing makes several devices of each.
	Sharing *Sharing `json:"sharing,omitempty"`
	// Lost devices, by their place in this entry, keep their place and take nothing new.
	Lost []int `json:"lost,omitempty"`
}

// Partition is so many slices of one MIG profile on each device.
type Partition struct {
	Profile string `json:"profile"`
	// Count of slices on each device; 1 unless given.
	Count *int `json:"count,omitempty"`
	// Memory of each slice.
	Memory resource.Quantity `json:"memory"`
}

// Sharing is how one device is offered several times.
type Sharing struct {
	// Strategy is time-slicing (everybody sees the whole memory) or mps (memory is divided).
	Strategy string `json:"strategy"`
	// Replicas of each device.
	Replicas int `json:"replicas"`
}

// NodeIsolation is what a node promises it can honour.
type NodeIsolation struct {
	// CPU classes beside BestEffort: WholeCore, StrictIsolated.
	CPU []string `json:"cpu,omitempty"`
	// GPU classes beside Shared: SessionExclusive, DeviceExclusive, PartitionExclusive.
	GPU []string `json:"gpu,omitempty"`
	// ShareMode is fractional (the default) or exclusive: no device is ever shared.
	ShareMode string `json:"shareMode,omitempty"`
	// IsolableCores is how many cores StrictIsolated tasks may hold together.
	IsolableCores int64 `json:"isolableCores,omitempty"`
}

// Taint keeps tasks off a node unless they tolerate it.
type Taint struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect string `json:"effect"`
}
