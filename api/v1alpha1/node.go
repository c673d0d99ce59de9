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

	// Spec is what the node offers to tasks.
	Spec NodeSpec `json:"spec,omitempty"`
	// Status is the current condition of the node.
	Status NodeStatus `json:"status,omitempty"`
}

// NodeSpec is what a node offers to tasks.
type NodeSpec struct {
	// Cell is the name of the set of nodes to which the node belongs, such as one cluster of
	// several. A job may list the cells that it may be placed in. The label berth.dev/cell
	// has the same meaning.
	Cell string `json:"cell,omitempty"`
	// Resources are what tasks may use: cpu, memory and any other resource that is
	// counted. Devices are listed under devices instead.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Devices are the accelerators, one entry for each kind. Unless given, they are
	// read from the labels of GPU Feature Discovery.
	Devices DeviceSets `json:"devices,omitempty"`
	// DeviceResource is the resource name under which devices are counted. The default is the
	// usual name for the type of the devices, or nvidia.com/gpu.
	DeviceResource string `json:"deviceResource,omitempty"`
	// Isolation is what isolation the node supports. Unless given, it supports BestEffort
	// and Shared only.
	Isolation *NodeIsolation `json:"isolation,omitempty"`
	// Taints keep tasks that do not tolerate them off the node.
	Taints []Taint `json:"taints,omitempty"`
	// Unschedulable nodes keep their running tasks and receive no new ones.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// UnifiedMemory is set if devices and tasks share the memory of the node. The memory of
	// a device is then the amount that it can use.
	UnifiedMemory bool `json:"unifiedMemory,omitempty"`
}

// NodeStatus is the current condition of a node.
type NodeStatus struct {
	// State is READY (the default) or another value, such as NOT_READY or MAINTENANCE. A
	// node that is not READY keeps its running tasks and receives no new ones.
	State string `json:"state,omitempty"`
	// Files lists models, drafts and paths on the node, each with its state: READY,
	// DOWNLOADING, ERROR, …
	Files map[string]string `json:"files,omitempty"`
	// FreeMemory is the measured free memory of each device, in the order of the node's list
	// of devices. If it is less than State accounts for, the measured value is used.
	FreeMemory []resource.Quantity `json:"freeMemory,omitempty"`
}

// DeviceSets lists devices by kind. A single entry may be written without a list.
type DeviceSets []DeviceSet

// OneOrMany tells the decoder that a single entry may be written without a list.
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

// DeviceSet is a number of devices of one kind.
type DeviceSet struct {
	// Product is the product of the devices, such as NVIDIA-L4. It is required.
	Product string `json:"product,omitempty"`
	// Count is the number of physical devices.
	Count int `json:"count,omitempty"`
	// Memory is the memory of each device.
	Memory resource.Quantity `json:"memory,omitempty"`
	// Reserved is the memory of each device that is not offered to tasks. It cannot be
	// combined with partitions or sharing.
	Reserved *resource.Quantity `json:"reserved,omitempty"`
	// Type is the runtime of the devices: cuda (the default), rocm, cann, …
	Type string `json:"type,omitempty"`
	// UUIDs has the UUID of each device. Unless given, UUIDs are made from the name of the
	// node and the number of the device.
	UUIDs []string `json:"uuids,omitempty"`
	// NUMA has the NUMA node of each device, or -1 if it is not known.
	NUMA []int `json:"numa,omitempty"`
	// PCIe has the PCIe root of each device, as resource.kubernetes.io/pcieRoot names it;
	// empty where it is not known.
	PCIe []string `json:"pcie,omitempty"`
	// Links has the NVLink domain of each device; empty where it is not known. Devices of one
	// domain are connected by NVLink, xGMI or the like.
	Links []string `json:"links,omitempty"`
	// Link is the NVLink domain of all devices of the entry, instead of links.
	Link string `json:"link,omitempty"`
	// Partitions replace each device by slices of it. They cannot be combined with sharing.
	Partitions []Partition `json:"partitions,omitempty"`
	// Sharing offers each device several times. All entries of a node must have the same
	// sharing.
	Sharing *Sharing `json:"sharing,omitempty"`
	// Lost lists devices that do not work, by their position in this entry, counted from 0.
	// They keep their index and receive no new tasks.
	Lost []int `json:"lost,omitempty"`
}

// Partition is a number of slices of one MIG profile on each device.
type Partition struct {
	// Profile is the MIG profile, such as 1g.10gb.
	Profile string `json:"profile"`
	// Count is the number of slices on each device; 1 unless given.
	Count *int `json:"count,omitempty"`
	// Memory is the memory of each slice.
	Memory resource.Quantity `json:"memory"`
}

// Sharing is how one device is offered several times.
type Sharing struct {
	// Strategy is time-slicing (each task sees the whole memory) or mps (the memory is divided).
	Strategy string `json:"strategy"`
	// Replicas is how many times each device is offered, at least 2.
	Replicas int `json:"replicas"`
}

// NodeIsolation is the isolation that a node supports.
type NodeIsolation struct {
	// CPU lists the classes that are supported besides BestEffort: WholeCore, StrictIsolated.
	CPU []string `json:"cpu,omitempty"`
	// GPU lists the classes that are supported besides Shared: SessionExclusive,
	// DeviceExclusive, PartitionExclusive.
	GPU []string `json:"gpu,omitempty"`
	// ShareMode is fractional (the default) or exclusive. With exclusive, devices are not shared.
	ShareMode string `json:"shareMode,omitempty"`
	// IsolableCores is the number of cores that StrictIsolated tasks may hold together.
	IsolableCores int64 `json:"isolableCores,omitempty"`
}

// Taint keeps tasks that do not tolerate it off a node.
type Taint struct {
	// Key is the key of the taint.
	Key string `json:"key"`
	// Value is the value of the taint; it may be empty.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect string `json:"effect"`
}
