// Package model turns a model to serve into jobs: one for each replica, with the
// forms it may take as alternatives, in the order in which its backend may be
// tried. The engine decides what fits where, and which replicas it evicts when there
// are too many.
package model

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Spec is a model to serve. The caller has checked each field by itself.
type Spec struct {
	ID        string // kind and name: "model/chat"
	Namespace string
	Labels    map[string]string
	Created   int64
	Replicas  int

	Backend *backend.Backend
	Version string

	// Source is nil where nothing is known but Memory.
	Source *estimate.Model
	Draft  *estimate.Model
	// Adapters is what they take of each device.
	Adapters cluster.Bytes
	Files    cluster.Files
	// Serve is how it is served; parallelism that is 0 is to be chosen.
	Serve estimate.Form
	// Utilization of each device; 0: the backend's own.
	Utilization cluster.Milli
	Memory      Memory
	Resources   cluster.Resources // of each task

	Place Place

	Queue           string
	Priority        int32
	Preemptible     bool
	StaleGrace      *int64 // as of the job of each replica
	PreemptionDelay int64
	Remarks         []string // that came with the spec
	Isolation       cluster.Isolation
	Tolerations     []cluster.Toleration

	// Group was chosen for all replicas before, with so many nodes for each; nil: not yet.
	Group           *cluster.GroupKey
	NodesPerReplica int
	There           []Replica
}

// Memory is what the spec says instead of an estimate; 0: it does not.
type Memory struct{ Device, Total, Host cluster.Bytes }

// known reports whether the spec says what devices must give.
func (m Memory) known() bool { return m.Device > 0 || m.Total > 0 }

// can reports whether the backend may be tried so.
func (s *Spec) can(x backend.Strategy) bool {
	return s.Backend != nil && slices.Contains(s.Backend.Strategies, x)
}

// layered reports whether the model is split layer by layer: its backend can
// offload layers, its file says what they are, and the spec says nothing else.
func (s *Spec) layered() bool {
	return s.can(backend.Offload) && !s.Memory.known() && s.Source != nil && s.Source.Layered != nil
}

// Place is where replicas may be placed.
type Place struct {
	Strategy     cluster.Strategy
	WholeNodes   bool
	Cells        []string
	Selector     map[string]string
	Selected     []cluster.DeviceID // sorted
	Devices      int                // of a replica; 0: to be chosen
	Distributed  bool
	Offload      bool
	InstanceType string
}

// Replica is one that is there already.
type Replica struct {
	Number        int
	Created       int64
	Health        cluster.Health
	Offload       cluster.Offload
	Torn, Evicted int64 // as of its job
	// Devices it runs on, node by node, for each of its tasks by name; nil: it does not run.
	Tasks map[string]int
}

// Problem is something wrong with a spec, and the field it is about.
type Problem struct {
	Field   []any // as in the manifest: "spec", "parallelism", "tensor"
	Message string
}

func (p *Problem) Error() string { return p.Message }
