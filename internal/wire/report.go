package wire

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Report answers it.
type Report struct {
	Workload string `json:"workload"`
	Wants    string `json:"wants"` // one sentence
	// Remarks are what whoever made the workload has to say about it.
	Remarks []string `json:"remarks,omitempty"`
	// Set is how many of the workload's set have a place, if it is in one.
	Set *SetReport `json:"set,omitempty"`
	// Offer is what there is free for a model, in one sentence.
	Offer string `json:"offer,omitempty"`
	// Foreign is what readings found in use on devices that it could have, in one sentence.
	Foreign string `json:"foreign,omitempty"`
	// Form that it took, of a model.
	Form string `json:"form,omitempty"`
	// Group is how the group was chosen, where it takes whole nodes.
	Group *GroupChoice `json:"group,omitempty"`
	// Placements are its tasks that have a place.
	Placements []Placement `json:"placements"`
	// Ended are its tasks that have ended.
	Ended []Ended `json:"ended,omitempty"`
	// TornSince is since when it has run below its minimum.
	TornSince string `json:"tornSince,omitempty"`
	// Evicted is what the simulation evicted of it, and Displaced whom it evicted for it.
	Evicted   []Eviction `json:"evicted,omitempty"`
	Displaced []Eviction `json:"displaced,omitempty"`
	Refusal   *Refusal   `json:"refusal,omitempty"`
	// Ranking is that of its set, where that had more replicas than are desired.
	Ranking *Ranking `json:"ranking,omitempty"`
	// Queues are how its queue and those above it stand with what it lacks.
	Queues []Standing `json:"queues,omitempty"`
	Nodes  int        `json:"nodes"`            // in the cluster
	Funnel []Step     `json:"funnel,omitempty"` // who turned down how many of them, in filter order
	// Forms are those that were tried, of a model that has several.
	Forms  []Tried `json:"forms,omitempty"`
	Own    int     `json:"own,omitempty"`    // nodes that its own other tasks would take
	Trials []Trial `json:"trials,omitempty"` // what would help, smallest change first, and what would not
	Tried  int     `json:"tried,omitempty"`  // how many changes were tried out
	// Conflict: no change to the cluster could ever help.
	Conflict bool `json:"conflict,omitempty"`
	// Beyond is what would still be in the way if everything that can be tried were granted.
	Beyond *Beyond `json:"beyond,omitempty"`
}

// Beyond is a rejection that no change which can be tried cures. Its plugin says what may.
type Beyond struct {
	Plugin string        `json:"plugin"`
	Reason engine.Reason `json:"reason"`
	Cure   string        `json:"cure"` // Wait, Evict, Grow or Relax, with | between several
}

// SetReport is how a set of replicas stands.
type SetReport struct {
	Name    string `json:"name"`
	Desired int    `json:"desired"`
	Placed  int    `json:"placed"`
}

// GroupChoice is how the group was chosen for a workload that takes whole nodes.
type GroupChoice struct {
	Group  Group              `json:"group"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"`
	// RunnerUp is the next best group. There is none where the rest of the workload
	// or of its set is on the group already.
	RunnerUp *GroupCandidate `json:"runnerUp,omitempty"`
	Others   int             `json:"others,omitempty"` // groups that would have done as well
}

// Placement is where a task went and why.
type Placement struct {
	Task    string `json:"task"`
	Node    string `json:"node"`
	Devices []int  `json:"devices"`
	// Running: it was there before; nobody chose it now.
	Running  bool               `json:"running,omitempty"`
	Leaving  bool               `json:"leaving,omitempty"`  // it was told to stop
	Promised bool               `json:"promised,omitempty"` // the room is still being freed
	WaitsFor []string           `json:"waitsFor,omitempty"` // tasks that are leaving it: workload/task, or just the pod
	Score    *float64           `json:"score,omitempty"`
	Scores   map[string]float64 `json:"scores,omitempty"`
	RunnerUp *Candidate         `json:"runnerUp,omitempty"`
	Others   int                `json:"others,omitempty"` // nodes that would have done as well
}

// Ended is a task that has ended, and how: Succeeded or Failed.
type Ended struct {
	Task  string `json:"task"`
	State string `json:"state"`
}

