package wire

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

// Refusal says why a workload was not placed.
type Refusal struct {
	Workload  string `json:"workload"`
	Task      string `json:"task"` // the first that could not be placed
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting does not help
	// Surplus: the minimum is placed, and tasks beyond it are not.
	Surplus bool `json:"surplus,omitempty"`
	// Cure is what would help: Wait, Evict, Grow (more or other nodes), Relax (fewer
	// conditions in the request). If it is empty, only another request helps.
	Cure []string `json:"cure,omitempty"`
	// Awaits is how many nodes are going to be created for the model of the workload.
	Awaits  int    `json:"awaits,omitempty"`
	Message string `json:"message"`
	// Counts has the number of nodes by reason, for the form of the workload to which
	// Reason applies.
	Counts map[string]int `json:"counts"`
	Nodes  []Miss         `json:"nodes"` // nearest first: ten, or all with --explain
	Groups []GroupMiss    `json:"groups,omitempty"`
	// Subgroup is the subgroup that is below its own minimum.
	Subgroup string `json:"subgroup,omitempty"`
	// Level is the topology label of which no domain has room for all tasks that must be
	// in one domain. Counts and nodes are then about the best domain.
	Level   string       `json:"level,omitempty"`
	Domains []DomainMiss `json:"domains,omitempty"` // best first, ten at most
	// Spared are the workloads that plugins protected from being evicted for this one, as
	// far as the plugins were asked.
	Protected []ProtectedVictims `json:"spared,omitempty"`
	// Retry is when the workload is tried again at the latest, if it is parked until then.
	Retry string `json:"retry,omitempty"`
	// Delayed is the time before which nothing is evicted or moved for the workload,
	// because of its preemption delay.
	Delayed string `json:"delayed,omitempty"`
}

// Miss is a node that a plugin rejected.
type Miss struct {
	Node    string `json:"node"`
	Plugin  string `json:"plugin"`
	Reason  string `json:"reason"`
	Subject string `json:"subject,omitempty"`
	Want    string `json:"want,omitempty"`
	Have    string `json:"have,omitempty"`
}

// GroupMiss is a node group that was rejected. A group without a reason becomes feasible
// once enough of its nodes are free.
type GroupMiss struct {
	Group  Group  `json:"group"`
	Nodes  int    `json:"nodes"` // that no filter rejected
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
	Fits  int    `json:"fits"`            // tasks for which it has room
	Lacks int    `json:"lacks,omitempty"` // how many more nodes it would need
}

// ProtectedVictims says what kept an adapter from making room.
type ProtectedVictims struct {
	Purpose string `json:"purpose"` // Reclaim, Preempt or Move
	// Barred: nothing may be evicted for this workload.
	NoneAllowed bool         `json:"barred,omitempty"`
	Protected   []Protection `json:"spared,omitempty"`
}

// Protection has workloads that a plugin protected from being evicted, all for one reason.
type Protection struct {
	Plugin    string   `json:"plugin"`
	Reason    string   `json:"reason"`
	Count     int      `json:"count"`
	Workloads []string `json:"workloads"` // ten at most
}

// mostMisses is how many nodes a refusal lists unless all are asked for.
const mostMisses = 10

// NewRefusal is a refusal as JSON, without its message. It lists ten nodes, or, if all is
// true, every node of which the engine kept the rejection.
func NewRefusal(r *engine.Refusal, all bool) Refusal {
	a := MainAttempt(r)
	out := Refusal{
		Workload: r.Job, Task: a.Task.Name, Reason: string(r.Reason), Permanent: r.Permanent, Surplus: r.Surplus, Cure: r.Cure().Names(),
		Counts: map[string]int{}, Nodes: []Miss{}, Subgroup: a.Subgroup, Level: a.Level, Protected: NewProtectedVictims(r.Spared),
	}
	if r.Retry > 0 {
		out.Retry = quantity.Time(r.Retry)
	}
	if r.Delayed > 0 {
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
		out.Nodes = append(out.Nodes, Miss{m.Node, x.Plugin, string(x.Reason), x.Subject, quantity.Compact(x.Want), quantity.Compact(x.Have)})
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

// MainAttempt is the attempt that gave the reason of the refusal. A job with several
// forms has one attempt for each.
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

// GroupReason is why no node group was feasible. Reasons that waiting can cure come first.
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

// NewProtectedVictims is a list of sparings as JSON. It leaves out adapters that nothing kept from
// making room.
func NewProtectedVictims(list []engine.Sparing) []ProtectedVictims {
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
