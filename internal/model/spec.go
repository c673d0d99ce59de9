// Package model turns a model to serve into jobs, one for each replica. The alternatives
// of a job are the forms that a replica may have, in the order in which the backend
// prefers them. The engine decides which form is placed where, and which replicas are
// retired when there are too many.
package model

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Spec is a model to serve. The caller has checked each field on its own.
type Spec struct {
	ID        string // kind and name: "model/chat"
	Namespace string
	Labels    map[string]string
	Created   int64
	Replicas  int

	Backend *backend.Backend
	Version string

	// Source is nil if only Memory is known.
	Source *estimate.Model
	Draft  *estimate.Model
	// Adapters is the memory that the adapters take of each device.
	Adapters cluster.Bytes
	Files    cluster.Files
	// Serving is how the model is served. A parallelism of 0 is chosen by Convert.
	Serving estimate.Serving
	// DType and Quantization are the settings from which Serving.WeightBits is made.
	DType, Quantization string
	// Utilization is the share of each device that the server may use; 0: the backend's
	// default.
	Utilization cluster.Milli
	Memory      Memory
	Resources   cluster.Resources // that each task requests

	Place Place

	Queue           string
	Profile         string // the name of the profile that decides about the replicas; "" for the default
	Priority        int32
	Preemptible     bool
	StaleGrace      *int64 // copied to the job of each replica
	PreemptionDelay int64
	Remarks         []string // of the reader of the spec; Convert adds its own remarks after them
	Isolation       cluster.Isolation
	Tolerations     []cluster.Toleration

	// Group is the node group that was chosen for all replicas earlier, and
	// NodesPerReplica the nodes that each takes there; nil: not chosen yet.
	Group           *cluster.GroupKey
	NodesPerReplica int
	// Existing lists the replicas that exist.
	Existing []Replica
}

// Memory is what the spec sets instead of an estimate; 0: it is not set. Device is per
// device, Total for all devices of a replica, Host per node.
type Memory struct{ Device, Total, Host cluster.Bytes }

// known reports whether the spec sets the memory that devices must give.
func (m Memory) known() bool { return m.Device > 0 || m.Total > 0 }

// can reports whether the backend supports the strategy.
func (s *Spec) supports(x backend.Strategy) bool {
	return s.Backend != nil && slices.Contains(s.Backend.Strategies, x)
}

// layered reports whether the model is divided by layers: its backend can offload
// layers, its file lists them, and the spec does not set the memory.
func (s *Spec) layered() bool {
	return s.supports(backend.Offload) && !s.Memory.known() && s.Source != nil && s.Source.Layered != nil
}

// architecture returns the architecture of the model; nil: not known.
func (s *Spec) architecture() *estimate.Architecture {
	if s.Source == nil {
		return nil
	}
	return s.Source.Architecture
}

// ranks returns the number of data-parallel ranks of a replica.
func (s *Spec) ranks() int { return max(1, s.Serving.Data) }

// Place says where replicas may be placed.
type Place struct {
	Strategy    cluster.Strategy
	WholeNodes  bool
	Cells       []string
	Selector    map[string]string
	Selected    []cluster.DeviceID // sorted
	Devices     int                // of one replica; 0: chosen by Convert
	Partition   string             // the MIG profile of the slice of a replica; "": any, or none
	Distributed bool
	// IfNeeded is set if several nodes are only used if no single node can hold a replica.
	IfNeeded     bool
	Offload      bool
	InstanceType string
	// DeviceLayers is how many layers of a model that is divided by layers must be on devices,
	// with the output layer; nil: chosen by the engine.
	DeviceLayers *int
}

// Replica is a replica that exists.
type Replica struct {
	Number                     int
	Created                    int64
	Health                     cluster.Health
	Offload                    cluster.Offload
	BelowMinimumSince, Evicted int64 // copied to its job
	// Tasks maps the name of each running task to its number of devices, -1 if that is
	// not known; nil: the replica does not run.
	Tasks map[string]int
}

// Problem is an error about one field of a spec.
type Problem struct {
	Field   []any // the path in the manifest: "spec", "parallelism", "tensor"
	Message string
}

func (p *Problem) Error() string { return p.Message }
