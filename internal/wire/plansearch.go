package wire

import (
	"github.com/berth-project/berth/engine"
)

// PlanSearch says how the engine found a plan: the victims that are evicted together for one
// job.
type PlanSearch struct {
	Purpose       string       `json:"purpose"` // Reclaim, Preempt or Move
	NodesExamined int          `json:"looks"`   // nodes that were examined and gave no plan
	PlansTried    int          `json:"tries"`   // plans that were tried
	Options       []Option     `json:"options,omitempty"`
	Rivals        int          `json:"rivals,omitempty"` // workloads that could have been evicted, including those that were
	Protected     []Protection `json:"spared,omitempty"`
	VictimCosts
}

// Option is a node on which room could have been made for a task of the job.
type Option struct {
	Task    string   `json:"task"`
	Node    string   `json:"node"`
	Victims []string `json:"go"` // tasks that would have been evicted: workload/task
	Chosen  bool     `json:"chosen,omitempty"`
	VictimCosts
}

// VictimCosts are the costs that plugins assign to the victims of a plan.
type VictimCosts struct {
	VictimCost int64 `json:"victimCost,omitempty"` // the sum over all tasks that are evicted
	MovedCost  int64 `json:"movedCost,omitempty"`  // the sum over all tasks that move
}

// NewPlanSearch converts a PlanSearch of the engine. It returns nil for nil.
func NewPlanSearch(w *engine.PlanSearch) *PlanSearch {
	if w == nil {
		return nil
	}
	out := &PlanSearch{Purpose: w.Purpose.String(), NodesExamined: w.Looks, PlansTried: w.Tries, Rivals: len(w.Rivals), Protected: protections(w.Protected), VictimCosts: VictimCosts{w.Cost.VictimCost, w.Cost.MovedCost}}
	out.Options = Map(w.Options, func(o engine.Option) Option {
		return Option{o.Task, o.Node, o.Victims, o.Chosen, VictimCosts{o.Cost.VictimCost, o.Cost.MovedCost}}
	})
	return out
}
