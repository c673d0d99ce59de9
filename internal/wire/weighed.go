package wire

import (
	"github.com/berth-project/berth/engine"
)

// Weighed says how a plan to make room was found.
type Weighed struct {
	Purpose string       `json:"purpose"` // Reclaim, Preempt or Move
	Looks   int          `json:"looks"`   // nodes that were examined and gave no plan
	Tries   int          `json:"tries"`   // plans that were tried
	Options []Option     `json:"options,omitempty"`
	Rivals  int          `json:"rivals,omitempty"` // workloads that could have been evicted, including those that were
	Spared  []Protection `json:"spared,omitempty"`
	VictimCosts
}

// Option is a node on which room could have been made for a task.
type Option struct {
	Task   string   `json:"task"`
	Node   string   `json:"node"`
	Go     []string `json:"go"` // tasks that would have been evicted: workload/task
	Chosen bool     `json:"chosen,omitempty"`
	VictimCosts
}

// VictimCosts are the costs that plugins give the victims of a plan.
type VictimCosts struct {
	VictimCost int64 `json:"victimCost,omitempty"` // of all tasks that are evicted
	MovedCost  int64 `json:"movedCost,omitempty"`  // of all tasks that move
}

// NewWeighed is a weighing as JSON; nil for nil.
func NewWeighed(w *engine.Weighing) *Weighed {
	if w == nil {
		return nil
	}
	out := &Weighed{Purpose: w.Purpose.String(), Looks: w.Looks, Tries: w.Tries, Rivals: len(w.Rivals), Spared: protections(w.Spared), VictimCosts: VictimCosts{w.Cost.VictimCost, w.Cost.MovedCost}}
	out.Options = Map(w.Options, func(o engine.Option) Option {
		return Option{o.Task, o.Node, o.Victims, o.Chosen, VictimCosts{o.Cost.VictimCost, o.Cost.MovedCost}}
	})
	return out
}
