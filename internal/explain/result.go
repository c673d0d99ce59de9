package explain

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
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

// Refusal is a workload that was turned down.
type Refusal struct {
	Workload  string `json:"workload"`
	Task      string `json:"task"` // the first that found no place
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting does not help
	Surplus   bool   `json:"surplus,omitempty"`
	// Cure is what would help: Wait, Evict, Grow (more or other nodes), Relax (a softer
	// request). Without any, only a changed request helps.
	Cure []string `json:"cure,omitempty"`
	// Awaits is how many nodes are to be made for the workload's model.
	Awaits  int    `json:"awaits,omitempty"`
	Message string `json:"message"`
	// Counts of nodes by reason, for the form of the workload that Reason is about.
	Counts map[string]int `json:"counts"`
	Nodes  []Miss         `json:"nodes"` // nearest first: ten, or all where explained
	Groups []GroupMiss    `json:"groups,omitempty"`
	// Subgroup is the part of the workload that is short of its own minimum.
	Subgroup string `json:"subgroup,omitempty"`
	// Level is the label whose domains have no room for all that must be in one;
	// counts and nodes are then about the best of them.
	Level   string       `json:"level,omitempty"`
	Domains []DomainMiss `json:"domains,omitempty"` // best first, ten at most
	// Spared are those whom somebody kept from making room, as far as they were asked about.
	Spared []Sparing `json:"spared,omitempty"`
	// Retry is when it will be tried again at the latest, for those that are left alone until then.
	Retry string `json:"retry,omitempty"`
	// Delayed is until when it evicts and moves nothing, by its preemption delay.
	Delayed string `json:"delayed,omitempty"`
}

