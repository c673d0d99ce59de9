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
		return engine.Rival{Job: name, Tier: tier, Tasks: tasks, Priority: priority, Started: started, Tried: true}
	}
	it := rival("v", cluster.TierStandard, 1, 5, 9)
	spare := it
	spare.Surplus = true
	enough := rival("cheap", cluster.TierStandard, 1, 0, 9)
	enough.Enough = true
	cost := engine.Cost{Tasks: [3]int{0, 1, 0}, Priority: 5, Youngest: 9}
	tests := map[string]struct {
		rivals []engine.Rival
		cost   engine.Cost
		also   []string
		want   string
	}{
		"nothing is known": {nil, cost, nil, ""},
		"alone":            {[]engine.Rival{it}, cost, nil, "No other workload could have gone."},
		"weakest tier": {[]engine.Rival{it, rival("a", cluster.TierGuaranteed, 1, 0, 10)}, cost, nil,
			"Of 2 workloads that could have gone, it is the only one of the weakest tier (Standard)."},
		"smallest": {[]engine.Rival{it, rival("a", cluster.TierStandard, 2, 0, 10)}, cost, nil,
			"Of 2 workloads that could have gone, it is the only one with the fewest tasks (1)."},
		"youngest": {[]engine.Rival{it, rival("a", cluster.TierStandard, 1, 5, 8)}, cost, nil,
			"Of 2 workloads that could have gone, it is the youngest."},
		"tier, priority and youngest": {[]engine.Rival{it, rival("a", cluster.TierGuaranteed, 1, 0, 10), rival("b", cluster.TierStandard, 1, 6, 10), rival("c", cluster.TierStandard, 1, 5, 8)}, cost, nil,
			"Of 4 workloads that could have gone, it is the youngest of those of the weakest tier (Standard) and of the lowest priority (5)."},
		"alike": {[]engine.Rival{it, rival("a", cluster.TierStandard, 1, 5, 9)}, cost, nil,
			"Of 2 workloads that could have gone, all are alike in what counts."},
		"two alike": {[]engine.Rival{it, rival("a", cluster.TierStandard, 1, 5, 9), rival("b", cluster.TierStandard, 1, 5, 1)}, cost, nil,
			"Of 3 workloads that could have gone, it is one of the 2 youngest."},
		"the first would not do": {[]engine.Rival{rival("a", cluster.TierStandard, 1, 0, 9), it}, cost, nil,
			"Of 2 workloads that could have gone, a was nearer to going, but would not have been enough."},
		"the first would have done": {[]engine.Rival{enough, it}, cost, nil, ""},
		"its job can spare it": {[]engine.Rival{enough, spare}, cost, nil,
			"Of 2 workloads that could have gone, it is one that can spare the task."},
		"two tasks of one job": {[]engine.Rival{it, rival("a", cluster.TierStandard, 3, 5, 9)}, engine.Cost{Tasks: [3]int{0, 2, 0}, Priority: 10, Youngest: 9}, nil,
			"Of 2 workloads that could have gone, none was nearer to going."},
		"together": {[]engine.Rival{it, rival("a", cluster.TierStandard, 1, 5, 9)}, cost, []string{"a"},
			"It goes together with a. Of 2 workloads that could have gone, none alone would have been enough."},
		"together, untried": {[]engine.Rival{it, enough}, cost, []string{"a"}, "It goes together with a."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := &engine.Decision{Task: cluster.TaskRef{Job: "v"}, Weighing: &engine.Weighing{Purpose: engine.Preempt, Rivals: tt.rivals, Cost: tt.cost}}
			if got := choice(d, tt.also); got != tt.want {
				t.Errorf("have %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Every reason for which a victim is spared has its clause, and every clause its reason.
func TestClausesAreOfReasons(t *testing.T) {
	documented := map[engine.Reason]bool{}
	for _, r := range standard.Reasons() {
		documented[r.Reason] = true
		if _, ok := clauses[r.Reason]; !ok && strings.HasPrefix(string(r.Reason), "Victim") {
			t.Errorf("%s has no clause", r.Reason)
		}
	}
	for reason := range clauses {
		if !documented[reason] {
			t.Errorf("%s is no documented reason", reason)
		}
	}
}
