package wire

import (
	"math"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Refusal says why a workload was not placed.
type Refusal struct {
	Workload  string `json:"workload"`
	Task      string `json:"task"` // the first task that could not be placed
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting does not help
	// True if the minimum is placed, and only tasks beyond it are not.
	Surplus bool `json:"surplus,omitempty"`
	// What would help: Wait, Evict, Grow (more or other nodes), Relax (fewer conditions in
	// the request). If the list is empty, only another request helps.
	Cure []string `json:"cure,omitempty"`
	// How many nodes a provisioner is asked to create for the model of the workload.
	AwaitedNodes int    `json:"awaits,omitempty"`
	Message      string `json:"message"`
	// The number of nodes by reason, for the form of the workload that reason is about.
	Counts map[string]int `json:"counts"`
	Nodes  []Miss         `json:"nodes"` // nearest first: ten, or all with --explain
	Groups []GroupMiss    `json:"groups,omitempty"`
	// The subgroup that is below its own minimum.
	Subgroup string `json:"subgroup,omitempty"`
	// The topology label of which no domain has room for all tasks that must be in one
	// domain. The fields counts and nodes are then about the best domain.
	Level   string       `json:"level,omitempty"`
	Domains []DomainMiss `json:"domains,omitempty"` // best first, ten at most
	// Set if tasks must be in different domains, and fewer than needed ever can be.
	TooFewDomains *TooFewDomains `json:"tooFewDomains,omitempty"`
	// The workloads that plugins protected from being evicted for this workload, as far as the
	// engine asked the plugins.
	Protected []ProtectedVictims `json:"spared,omitempty"`
	// The time at which the workload is tried again. It is tried earlier if something changes
	// that may help it.
	Retry string `json:"retry,omitempty"`
	// The end of the preemption delay of the workload. Nothing is evicted or moved for the
	// workload before this time.
	Delayed string `json:"delayed,omitempty"`
}

// TooFewDomains says how many tasks must be in different domains, and how many ever can be.
type TooFewDomains struct {
	Level  string `json:"level,omitempty"` // the label that names the domains; if it is missing, each node is a domain
	Needed int    `json:"needed"`
	Most   int    `json:"most"`
}

// Miss is a node that a plugin rejected.
type Miss struct {
	Node    string `json:"node"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Subject string `json:"subject,omitempty"`
	Want    string `json:"want,omitempty"`
	Have    string `json:"have,omitempty"`
	// WantMemory and HaveMemory are Want and Have in bytes of a device, if these are shares of it.
	WantMemory string `json:"wantMemory,omitempty"`
	HaveMemory string `json:"haveMemory,omitempty"`
}

// GroupMiss is a node group that was not chosen. A group without a reason becomes feasible
// when enough of its nodes are free.
type GroupMiss struct {
	Group  Group  `json:"group"`
	Nodes  int    `json:"nodes"` // how many nodes of the group no filter rejected
	Plugin string `json:"plugin,omitempty"`
	Reason string `json:"reason,omitempty"`
	Want   string `json:"want,omitempty"`
	Have   string `json:"have,omitempty"`
}

// DomainMiss is a topology domain that has no room for all tasks that must be in one
// domain.
type DomainMiss struct {
	Value string `json:"value"`
	Nodes int    `json:"nodes"`
	Fits  int    `json:"fits"`            // for how many tasks it has room
	Lacks int    `json:"lacks,omitempty"` // how many more nodes it would need
}

// ProtectedVictims says, for one purpose, which workloads could not be evicted and why.
type ProtectedVictims struct {
	Purpose string `json:"purpose"` // Reclaim, Preempt or Move
	// True if a plugin allows no victim at all for this workload.
	NoneAllowed bool         `json:"barred,omitempty"`
	Protected   []Protection `json:"spared,omitempty"`
}

// Protection is the workloads that one plugin protected from being evicted for one reason.
type Protection struct {
	Plugin    string   `json:"plugin"`
	Reason    string   `json:"reason"`
	Count     int      `json:"count"`
	Workloads []string `json:"workloads"` // ten at most
}

// mostMisses is how many nodes a refusal lists unless all are requested.
const mostMisses = 10

// NewRefusal converts a refusal, without its message. It lists ten nodes or, if all is true,
// every node of which the engine kept the rejection.
func NewRefusal(r *engine.Refusal, all bool) Refusal {
	a := MainAttempt(r)
	out := Refusal{
		Workload: r.Job, Task: a.Task.Name, Reason: string(r.Reason), Permanent: r.Permanent, Surplus: r.Surplus, Cure: r.Cure().Names(),
		Counts: map[string]int{}, Nodes: []Miss{}, Subgroup: a.Subgroup, Level: a.Level, Protected: NewProtectedVictims(r.Protected),
	}
	if r.Retry > 0 {
		out.Retry = quantity.Time(r.Retry)
	}
	if r.Delayed == math.MaxInt64 {
		out.Delayed = "never"
	} else if r.Delayed > 0 {
		out.Delayed = quantity.Time(r.Delayed)
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
		miss := Miss{Node: m.Node, Plugin: x.Plugin, Reason: string(x.Reason), Subject: x.Subject, Want: quantity.Compact(x.Want), Have: quantity.Compact(x.Have)}
		if x.WantBytes > 0 {
			miss.WantMemory = quantity.Compact(engine.Quantity{Value: x.WantBytes, Unit: engine.Bytes})
			miss.HaveMemory = quantity.Compact(engine.Quantity{Value: x.HaveBytes, Unit: engine.Bytes})
		}
		out.Nodes = append(out.Nodes, miss)
	}
	if a.Apart != nil {
		apart := TooFewDomains(*a.Apart)
		out.TooFewDomains = &apart
	}
	out.Domains = Map(a.Domains, func(d engine.DomainMiss) DomainMiss { return DomainMiss(d) })
	for _, g := range a.Groups {
		miss := GroupMiss{Group: NewGroup(g.Key), Nodes: g.Nodes}
		if x := g.Rejection; x != nil {
			miss.Plugin, miss.Reason, miss.Want, miss.Have = x.Plugin, string(x.Reason), quantity.Compact(x.Want), quantity.Compact(x.Have)
		}
		out.Groups = append(out.Groups, miss)
	}
	return out
}

// MainAttempt returns the attempt that gave the reason of the refusal. A job with several
// alternatives has one attempt for each; alternatives that name node groups may share one.
func MainAttempt(r *engine.Refusal) *engine.Attempt {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Before != nil && a.Before.Reason == r.Reason || a.Level != "" && r.Reason == engine.NoDomainFits ||
			a.Whole && r.Reason == GroupReason(a) {
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

// GroupReason returns why no node group was feasible. A reason that waiting can cure takes
// precedence.
func GroupReason(a *engine.Attempt) engine.Reason {
	reason := engine.NoSuitableGroup
	for _, g := range a.Groups {
		if t := a.Unheld(); g.Rejection == nil && t != nil {
			return t.Reason
		} else if g.Rejection == nil {
			return engine.GroupInUse
		}
		if reason == engine.NoSuitableGroup && g.Rejection.Cure.Transient() {
			reason = g.Rejection.Reason
		}
	}
	return reason
}

// NewProtectedVictims converts the list. It leaves out purposes for which no victim was
// protected.
func NewProtectedVictims(list []engine.ProtectedVictims) []ProtectedVictims {
	var out []ProtectedVictims
	for _, s := range list {
		if !s.Barred && len(s.Protection) == 0 {
			continue
		}
		out = append(out, ProtectedVictims{s.Purpose.String(), s.Barred, protections(s.Protection)})
	}
	return out
}

func protections(list []engine.Protection) []Protection {
	return Map(list, func(p engine.Protection) Protection {
		return Protection{p.Plugin, string(p.Reason), p.Count, p.Jobs}
	})
}
