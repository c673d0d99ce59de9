package wire

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/quantity"
)

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

// Sparing is what kept an adapter from making room.
type Sparing struct {
	Purpose string `json:"purpose"` // Reclaim, Preempt or Move
	// Barred: nobody may go for this workload, whoever he is.
	Barred bool         `json:"barred,omitempty"`
	Spared []Protection `json:"spared,omitempty"`
}

// Protection is workloads that might have gone, had nobody spared them.
type Protection struct {
	Plugin    string   `json:"plugin"`
	Reason    string   `json:"reason"`
	Count     int      `json:"count"`
	Workloads []string `json:"workloads"` // ten at most
}

// mostMisses is how many nodes a refusal shows unless everything is asked for.
const mostMisses = 10

// NewRefusal is the refusal without its message. It lists ten nodes, or, if all is
// true, every node of which the rejection was kept.
func NewRefusal(r *engine.Refusal, all bool) Refusal {
	a := MainAttempt(r)
	out := Refusal{
		Workload: r.Job, Task: a.Task.Name, Reason: string(r.Reason), Permanent: r.Permanent, Surplus: r.Surplus, Cure: r.Cure().Names(),
		Counts: map[string]int{}, Nodes: []Miss{}, Subgroup: a.Subgroup, Level: a.Level, Spared: NewSparings(r.Spared),
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

// mainAttempt is the form of the job that the refusal's reason is about.
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

// groupReason is what is wrong with the groups as a whole: what waiting can cure
// before what it cannot.
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

func NewSparings(list []engine.Sparing) []Sparing {
	var out []Sparing
	for _, s := range list {
		if !s.Barred && len(s.Protection) == 0 {
			continue
		}
		out = append(out, Sparing{s.Purpose.String(), s.Barred, protections(s.Protection)})
	}
	return out
}

func protections(list []engine.Protection) []Protection {
	return Map(list, func(p engine.Protection) Protection {
		return Protection{p.Plugin, string(p.Reason), p.Count, p.Jobs}
	})
}