// Eviction is a workload that has to leave, or some tasks of it, for another.
type Eviction struct {
	Workload string   `json:"workload"`
	Tasks    []string `json:"tasks"`
	Nodes    []string `json:"nodes"`         // that they leave
	For      string   `json:"for,omitempty"` // the workload that it makes room for
	Reason   string   `json:"reason"`
	Because  string   `json:"because"`          // the reason in words, with numbers
	Choice   string   `json:"choice,omitempty"` // why it and not another, where that is known
	Landing  []string `json:"landing,omitempty"`
	Weighed  *Weighed `json:"weighed,omitempty"`
}

// Standing is how a queue stands with one resource. Amounts are spelled as in manifests.
type Standing struct {
	Queue     string `json:"queue"`
	Resource  string `json:"resource"`
	Used      string `json:"used"`
	Requested string `json:"requested"` // what it holds and what is pending asks for
	FairShare string `json:"fairShare"`
	Quota     string `json:"quota,omitempty"` // its own, or that of the queues below it
}

// Step is one line of the funnel.
type Step struct {
	Nodes   int    `json:"nodes"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Words   string `json:"words"`
	Example string `json:"example,omitempty"`
}

// Tried is one form of a model that was tried, and who turned it down.
type Tried struct {
	Form string `json:"form"`
	// Steps count the nodes by who turned them down, in filter order.
	Steps []Step `json:"steps,omitempty"`
	// Because says what is not a matter of single nodes.
	Because []string `json:"because,omitempty"`
}

// Trial is a change that was made on a copy and judged by a full session.
type Trial struct {
	Fits    bool   `json:"fits"`
	Kind    Kind   `json:"kind"`
	Change  string `json:"change"`
	Because string `json:"because,omitempty"` // why it still does not fit
	// Evicts are the workloads that would have to go for it then.
	Evicts []string `json:"evicts,omitempty"`
}

// Kind says which part of the world a change is made to.
type Kind string

// The kinds of changes.
const (
	AddNodes      Kind = "AddNodes"
	EvictOthers   Kind = "EvictOthers"
	SmallerAsk    Kind = "SmallerRequest"
	LiftCondition Kind = "LiftCondition"
	RaiseLimit    Kind = "RaiseLimit"
	OpenNodes     Kind = "OpenNodes" // that are cordoned or not ready
	// HigherPriority is the workload's own, and Wait is for the clock.
	HigherPriority Kind = "HigherPriority"
	Wait           Kind = "Wait"
)

func NewSetReport(s *cluster.State, j *cluster.Job) *SetReport {
	if j.Set.Name == "" {
		return nil
	}
	out := &SetReport{Name: j.Set.Name, Desired: s.View().Sets().Desired(j.Set.Name)}
	for _, o := range s.View().Sets().Jobs(j.Set.Name) {
		if o.Stands() {
			out.Placed++
		}
	}
	return out
}

func NewGroupChoice(d *engine.Decision) *GroupChoice {
	out := &GroupChoice{
		Group: NewGroup(d.Group), Score: d.GroupScore.Mean(), Scores: parts(d.GroupScore),
		Others: max(0, len(d.Groups)-1),
	}
	if out.Others > 0 {
		next := NewGroupCandidate(d.Groups[1])
		out.RunnerUp = &next
	}
	return out
}

func NewPlacement(t *cluster.Task, ran bool, d *engine.Decision) Placement {
	p := Placement{
		Task: t.Name, Node: t.Node.Name, Devices: []int{}, Running: ran,
		Promised: t.Status == cluster.Nominated, Leaving: t.Status == cluster.Releasing,
	}
	for _, c := range t.Claims {
		p.Devices = append(p.Devices, c.Device)
	}
	if d == nil || d.Node != p.Node {
		return p
	}
	p.Score, p.Scores = NewScore(d.Score)
	p.Others = max(0, len(d.Candidates)-1)
	if i := slices.IndexFunc(d.Candidates, func(c engine.Candidate) bool { return c.Node != d.Node }); i >= 0 {
		next := NewCandidate(d.Candidates[i])
		p.RunnerUp = &next
	}
	return p
}

// NewStanding writes a standing for JSON. An amount below 0 is not set and is left out.
func NewStanding(st engine.Standing) Standing {
	spell := func(v int64) string {
		if v < 0 {
			return ""
		}
		return quantity.Amount(st.Resource, v, quantity.IsDevice(st.Resource), true)
	}
	return Standing{st.Queue, st.Resource, spell(st.Used), spell(st.Request), spell(st.Share), spell(st.Quota)}
}
