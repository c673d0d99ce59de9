package wire

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Report says why a workload is placed where it is, or why it is pending and what would help.
type Report struct {
	Workload string `json:"workload"`
	Request  string `json:"wants"` // what it requests, in one sentence
	// Sentences that were recorded when the workload was created, such as why forms of a model
	// were left out.
	Remarks []string `json:"remarks,omitempty"`
	// How many replicas of the workload's set are placed, if it is in a set.
	Set *SetReport `json:"set,omitempty"`
	// How much device memory is free for a model, in one sentence.
	FreeMemory string `json:"offer,omitempty"`
	// How much memory of devices that the workload could use is used by processes that Berth
	// did not place, in one sentence.
	Foreign string `json:"foreign,omitempty"`
	// The form in which a model was placed.
	Form string `json:"form,omitempty"`
	// How the node group was chosen, for a workload that takes whole nodes.
	Group *GroupChoice `json:"group,omitempty"`
	// The tasks of the workload that are on a node.
	Placements []Placement `json:"placements"`
	// The tasks of the workload that have ended.
	Ended []EndedTask `json:"ended,omitempty"`
	// The time since which the workload has run below its minimum.
	BelowMinimumSince string     `json:"tornSince,omitempty"`
	Evicted           []Eviction `json:"evicted,omitempty"`   // the evictions of its own tasks
	Displaced         []Eviction `json:"displaced,omitempty"` // the evictions of other workloads for it
	Refusal           *Refusal   `json:"refusal,omitempty"`
	// The room that is earmarked for the workload, which has waited for long.
	Earmark *Earmark `json:"earmark,omitempty"`
	// Earmarks of other workloads, of which it would take the room.
	EarmarkedForOthers []Earmark `json:"earmarkedForOthers,omitempty"`
	// The ranking of its set, if the set had more replicas than are desired.
	Ranking *Ranking `json:"ranking,omitempty"`
	// What its queue and the queues above it hold of the resources that it lacks.
	Queues []Standing `json:"queues,omitempty"`
	Nodes  int        `json:"nodes"`            // how many nodes the cluster has
	Funnel []Step     `json:"funnel,omitempty"` // how many of them each plugin rejected, in filter order
	// The forms that were tried, for a model that has several.
	Forms        []TriedForm `json:"forms,omitempty"`
	OwnNodes     int         `json:"own,omitempty"`    // how many nodes are rejected only because other tasks of the workload would be placed on them
	Trials       []Trial     `json:"trials,omitempty"` // changes that would help, smallest first, then changes that would not
	TriedChanges int         `json:"tried,omitempty"`  // how many changes were tried
	// The kinds of changes that were not tried, or not all of them: if a simulation takes
	// long, fewer changes are tried.
	Untried []string `json:"untried,omitempty"`
	// True if no change helps, because the request contradicts itself.
	Conflict bool `json:"conflict,omitempty"`
	// The rejection that is left if all changes that can be tried are made together.
	Remaining *RemainingRejection `json:"beyond,omitempty"`
}

// RemainingRejection is a rejection that none of the changes that can be tried cures. Its cure
// is the one that the plugin names.
type RemainingRejection struct {
	Plugin string        `json:"plugin"`
	Reason engine.Reason `json:"reason"`
	Cure   string        `json:"cure"` // Wait, Evict, Grow or Relax, with | between several
}

// SetReport says how many replicas of a set are placed.
type SetReport struct {
	Name    string `json:"name"`
	Desired int    `json:"desired"`
	Placed  int    `json:"placed"`
}

// GroupChoice says how the node group was chosen for a workload that takes whole nodes.
type GroupChoice struct {
	Group  Group              `json:"group"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"`
	// The next best group. There is none if other tasks of the workload, or of its set, are on
	// nodes of the group already.
	RunnerUp *GroupCandidate `json:"runnerUp,omitempty"`
	Others   int             `json:"others,omitempty"` // how many other groups were feasible
}

// Placement says on which node a task is, and why.
type Placement struct {
	Task    string `json:"task"`
	Node    string `json:"node"`
	Devices []int  `json:"devices"` // indexes among all devices of the node
	// The devices by type and number, such as rocm:0; only on nodes with devices of several types.
	Names []string `json:"deviceNames,omitempty"`
	// The island of the devices; only on nodes with several.
	Island *Island `json:"island,omitempty"`
	// True if the task was on the node before the simulation.
	RanBefore bool               `json:"running,omitempty"`
	Releasing bool               `json:"leaving,omitempty"`  // it was evicted or deleted, and still holds its room
	Nominated bool               `json:"promised,omitempty"` // the room is reserved for it, and is not free yet
	WaitsFor  []string           `json:"waitsFor,omitempty"` // tasks that still hold its room: workload/task, or just the pod
	Score     *float64           `json:"score,omitempty"`
	Scores    map[string]float64 `json:"scores,omitempty"`
	RunnerUp  *Candidate         `json:"runnerUp,omitempty"`
	Others    int                `json:"others,omitempty"` // how many other nodes were feasible
	Layers    *Layers            `json:"layers,omitempty"` // for a task with layers of a model
}

// EndedTask is a task that has ended. Its state is Succeeded or Failed.
type EndedTask struct {
	Task  string `json:"task"`
	State string `json:"state"`
}

