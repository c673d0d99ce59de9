package consolidate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestConsolidating(t *testing.T) {
	node := func(name string) *enginetest.NodeBuilder { return enginetest.Node(name).GPUs(4, "A100", "80Gi") }
	job := func(name string) *enginetest.JobBuilder { return enginetest.Job(name).Devices(1).Preemptible() }
	tests := map[string]struct {
		parts []enginetest.Part
		want  []string
	}{
		"one task is moved":                        {[]enginetest.Part{node("a"), node("b"), job("x").On("a"), job("y").Devices(2).On("b"), enginetest.Job("new").Devices(4)}, []string{"job/x/worker-0 to b"}},
		"the fewest tasks are moved":               {[]enginetest.Part{node("a"), node("b"), job("w").On("a"), job("x").On("a"), job("y").Devices(2).On("b"), enginetest.Job("new").Devices(4)}, []string{"job/y/worker-0 to a"}},
		"no move if one task has no other node":    {[]enginetest.Part{node("a"), node("b"), job("w").On("a"), job("x").On("a"), enginetest.Job("y").Devices(3).On("b"), enginetest.Job("new").Devices(4)}, nil},
		"no move if too little is free":            {[]enginetest.Part{node("a"), node("b"), job("x").On("a"), job("y").Devices(4).On("b"), enginetest.Job("new").Devices(4)}, nil},
		"no move of jobs that are not preemptible": {[]enginetest.Part{node("a"), node("b"), enginetest.Job("x").Devices(1).On("a"), enginetest.Job("y").Devices(2).On("b"), enginetest.Job("new").Devices(4)}, nil},
		"a gang is moved as a whole":               {[]enginetest.Part{node("a"), node("b"), node("c"), job("x").Gang(2).On("a", "b"), enginetest.Job("y").Devices(2).On("c"), enginetest.Job("new").Gang(2).Devices(4)}, []string{"job/x/worker-0 to c", "job/x/worker-1 to c"}},
		"a surplus task is moved alone":            {[]enginetest.Part{node("a"), node("b"), job("x").Gang(2).Min(1).On("a", "b"), enginetest.Job("new").Devices(4)}, []string{"job/x/worker-0 to b"}},
		"no move if the job fits":                  {[]enginetest.Part{node("a"), node("b"), job("x").On("a"), enginetest.Job("new").Devices(4)}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(tt.parts...)
			s := enginetest.Engine(enginetest.Fit(), &plugin{}).Open(state, engine.Options{})
			defer s.Close()
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range out.Decisions {
				if d.Action == engine.EvictTask {
					if d.Reason != Consolidated || d.For != "job/new" {
						t.Errorf("%s: %s for %s", d.Task.ID(), d.Reason, d.For)
					}
					got = append(got, d.Task.ID()+" to "+state.Task(d.Task).Landing().Node.Name)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("moved (-want +got):\n%s", d)
			}
			for _, j := range state.Jobs() {
				if j.ID != "job/new" && j.Placed() != len(j.Tasks()) {
					t.Errorf("%s has %d tasks left", j.ID, j.Placed())
				}
			}
			if n := state.Job("job/new"); n.HasMinimum() != (len(out.Decisions) > 0) {
				t.Errorf("the job has its minimum: %t", n.HasMinimum())
			}
		})
	}
}
