package whatif

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
)

// TestChangesOfTheInput checks changes that help in the input, and changes that would help only
// after the simulation.
func TestChangesOfTheInput(t *testing.T) {
	a100 := func(name string) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(96, "512Gi").GPUs(2, "A100", "80Gi")
	}
	large := func(s *cluster.Shape) { s.Need.Partition = "3g.40gb" }
	tests := map[string]struct {
		parts       []enginetest.Part
		helps, none []string // texts of changes
	}{
		"an earlier turn": {
			[]enginetest.Part{a100("a"), enginetest.Job("first").Devices(2), enginetest.Job("x").Devices(2).Created(5)},
			[]string{"with job/first (Standard, not preemptible, 2 devices on a) removed"}, nil,
		},
		"others take the added node first": {
			[]enginetest.Part{a100("a"), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("first").Devices(2), enginetest.Job("x").Devices(2).Created(5)},
			[]string{"with 2 more nodes of A100 × 2"}, []string{"with one more node of A100 × 2"},
		},
		"a workload of the queue whose quota is reached": {
			[]enginetest.Part{enginetest.Queue("q").Quota("nvidia.com/gpu", 2000), a100("a"), a100("b"), enginetest.Job("y").Queue("q").Devices(2).On("a"), enginetest.Job("x").Queue("q").Devices(2)},
			[]string{"with job/y (Standard, not preemptible, 2 devices on a) removed", "as a preemptible job"}, nil,
		},
		"a smaller slice": {
			[]enginetest.Part{
				enginetest.Node("m").CPU(96, "512Gi").Slices(1, "A100", "3g.40gb", "40Gi").Slices(2, "A100", "1g.10gb", "10Gi"),
				enginetest.Job("y").Devices(1).Shape(large).On("m"), enginetest.Job("x").Devices(1).Shape(large),
			},
			[]string{"on a slice of profile 1g.10gb instead of 3g.40gb"}, nil,
		},
		"a running task holds the devices": {
			[]enginetest.Part{a100("a"), enginetest.Node("b").CPU(96, "512Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("x").Gang(2).Min(2).Devices(2).On("a")},
			[]string{"with minMember 1 instead of 2"}, []string{"with 1 device instead of 2", "with 1 device per task instead of 2"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, text := ask(t, enginetest.State(tt.parts...), "job/x")
			for _, c := range tt.helps {
				if !slices.Contains(fitting(r), c) {
					t.Errorf("not found: %s\n%s", c, text)
				}
			}
			for _, c := range tt.none {
				if slices.Contains(fitting(r), c) {
					t.Errorf("does not help: %s\n%s", c, text)
				}
			}
		})
	}
}

// TestSettingOfAllReplicas checks that a setting of a model is tried for all replicas.
func TestSettingOfAllReplicas(t *testing.T) {
	replica := func(name string, devices int) *enginetest.JobBuilder {
		return enginetest.Job(name).Devices(devices).Set("job/m", 2)
	}
	state := enginetest.State(h100("a"), replica("m-0", 9), replica("m-1", 9))
	smaller := Knob{Steps: 1, At: func(int) (string, int, []string, []*cluster.Job) {
		return "with a smaller setting", 20, nil, []*cluster.Job{replica("m-0", 8).Build(), replica("m-1", 8).Build()}
	}}
	r, err := Why(Question{Engine: explaintest.Engine(t), State: state, Workload: "job/m-1", Knobs: func(string) []Knob { return []Knob{smaller} }})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(fitting(r), func(c string) bool { return c == "with a smaller setting" }) {
		t.Errorf("the setting makes both replicas fit one node: %v", fitting(r))
	}
}
