package stalegang

import (
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func grace(text string) engine.Arguments {
	return enginetest.Arguments(`{"grace": "` + text + `"}`)
}

func TestArguments(t *testing.T) {
	for text, ok := range map[string]bool{"0s": true, "5m": true, "-1s": false, "soon": false, "": false} {
		if _, err := New(grace(text)); (err == nil) != ok {
			t.Errorf("grace %q: %v", text, err)
		}
	}
}

// The grace period of a job overrides the default of a minute. It is counted from the time
// at which the job fell below its minimum, as reported.
func TestGraceOfAJob(t *testing.T) {
	tests := map[string]struct {
		own  time.Duration
		torn int64
		want map[time.Duration]int // evictions, by when
	}{
		"a longer grace period":     {10 * time.Minute, 1, map[time.Duration]int{5 * time.Minute: 0, 11 * time.Minute: 1}},
		"no grace period":           {0, 1, map[time.Duration]int{time.Second: 1}},
		"no eviction":               {-1, 1, map[time.Duration]int{1000 * time.Hour: 0}},
		"the start is reported":     {time.Minute, int64(2 * time.Minute), map[time.Duration]int{2*time.Minute + 59*time.Second: 0, 3 * time.Minute: 1}},
		"the start is not reported": {time.Minute, 0, map[time.Duration]int{time.Hour: 0}},
	}
	for name, tt := range tests {
		for now, want := range tt.want {
			t.Run(name+" at "+now.String(), func(t *testing.T) {
				p, err := New(grace("60s"))
				if err != nil {
					t.Fatal(err)
				}
				gang := enginetest.Job("gang").Gang(2).Devices(1).StaleGrace(int64(tt.own)).Build()
				gang.OwnDetails().BelowMinimumSince = tt.torn
				state := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"))
				for _, c := range []cluster.Change{cluster.JobPut{Job: *gang}, cluster.TaskSeen{Task: cluster.TaskRef{Job: "job/gang", Name: "worker-0"}, Node: "a"}} {
					if err := state.Apply(c); err != nil {
						t.Fatal(err)
					}
				}
				s := enginetest.Engine(enginetest.Fit(), p).Open(state, engine.Options{Now: int64(now)})
				defer s.Close()
				out, err := s.Run()
				if err != nil {
					t.Fatal(err)
				}
				if len(out.Decisions) != want {
					t.Errorf("%d evictions, want %d", len(out.Decisions), want)
				}
			})
		}
	}
}

// A task of the gang is pending. The gang is left alone for a minute from the first session
// that finds it below its minimum, and is then evicted.
func TestGrace(t *testing.T) {
	p, err := New(grace("60s"))
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("gang").Gang(3).Devices(1).On("a", "a"))
	e := enginetest.Engine(enginetest.Fit(), p)
	at := func(now time.Duration) []engine.Decision {
		s := e.Open(state, engine.Options{Now: int64(now)})
		defer s.Close()
		out, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		return out.Decisions
	}
	if got := len(at(100*time.Second)) + len(at(159*time.Second)); got != 0 {
		t.Fatalf("%d decisions before its time", got)
	}
	got := at(160 * time.Second)
	if len(got) != 2 {
		t.Fatalf("%d decisions", len(got))
	}
	for _, d := range got {
		if d.Action != engine.EvictTask || d.Reason != GangBelowMinimum || d.Task.Job != "job/gang" || d.For != "" {
			t.Errorf("%+v", d)
		}
	}
	for _, task := range state.Job("job/gang").Tasks() {
		if err := state.Apply(cluster.TaskSeen{Task: task.Ref()}); err != nil {
			t.Fatal(err)
		}
	}
	if at(170 * time.Second); state.Job("job/gang").BelowMinimumSince != 0 {
		t.Error("the job still counts as below its minimum")
	}
}
