package explain

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

func TestChoice(t *testing.T) {
	rival := func(name string, tier cluster.Tier, tasks int, priority int32, started int64) engine.Rival {
		return engine.Rival{Job: name, Tier: tier, Tasks: tasks, Priority: priority, Started: started, Tried: true, Enough: true}
	}
	it := rival("v", cluster.TierStandard, 1, 5, 9)
	like := rival("a", cluster.TierStandard, 1, 5, 9)
	other := func(change func(*engine.Rival)) []engine.Rival {
		r := like
		change(&r)
		return []engine.Rival{it, r}
	}
	cost := engine.Cost{Tasks: [3]int{0, 1, 0}, Highest: 5, Priority: 5, Jobs: 1, Youngest: 9}
	surplus := cost
	surplus.Jobs = 0
	tests := map[string]struct {
		rivals []engine.Rival
		cost   engine.Cost
		also   []string
		want   string
	}{
		"nothing is known":             {nil, cost, nil, ""},
		"alone":                        {[]engine.Rival{it}, cost, nil, "No other workload could have been evicted."},
		"tier":                         {other(func(r *engine.Rival) { r.Tier = cluster.TierGuaranteed }), cost, nil, "Of 2 workloads that could have been evicted, a is of a stronger tier."},
		"priority":                     {other(func(r *engine.Rival) { r.Priority = 6 }), cost, nil, "Of 2 workloads that could have been evicted, a has a higher priority."},
		"cost":                         {other(func(r *engine.Rival) { r.VictimCost = 3 }), cost, nil, "Of 2 workloads that could have been evicted, a would cost more, according to plugins."},
		"cost, not tried":              {other(func(r *engine.Rival) { r.VictimCost, r.Tried = 3, false }), cost, nil, "Of 2 workloads that could have been evicted, a would cost more, according to plugins."},
		"cost and priority":            {other(func(r *engine.Rival) { r.VictimCost, r.Priority = 3, 4 }), cost, nil, "Of 2 workloads that could have been evicted, a alone would have been enough."},
		"beyond":                       {other(func(r *engine.Rival) { r.Beyond = 4000 }), cost, nil, "Of 2 workloads that could have been evicted, a would free more room that is not needed."},
		"tasks":                        {other(func(r *engine.Rival) { r.Tasks = 2 }), cost, nil, "Of 2 workloads that could have been evicted, more tasks of a would be evicted."},
		"whole":                        {other(func(r *engine.Rival) {}), surplus, nil, "Of 2 workloads that could have been evicted, a would be evicted as a whole."},
		"age":                          {other(func(r *engine.Rival) { r.Started = 8 }), cost, nil, "Of 2 workloads that could have been evicted, a has run for longer."},
		"alike":                        {other(func(r *engine.Rival) {}), cost, nil, "Of 2 workloads that could have been evicted, a is equal in all that is compared."},
		"not enough":                   {other(func(r *engine.Rival) { r.Priority, r.Enough = 0, false }), cost, nil, "Of 2 workloads that could have been evicted, a alone would not have been enough."},
		"not tried":                    {other(func(r *engine.Rival) { r.Tried = false }), cost, nil, "Of 2 workloads that could have been evicted, a was not tried alone."},
		"a cheaper plan was not found": {other(func(r *engine.Rival) { r.Priority = 0 }), cost, nil, "Of 2 workloads that could have been evicted, a alone would have been enough."},
		"several": {[]engine.Rival{it, rival("a", cluster.TierStandard, 1, 6, 9), rival("b", cluster.TierStandard, 1, 7, 9), rival("c", cluster.TierStandard, 1, 5, 1)}, cost, nil,
			"Of 4 workloads that could have been evicted, a and b have higher priorities; c has run for longer."},
		"together":         {[]engine.Rival{it, like}, cost, []string{"a"}, "It is evicted together with a."},
		"together, others": {[]engine.Rival{it, like, rival("b", cluster.TierStandard, 1, 9, 9)}, cost, []string{"a"}, "It is evicted together with a. Of 3 workloads that could have been evicted, b has a higher priority."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := &engine.Decision{Task: cluster.TaskRef{Job: "v"}, PlanSearch: &engine.PlanSearch{Purpose: engine.Preempt, Rivals: tt.rivals, Cost: tt.cost}}
			if got := choiceText(d, tt.also); got != tt.want {
				t.Errorf("have %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestCostDifferenceIsTheFirstOne checks that the first difference is named, in the order in
// which plans are compared.
func TestCostDifferenceIsTheFirstOne(t *testing.T) {
	cheap := engine.Cost{Tasks: [3]int{0, 1, 0}, Highest: 5, Jobs: 1, VictimCost: 10, MovedCost: 1, Beyond: 2000}
	tests := map[string]struct {
		change func(*engine.Cost)
		want   string
	}{
		"priority first":     {func(c *engine.Cost) { c.Highest, c.VictimCost = 6, 30 }, "the highest priority is 6 instead of 5"},
		"cost before beyond": {func(c *engine.Cost) { c.VictimCost, c.Beyond = 30, 3000 }, "the victims cost 30 instead of 10, according to plugins"},
		"moves":              {func(c *engine.Cost) { c.MovedCost = 2 }, "the tasks that move cost 2 instead of 1, according to plugins"},
	}
	for name, tt := range tests {
		dear := cheap
		if tt.change(&dear); costDifference(&dear, &cheap) != tt.want {
			t.Errorf("%s: %q, want %q", name, costDifference(&dear, &cheap), tt.want)
		}
	}
}

// Every reason for which a victim is protected has its clause.
func TestEveryVictimReasonHasAClause(t *testing.T) {
	for _, r := range standard.Reasons() {
		if r.Protects == "" && strings.HasPrefix(string(r.Reason), "Victim") {
			t.Errorf("%s has no clause", r.Reason)
		}
	}
}
