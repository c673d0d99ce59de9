package wire

// NodeReport says what is on a node, what it could still take, and why pending workloads are not
// placed on it. The node is as it is at the end of the simulation.
type NodeReport struct {
	Node   string `json:"node"`
	Group  *Group `json:"group,omitempty"` // its node group; left out if it has no devices
	Cell   string `json:"cell,omitempty"`
	Status string `json:"status"` // ready, cordoned, or its phase
	// The taints that keep tasks from it unless they tolerate them, as key=value:effect.
	Taints    []string       `json:"taints,omitempty"`
	Resources []NodeResource `json:"resources"`
	// How many of its devices no task holds and that are not lost. A device that processes use
	// which Berth did not place counts as free.
	FreeDevices int        `json:"freeDevices"`
	Devices     int        `json:"devices"`
	Tasks       []NodeTask `json:"tasks"`             // in the order of workloads
	Pending     []NodeMiss `json:"pending,omitempty"` // in the order in which they were tried
	// How many more workloads are pending, of which it is not listed why.
	MorePending int `json:"morePending,omitempty"`
}

// NodeResource is an amount of a node, written as in manifests.
type NodeResource struct {
	Name     string `json:"name"`
	Capacity string `json:"capacity"`
	Free     string `json:"free"`
}

// NodeTask is a task on a node.
type NodeTask struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	Devices  []int  `json:"devices"` // indexes among all devices of the node
	// The devices by type and number, such as rocm:0; only on nodes with devices of several types.
	Names       []string `json:"deviceNames,omitempty"`
	Queue       string   `json:"queue"`
	Priority    int32    `json:"priority,omitempty"`
	Preemptible bool     `json:"preemptible,omitempty"`
	Status      string   `json:"status,omitempty"` // reserved or releasing; left out if it runs or is bound
}

// NodeMiss says why a pending workload is not placed on a node.
type NodeMiss struct {
	Workload string `json:"workload"`
	Plugin   string `json:"plugin,omitempty"`
	Reason   string `json:"reason"`
	Words    string `json:"words"`
}

// QueueReport says what a queue holds, what it is entitled to, and why its workloads are pending.
type QueueReport struct {
	Queue    string   `json:"queue"`
	Parent   string   `json:"parent,omitempty"`
	Tier     string   `json:"tier"`
	Children []string `json:"children,omitempty"` // only queues without children have workloads
	// What the queue and the queues above it hold of each resource, from the queue upwards.
	Standings []Standing    `json:"standings"`
	Limits    []QueueLimit  `json:"limits,omitempty"` // those of the queue and of the queues above it
	Placed    []QueueHolder `json:"placed"`           // the workloads of the queue and of the queues below it that hold anything, most devices first
	// The workloads that are pending, in the order in which they were tried.
	Pending []Waiting `json:"pending"`
}

// QueueLimit is a limit of a queue and how much of it is used.
type QueueLimit struct {
	Queue    string `json:"queue"`
	Resource string `json:"resource"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
}

// QueueHolder is a workload of a queue that holds devices.
type QueueHolder struct {
	Workload    string  `json:"workload"`
	Queue       string  `json:"queue"`
	Devices     float64 `json:"devices"`
	Priority    int32   `json:"priority,omitempty"`
	Preemptible bool    `json:"preemptible,omitempty"`
}

// Waiting is a pending workload and why it is pending.
type Waiting struct {
	Workload  string `json:"workload"`
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting cannot help
	Surplus   bool   `json:"surplus,omitempty"`
	Message   string `json:"message"`
}