// Eviction is tasks of one workload that are evicted together for one other workload.
type Eviction struct {
	Workload   string      `json:"workload"`
	Tasks      []string    `json:"tasks"`
	Nodes      []string    `json:"nodes"`         // on which they ran
	For        string      `json:"for,omitempty"` // the workload for which they are evicted
	Reason     string      `json:"reason"`
	Because    string      `json:"because"`           // the reason in words, with numbers
	Choice     string      `json:"choice,omitempty"`  // why this workload and not another, if that is known
	Landing    []string    `json:"landing,omitempty"` // nodes to which tasks move
	PlanSearch *PlanSearch `json:"weighed,omitempty"`
}

// Standing says how much of one resource a queue holds, and how much it is entitled to.
// Amounts are written as in manifests.
type Standing struct {
	Queue     string `json:"queue"`
	Resource  string `json:"resource"`
	Used      string `json:"used"`
	Requested string `json:"requested"` // what it holds, and what its pending jobs request
	FairShare string `json:"fairShare"`
	Quota     string `json:"quota,omitempty"` // its own quota, or the sum of the quotas of the queues below it
}

// Step says how many nodes a plugin rejected for one reason.
type Step struct {
	Nodes   int    `json:"nodes"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Words   string `json:"words"`
	Example string `json:"example,omitempty"`
}

// TriedForm is one form of a model that was tried, and why it was not placed.
type TriedForm struct {
	Form string `json:"form"`
	// How many nodes each plugin rejected, in filter order.
	Steps []Step `json:"steps,omitempty"`
	// Reasons that are not about single nodes.
	Because []string `json:"because,omitempty"`
}

// Trial is a change that was tried: it was made in the input, and the simulation was run to its
// end.
type Trial struct {
	Fits    bool       `json:"fits"`
	Kind    ChangeKind `json:"kind"`
	Change  string     `json:"change"`
	Because string     `json:"because,omitempty"` // why it still does not fit
	// The workloads that would be evicted if the change were made, and that are not evicted
	// without it.
	Evicts []string `json:"evicts,omitempty"`
	// The arguments of berth whatif that make the change, such as --set and
	// job/train.spec.priority=10. They are left out if the input is not manifests and the change
	// needs a field of a manifest.
	Arguments []string `json:"arguments,omitempty"`

	Brief string `json:"-"` // the change in a few words: "remove job/sweep-3"
	Loses int    `json:"-"` // how many workloads are removed or evicted
}

// ChangeKind says what type of change was tried.
type ChangeKind string

// The kinds of changes.
const (
	AddNodes       ChangeKind = "AddNodes"
	EvictOthers    ChangeKind = "EvictOthers"
	SmallerRequest ChangeKind = "SmallerRequest"
	LiftCondition  ChangeKind = "LiftCondition"
	RaiseLimit     ChangeKind = "RaiseLimit"
	OpenNodes      ChangeKind = "OpenNodes"      // nodes that are cordoned or not ready become ready
	HigherPriority ChangeKind = "HigherPriority" // a higher priority of the workload itself
	Wait           ChangeKind = "Wait"           // a later time
)

// NewSetReport counts the replicas of the job's set that are placed. It returns nil if the job
// is in no set.
func NewSetReport(s *cluster.State, j *cluster.Job) *SetReport {
	if j.Set.Name == "" {
		return nil
	}
	out := &SetReport{Name: j.Set.Name, Desired: s.View().Sets().Desired(j.Set.Name)}
	for _, o := range s.View().Sets().Jobs(j.Set.Name) {
		if o.HasMinimum() {
			out.Placed++
		}
	}
	return out
}

// NewGroupChoice returns how the node group of the decision was chosen.
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

// NewPlacement returns where the task is. Ran says that it was on the node before the
// simulation. D is the decision that chose the node, or nil.
func NewPlacement(t *cluster.Task, ran bool, d *engine.Decision) Placement {
	p := Placement{
		Task: t.Name, Node: t.Node.Name, Devices: []int{}, RanBefore: ran,
		Nominated: t.Status == cluster.Nominated, Releasing: t.Status == cluster.Releasing,
	}
	for _, c := range t.Claims {
		p.Devices = append(p.Devices, c.Device)
	}
	p.Names = DeviceNames(t.Node, t.Claims)
	p.Island = NewIsland(t.Node, t.Claims)
	p.Layers = NewLayers(t, t.Claims)
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

// NewStanding converts a standing. A negative amount means that none is set, and is left out.
func NewStanding(st engine.Standing) Standing {
	spell := func(v int64) string {
		if v < 0 {
			return ""
		}
		return quantity.Amount(st.Resource, v, quantity.IsDevice(st.Resource), true)
	}
	return Standing{st.Queue, st.Resource, spell(st.Used), spell(st.Request), spell(st.Share), spell(st.Quota)}
}

// Earmark is the room that is earmarked for a workload.
type Earmark struct {
	Workload string   `json:"workload"`
	Nodes    []string `json:"nodes"`
	Since    string   `json:"since"` // when the workload was given an earmark
	// When the workload starts at the latest, if all run times are right. It is left out if a run
	// time is not known.
	Start string `json:"start,omitempty"`
	// The workloads that hold room of these nodes, those that end first at first.
	Holders []EarmarkHolder `json:"holders,omitempty"`
}

// EarmarkHolder is a workload that holds room of a node that is earmarked for another.
type EarmarkHolder struct {
	Workload string `json:"workload"`
	Ends     string `json:"ends,omitempty"` // when it ends by its run time, if that is known
}