// Miss is a node that was turned down.
type Miss struct {
	Node    string `json:"node"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Subject string `json:"subject,omitempty"`
	Want    string `json:"want,omitempty"`
	Have    string `json:"have,omitempty"`
}

// GroupMiss is a group of nodes that was turned down; without a reason it would
// do once enough of its nodes are free.
type GroupMiss struct {
	Group  Group  `json:"group"`
	Nodes  int    `json:"nodes"` // that passed the node filters
	Plugin string `json:"plugin,omitempty"`
	Reason string `json:"reason,omitempty"`
	Want   string `json:"want,omitempty"`
	Have   string `json:"have,omitempty"`
}

// DomainMiss is a domain that has no room for all that must be in one.
type DomainMiss struct {
	Value string `json:"value"`
	Nodes int    `json:"nodes"`
	Fits  int    `json:"fits"`            // tasks that it would hold
	Lacks int    `json:"lacks,omitempty"` // nodes that are missing
}

// mostMisses is how many nodes a refusal shows unless everything is asked for.
const mostMisses = 10

// Result sums the simulation up; all adds every candidate and every miss.
func (s *Simulation) Result(all bool) *Result {
	out := &Result{Decisions: []Decision{}, Refusals: []Refusal{}}
	for i := range s.Decisions {
		out.Decisions = append(out.Decisions, decision(s.State, &s.Decisions[i], all))
	}
	for _, r := range s.Refusals {
		out.Refusals = append(out.Refusals, s.Refusal(r, all))
	}
	for i := range s.Rankings {
		out.Rankings = append(out.Rankings, ranking(&s.Rankings[i]))
	}
	return out
}

// Refusal is what the simulation says of a workload that was turned down.
func (s *Simulation) Refusal(r *engine.Refusal, all bool) Refusal {
	return s.Phrases.Refusal(s.State, s.Awaits, r, all)
}

func decision(state *cluster.State, d *engine.Decision, all bool) Decision {
	out := Decision{
		Workload: d.Task.Job, Task: d.Task.Name, Action: string(d.Action), Node: d.Node,
		Devices: []Device{}, Alternative: d.Alternative, For: d.For, Reason: string(d.Reason), Landing: d.Landing,
	}
	if n := state.Node(d.Node); n != nil {
		for _, c := range d.Claims {
			out.Devices = append(out.Devices, Device{
				UUID: n.Devices[c.Device].UUID, Index: c.Device,
				Memory: exact(c.Memory), Fraction: float64(c.Milli) / float64(cluster.Whole), Layers: c.Layers,
			})
		}
	}
	if d.Group != (cluster.Key{}) {
		g := group(d.Group)
		out.Group = &g
	}
	if d.Action != engine.EvictIt {
		out.Score, out.Scores = scored(d.Score)
	}
	out.GroupScore, out.GroupScores = scored(d.GroupScore)
	if all {
		out.Weighed = weighed(d.Weighing)
		out.Candidates, out.Groups = mapped(d.Candidates, candidate), mapped(d.Groups, groupCandidate)
	}
	return out
}

func candidate(c engine.Candidate) Candidate {
	return Candidate{c.Node, c.Score.Mean(), parts(c.Score)}
}

func groupCandidate(c engine.GroupCandidate) GroupCandidate {
	return GroupCandidate{group(c.Group), c.Alternative, c.Score.Mean(), parts(c.Score)}
}

// scored is the mean of a score and its parts, nil where no plugin gave one.
func scored(s engine.Score) (*float64, map[string]float64) {
	if len(s.Parts) == 0 {
		return nil, nil
	}
	mean := s.Mean()
	return &mean, parts(s)
}

// Cause says for whom a task is evicted, why, and where it goes if it moves; ""
// for what is no eviction.
func Cause(d *Decision) string { return CauseText(d.For, d.Reason, d.Landing) }

// CauseText is "job/b (Reclaimed)", or "job/b (Consolidated), moves to gpu-2".
func CauseText(whom, reason, landing string) string {
	text := whom
	if reason != "" {
		text = strings.TrimSpace(text + " (" + reason + ")")
	}
	if landing != "" {
		text += ", moves to " + landing
	}
	return text
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

func group(k cluster.Key) Group {
	return Group{
		Product: k.Product, Count: k.Count, Memory: exact(cluster.Bytes(k.Memory) << 20),
		Resource: k.Resource, Strategy: k.Strategy, Replicas: k.Replicas,
	}
}

func (ph Phrases) refusal(r *engine.Refusal, all bool) Refusal {
	a := mainAttempt(r)
	out := Refusal{
		Workload: r.Job, Task: a.Task.Name, Reason: string(r.Reason), Permanent: r.Permanent, Surplus: r.Surplus, Cure: r.Cure().Names(),
		Message: ph.message(r), Counts: map[string]int{}, Nodes: []Miss{}, Subgroup: a.Subgroup, Level: a.Level, Spared: sparings(r.Spared),
	}
	if r.Retry > 0 {
		out.Retry = stamp(r.Retry)
	}
	if r.Delayed > 0 {
		out.Delayed = stamp(r.Delayed)
	}
	for _, c := range a.Counts {
		out.Counts[string(c.Reason)] += c.Nodes
	}
	if a.Before != nil {
		out.Counts[string(a.Before.Reason)] += a.Nodes
	}
	for i, m := range a.Nearest {
		if i == mostMisses && !all {
			break
		}
		x := &m.Rejection
		out.Nodes = append(out.Nodes, Miss{m.Node, x.Plugin, string(x.Reason), x.Subject, compact(x.Want), compact(x.Have)})
	}
	out.Domains = mapped(a.Domains, func(d engine.DomainMiss) DomainMiss { return DomainMiss(d) })
	for _, g := range a.Groups {
		miss := GroupMiss{Group: group(g.Key), Nodes: g.Nodes}
		if x := g.Rejection; x != nil {
			miss.Plugin, miss.Reason, miss.Want, miss.Have = x.Plugin, string(x.Reason), compact(x.Want), compact(x.Have)
		}
		out.Groups = append(out.Groups, miss)
	}
	return out
}

// mainAttempt is the form of the job that the refusal's reason is about.
func mainAttempt(r *engine.Refusal) *engine.Attempt {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Before != nil && a.Before.Reason == r.Reason || a.Level != "" && r.Reason == engine.NoDomainFits ||
			a.Whole && r.Reason == groupReason(a) {
			return a
		}
		for _, c := range a.Counts {
			if c.Reason == r.Reason {
				return a
			}
		}
	}
	return &r.Attempts[0]
}
