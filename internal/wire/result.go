package wire

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Result is what a simulation prints as JSON and YAML. It is API: fields are
// added, never renamed. Equal input gives equal bytes. Memory is spelled as in
// manifests ("80Gi"); want and have are for people ("38GiB", "2 devices", "500m cores").
type Result struct {
	Decisions []Decision `json:"decisions"` // in the order they were made
	Refusals  []Refusal  `json:"refusals"`  // in the order the jobs' turn came
	// Rankings are the sets that had more replicas than are desired.
	Rankings []Ranking `json:"rankings,omitempty"`
}

// Decision is one thing to do.
type Decision struct {
	Workload    string   `json:"workload"`
	Task        string   `json:"task"`
	Action      string   `json:"action"` // Bind, Nominate or Evict
	Node        string   `json:"node"`
	Devices     []Device `json:"devices"`
	Group       *Group   `json:"group,omitempty"`
	Alternative string   `json:"alternative,omitempty"`
	// Score is the weighted mean of all scores, 0 to 100, and Scores adds up those of
	// each plugin; evictions have none. What replicas were worth is in Rankings.
	Score      *float64           `json:"score,omitempty"`
	Scores     map[string]float64 `json:"scores,omitempty"`
	Candidates []Candidate        `json:"candidates,omitempty"` // best first, only where explained
	// GroupScore and GroupScores are the same of the group, where the form takes whole
	// nodes, and Groups are those that were possible.
	GroupScore  *float64           `json:"groupScore,omitempty"`
	GroupScores map[string]float64 `json:"groupScores,omitempty"`
	Groups      []GroupCandidate   `json:"groups,omitempty"`  // best first, only where explained
	For         string             `json:"for,omitempty"`     // the workload an eviction makes room for
	Reason      string             `json:"reason,omitempty"`  // of an eviction
	Landing     string             `json:"landing,omitempty"` // the node that an evicted task moves to
	Weighed     *Weighed           `json:"weighed,omitempty"` // how an eviction was found, only where explained
}

// Device is what a task gets of one device.
type Device struct {
	UUID     string  `json:"uuid"`
	Index    int     `json:"index"`
	Memory   string  `json:"memory"`
	Fraction float64 `json:"fraction"`
	// Layers that lie on it, of a model that is divided layer by layer.
	Layers int `json:"layers,omitempty"`
}

// Group is the kind of node.
type Group struct {
	Product  string `json:"product"`
	Count    int    `json:"count"`
	Memory   string `json:"memory"` // of each device
	Resource string `json:"resource"`
	Strategy string `json:"strategy,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

// Candidate is a node that would have done.
type Candidate struct {
	Node   string             `json:"node"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"`
}

// GroupCandidate is a group that would have done, and the form that is for it.
type GroupCandidate struct {
	Group       Group              `json:"group"`
	Alternative string             `json:"alternative,omitempty"`
	Score       float64            `json:"score"`
	Scores      map[string]float64 `json:"scores"`
}

func NewDecision(state *cluster.State, d *engine.Decision, all bool) Decision {
	out := Decision{
		Workload: d.Task.Job, Task: d.Task.Name, Action: string(d.Action), Node: d.Node,
		Devices: []Device{}, Alternative: d.Alternative, For: d.For, Reason: string(d.Reason), Landing: d.Landing,
	}
	if n := state.Node(d.Node); n != nil {
		for _, c := range d.Claims {
			out.Devices = append(out.Devices, Device{
				UUID: n.Devices[c.Device].UUID, Index: c.Device,
				Memory: quantity.Exact(c.Memory), Fraction: float64(c.Milli) / float64(cluster.Whole), Layers: c.Layers,
			})
		}
	}
	if d.Group != (cluster.Key{}) {
		g := NewGroup(d.Group)
		out.Group = &g
	}
	if d.Action != engine.EvictIt {
		out.Score, out.Scores = NewScore(d.Score)
	}
	out.GroupScore, out.GroupScores = NewScore(d.GroupScore)
	if all {
		out.Weighed = NewWeighed(d.Weighing)
		out.Candidates, out.Groups = Map(d.Candidates, NewCandidate), Map(d.Groups, NewGroupCandidate)
	}
	return out
}

func NewCandidate(c engine.Candidate) Candidate {
	return Candidate{c.Node, c.Score.Mean(), parts(c.Score)}
}

func NewGroupCandidate(c engine.GroupCandidate) GroupCandidate {
	return GroupCandidate{NewGroup(c.Group), c.Alternative, c.Score.Mean(), parts(c.Score)}
}

// scored is the mean of a score and its parts, nil where no plugin gave one.
func NewScore(s engine.Score) (*float64, map[string]float64) {
	if len(s.Parts) == 0 {
		return nil, nil
	}
	mean := s.Mean()
	return &mean, parts(s)
}

// parts adds up the scores of each plugin: some have several hooks.
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

func NewGroup(k cluster.Key) Group {
	return Group{
		Product: k.Product, Count: k.Count, Memory: quantity.Exact(cluster.Bytes(k.Memory) << 20),
		Resource: k.Resource, Strategy: k.Strategy, Replicas: k.Replicas,
	}
}

// mapped is what becomes of each item, in order; nil where there is none.
func Map[T, R any](list []T, to func(T) R) []R {
	var out []R
	for _, item := range list {
		out = append(out, to(item))
	}
	return out
}
