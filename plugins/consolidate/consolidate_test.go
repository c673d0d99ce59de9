package consolidate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

func TestConsolidating(t *testing.T) {
	node := func(name string) *fixture.NodeBuilder { return fixture.Node(name).GPUs(4, "A100", "80Gi") }
	job := func(name string) *fixture.JobBuilder { return fixture.Job(name).Devices(1).Preemptible() }
	tests := map[string]struct {
		parts []fixture.Part
		want  []string
	}{
		"one moves so that another fits":      {[]fixture.Part{node("a"), node("b"), job("x").On("a"), job("y").Devices(2).On("b"), fixture.Job("new").Devices(4)}, []string{"job/x/worker-0 to b"}},
		"the fewest move":                     {[]fixture.Part{node("a"), node("b"), job("w").On("a"), job("x").On("a"), job("y").Devices(2).On("b"), fixture.Job("new").Devices(4)}, []string{"job/y/worker-0 to a"}},
		"none where one cannot land":          {[]fixture.Part{node("a"), node("b"), job("w").On("a"), job("x").On("a"), fixture.Job("y").Devices(3).On("b"), fixture.Job("new").Devices(4)}, nil},
		"none where there is too little":      {[]fixture.Part{node("a"), node("b"), job("x").On("a"), job("y").Devices(4).On("b"), fixture.Job("new").Devices(4)}, nil},
		"none who are not preemptible":        {[]fixture.Part{node("a"), node("b"), fixture.Job("x").Devices(1).On("a"), fixture.Job("y").Devices(2).On("b"), fixture.Job("new").Devices(4)}, nil},
		"a gang moves as a whole":             {[]fixture.Part{node("a"), node("b"), node("c"), job("x").Gang(2).On("a", "b"), fixture.Job("y").Devices(2).On("c"), fixture.Job("new").Gang(2).Devices(4)}, []string{"job/x/worker-0 to c", "job/x/worker-1 to c"}},
		"surplus moves alone":                 {[]fixture.Part{node("a"), node("b"), job("x").Gang(2).Min(1).On("a", "b"), fixture.Job("new").Devices(4)}, []string{"job/x/worker-0 to b"}},
		"nothing where it fits as things are": {[]fixture.Part{node("a"), node("b"), job("x").On("a"), fixture.Job("new").Devices(4)}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := fixture.State(tt.parts...)
			s := fixture.Engine(fixture.Fit(), &plugin{}).Open(state, engine.Options{})
			defer s.Close()
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range out.Decisions {
				if d.Action == engine.EvictIt {
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
			if n := state.Job("job/new"); n.Stands() != (len(out.Decisions) > 0) {
				t.Errorf("it stands: %t", n.Stands())
			}
		})
	}
}
