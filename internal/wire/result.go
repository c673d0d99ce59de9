package wire

import (
	"slices"
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Result is what berth simulate prints as JSON and YAML. It is API: fields are
// added, never renamed. Equal input gives equal bytes. Memory is written as in
// manifests ("80Gi"). The fields want and have are written for people ("38GiB",
// "2 devices", "500m cores").
type Result struct {
	Decisions []Decision `json:"decisions"` // in the order in which they were made
	Refusals  []Refusal  `json:"refusals"`  // in the order in which the jobs were tried
	// The rankings of the sets that had more replicas than are desired.
	Rankings []Ranking `json:"rankings,omitempty"`
	// What would help pending workloads, only with --cures. Workloads that are alike have one
	// entry.
	Cures []Cure `json:"cures,omitempty"`
	// Pending workloads for which it was not looked for what would help, because there are too
	// many.
	WithoutCures []string `json:"withoutCures,omitempty"`
}

// Cure is the cheapest change that was found with which a pending workload would be placed.
type Cure struct {
	Workload string `json:"workload"`
	// Other pending workloads with the same request, queue, priority and reason. It was not
	// looked for what would help them.
	Alike []string `json:"alike,omitempty"`
	// The change in a few words. It is left out if no change that was tried would help.
	Change string `json:"change,omitempty"`
	// The workloads that would be evicted if the change were made, and that are not evicted
	// without it.
	Evicts []string `json:"evicts,omitempty"`
	// The arguments of berth whatif that make the change. They are left out if the input is not
	// manifests and the change needs a field of a manifest.
	Arguments []string `json:"arguments,omitempty"`
}

// Decision is one task that is bound, nominated or evicted.
type Decision struct {
	Workload    string   `json:"workload"`
	Task        string   `json:"task"`
	Action      string   `json:"action"` // Bind, Nominate or Evict
	Node        string   `json:"node"`
	Devices     []Device `json:"devices"`
	Island      *Island  `json:"island,omitempty"` // the island of the devices; only on nodes with several
	Group       *Group   `json:"group,omitempty"`
	Alternative string   `json:"alternative,omitempty"`
	// The weighted mean of all scores of the node, 0 to 100. The field scores has the sum of
	// the scores of each plugin. Evictions have neither. The scores by which replicas are
	// retired are in rankings.
	Score      *float64           `json:"score,omitempty"`
	Scores     map[string]float64 `json:"scores,omitempty"`
	Candidates []Candidate        `json:"candidates,omitempty"` // best first, only with --explain
	// The fields groupScore and groupScores are the scores of the node group, for a workload
	// that takes whole nodes. The field groups has all groups that were feasible.
	GroupScore  *float64           `json:"groupScore,omitempty"`
	GroupScores map[string]float64 `json:"groupScores,omitempty"`
	Groups      []GroupCandidate   `json:"groups,omitempty"`  // best first, only with --explain
	For         string             `json:"for,omitempty"`     // the workload for which a task is evicted
	Reason      string             `json:"reason,omitempty"`  // why a task is evicted
	Landing     string             `json:"landing,omitempty"` // the node to which an evicted task moves
	PlanSearch  *PlanSearch        `json:"weighed,omitempty"` // how the plan of an eviction was found, only with --explain
	Layers      *Layers            `json:"layers,omitempty"`  // for a task with layers of a model
}

// Device is what a task holds of one device.
type Device struct {
	UUID  string `json:"uuid"`
	Index int    `json:"index"` // among all devices of the node
	// The type of the device and its number among the devices of that type, such as rocm:0;
	// only on nodes with devices of several types.
	Name     string  `json:"name,omitempty"`
	Memory   string  `json:"memory"`
	Fraction float64 `json:"fraction"`
	// How many layers are on the device, for a model that is divided by layers.
	Layers int `json:"layers,omitempty"`
}

// Island says how the devices of a task are connected: by what, and the name of that. The name is
// left out if the devices are in several islands.
type Island struct {
	Kind string `json:"kind"` // NVLink domain, PCIe root or NUMA node
	Name string `json:"name,omitempty"`
}

// NewIsland returns the island of the claimed devices; nil on a node without several islands.
func NewIsland(n *cluster.Node, claims []cluster.Claim) *Island {
	by, name, known := cluster.IslandOf(n, claims)
	if !known {
		return nil
	}
	return &Island{by.String(), name}
}

// Layers says how many layers of a task are on devices. The others are in the memory of the
// node.
type Layers struct {
	OnDevices int `json:"onDevices"`
	Total     int `json:"total"`
}

// NewLayers returns how many layers of the task are on the claimed devices; nil if it has no
// layers, or if it is not known which devices hold them.
func NewLayers(t *cluster.Task, claims []cluster.Claim) *Layers {
	if t == nil || t.Shape.Need.Layers == nil {
		return nil
	}
	l := t.Shape.Need.Layers
	out := &Layers{Total: l.Total + l.Outside}
	for _, c := range claims {
		out.OnDevices += c.Layers
	}
	if out.OnDevices == 0 {
		return nil
	}
	return out
}

// Group is a node group: nodes with the same devices.
type Group struct {
	Product  string `json:"product"`
	Count    int    `json:"count"`
	Memory   string `json:"memory"` // of each device
	Resource string `json:"resource"`
	Strategy string `json:"strategy,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

// Candidate is a node that was feasible.
type Candidate struct {
	Node   string             `json:"node"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"`
}

// GroupCandidate is a node group that was feasible, and the form that the workload would
// take on it.
type GroupCandidate struct {
	Group       Group              `json:"group"`
	Alternative string             `json:"alternative,omitempty"`
	Score       float64            `json:"score"`
	Scores      map[string]float64 `json:"scores"`
}

// DeviceNames returns the names of the claimed devices on their node: the type and the number
// among the devices of that type, such as rocm:0. It returns nil if all devices of the node
// have one type, so that their indexes name them as well.
func DeviceNames(n *cluster.Node, claims []cluster.Claim) []string {
	if !slices.ContainsFunc(n.Devices, func(d cluster.Device) bool { return d.Type != n.Devices[0].Type }) {
		return nil
	}
	var out []string
	for _, c := range claims {
		id := n.Devices[c.Device].ID
		out = append(out, id.Type+":"+strconv.Itoa(id.Index))
	}
	return out
}

// NewDevices converts claims of devices of the node.
func NewDevices(n *cluster.Node, claims []cluster.Claim) []Device {
	out := []Device{}
	names := DeviceNames(n, claims)
	for i, c := range claims {
		own := Device{
			UUID: n.Devices[c.Device].UUID, Index: c.Device,
			Memory: quantity.Exact(c.Memory), Fraction: float64(c.Milli) / float64(cluster.Whole), Layers: c.Layers,
		}
		if names != nil {
			own.Name = names[i]
		}
		out = append(out, own)
	}
	return out
}

// NewDecision converts a decision. State is the State after the decision. If all is true, the
// result has every candidate and how the plan of an eviction was found.
func NewDecision(state *cluster.State, d *engine.Decision, all bool) Decision {
	out := Decision{
		Workload: d.Task.Job, Task: d.Task.Name, Action: string(d.Action), Node: d.Node,
		Devices: []Device{}, Alternative: d.Alternative, For: d.For, Reason: string(d.Reason), Landing: d.Landing,
	}
	if n := state.Node(d.Node); n != nil {
		out.Devices = NewDevices(n, d.Claims)
		out.Island = NewIsland(n, d.Claims)
	}
	out.Layers = NewLayers(state.Task(d.Task), d.Claims)
	if d.Group != (cluster.GroupKey{}) {
		g := NewGroup(d.Group)
		out.Group = &g
	}
	if d.Action != engine.EvictTask {
		out.Score, out.Scores = NewScore(d.Score)
	}
	out.GroupScore, out.GroupScores = NewScore(d.GroupScore)
	if all {
		out.PlanSearch = NewPlanSearch(d.PlanSearch)
		out.Candidates, out.Groups = Map(d.Candidates, NewCandidate), Map(d.Groups, NewGroupCandidate)
	}
	return out
}

// NewCandidate converts a feasible node.
func NewCandidate(c engine.Candidate) Candidate {
	return Candidate{c.Node, c.Score.Mean(), parts(c.Score)}
}

// NewGroupCandidate converts a feasible node group.
func NewGroupCandidate(c engine.GroupCandidate) GroupCandidate {
	return GroupCandidate{NewGroup(c.Group), c.Alternative, c.Score.Mean(), parts(c.Score)}
}

// NewScore returns the weighted mean of a score, and the scores by plugin. Both are nil if no
// plugin gave a score.
func NewScore(s engine.Score) (*float64, map[string]float64) {
	if len(s.Parts) == 0 {
		return nil, nil
	}
	mean := s.Mean()
	return &mean, parts(s)
}

// parts returns the scores by plugin. A plugin with several hooks has several parts, which are
// added up.
func parts(s engine.Score) map[string]float64 {
	milli := make(map[string]int64, len(s.Parts))
	for _, p := range s.Parts {
		milli[p.Plugin] += int64(p.Score*1000 + 0.5)
	}
	out := make(map[string]float64, len(milli))
	for plugin, m := range milli {
		out[plugin] = float64(m) / 1000
	}
	return out
}

// NewGroup converts the key of a node group.
func NewGroup(k cluster.GroupKey) Group {
	return Group{
		Product: k.Product, Count: k.Count, Memory: quantity.Exact(cluster.Bytes(k.Memory) << 20),
		Resource: k.Resource, Strategy: k.Strategy, Replicas: k.Replicas,
	}
}

// Map returns f of each item. It returns nil for an empty list, so that the field is left
// out of JSON.
func Map[T, R any](list []T, f func(T) R) []R {
	var out []R
	for _, item := range list {
		out = append(out, f(item))
	}
	return out
}
