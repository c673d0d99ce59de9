package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/model"
)

// A running replica keeps its form even if the spec does not allow that form any more.
func TestRunningReplicas(t *testing.T) {
	runs := func(tasks map[string]int) func(*model.Spec) {
		return func(s *model.Spec) { s.Existing = []model.Replica{{Tasks: tasks}} }
	}
	g := groups(a10s("a", 4))
	mixed := groups(a10s("a", 4), enginetest.Node("b").GPUs(1, "T4", "16Gi"))
	one := func(s *model.Spec) { s.Place.Devices = 1 }
	tests := map[string]struct {
		spec  *model.Spec
		nodes []*cluster.Group
		want  []string
		only  int // index of the first alternative that is only for the running replica
	}{
		"among the forms":            {spec(t, "custom", "", total(8), runs(map[string]int{"server-0": 2})), g, []string{"1 device", "2 devices (tp 2)", "4 devices (tp 4)"}, 3},
		"number of devices unknown":  {spec(t, "custom", "", total(8), one, runs(map[string]int{"server-0": -1})), g, []string{"1 device"}, 1},
		"more devices than now":      {spec(t, "custom", "", total(8), one, runs(map[string]int{"server-0": 4})), g, []string{"1 device", "4 devices (tp 4)"}, 1},
		"in a form with a problem":   {spec(t, "custom", "", total(30), runs(map[string]int{"server-0": 1})), g, []string{"2 devices (tp 2)", "4 devices (tp 4)", "1 device"}, 2},
		"three do not divide":        {spec(t, "mindie", "", total(8), runs(map[string]int{"server-0": 3})), groups(npus("a", 4)), []string{"1 device", "2 devices (tp 2)", "4 devices (tp 4)", "3 devices (tp 1, pp 3)"}, 3},
		"tasks of no form":           {spec(t, "custom", "", total(8), one, runs(map[string]int{"node-0": 1})), g, []string{"1 device"}, 1},
		"on several nodes":           {spec(t, "vllm", "", total(100), distributed, runs(map[string]int{"leader-0": 4, "worker-0": 4})), mixed, []string{"4 devices (tp 4)", "2 nodes of A10 × 4 (tp 4, pp 2)"}, 1},
		"on no device":               {spec(t, "voxbox", "", use(table(1)), offload, runs(map[string]int{"server-0": 0})), g, []string{"1 device", "CPU"}, 2},
		"whole nodes, same form":     {spec(t, "vllm", "", total(8), wholeNodes, runs(map[string]int{"node-0": 4})), g, []string{"1 whole node of A10 × 4 (tp 4)"}, 1},
		"whole nodes by their group": {spec(t, "vllm", "", total(8), wholeNodes, kept("T4", 1, 3), runs(map[string]int{"node-0": 1, "node-1": 1, "node-2": 1})), g, []string{"3 whole nodes of T4 × 1 (tp 1, pp 3)"}, 1},
	}
	for name, tt := range tests {
		j := convert(t, tt.spec, tt.nodes).Jobs[0]
		if diff := cmp.Diff(append(tt.want, model.AsItRuns), alternatives(j)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.only, slices.IndexFunc(j.Alternatives, func(a cluster.Alternative) bool { return a.Running })); diff != "" {
			t.Errorf("%s: the first alternative for a running replica only (-want +got):\n%s", name, diff)
		}
	}
}

// The last alternative requests only what the running tasks hold.
func TestAsItRuns(t *testing.T) {
	runs := func(tasks map[string]int) func(*model.Spec) {
		return func(s *model.Spec) { s.Existing = []model.Replica{{Tasks: tasks}} }
	}
	tests := map[string]struct {
		spec *model.Spec
		want map[string]cluster.Need
	}{
		"a share": {
			spec(t, "vllm", "", use(toy()), selected("a:cuda:1"), runs(map[string]int{"leader-0": 4, "worker-10": 2})),
			map[string]cluster.Need{"leader-0": {Devices: 4, Share: 900}, "worker-10": {Devices: 2, Share: 900}},
		},
		"a static share":  {spec(t, "sglang", "", use(toy()), runs(map[string]int{"server-0": 1})), map[string]cluster.Need{"server-0": {Devices: 1}}},
		"whole devices":   {spec(t, "custom", "", each(1), runs(map[string]int{"node-0": 3})), map[string]cluster.Need{"node-0": {Devices: 3}}},
		"no device":       {spec(t, "vllm", "", use(toy()), runs(map[string]int{"server-0": 0})), map[string]cluster.Need{"server-0": {}}},
		"devices unknown": {spec(t, "custom", "", each(1), runs(map[string]int{"server-0": -1, "node-0": -1})), map[string]cluster.Need{"server-0": {Devices: 1}, "node-0": {WholeNode: true}}},
		"no such task":    {spec(t, "custom", "", each(1), runs(map[string]int{"sever-0": 1})), nil},
	}
	for name, tt := range tests {
		j := convert(t, tt.spec, groups(a10s("a", 4))).Jobs[0]
		var got map[string]cluster.Need
		if last := j.Alternatives[len(j.Alternatives)-1]; last.Running {
			got = map[string]cluster.Need{}
			for _, task := range last.Tasks {
				got[task.Name] = task.Shape.Need
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
