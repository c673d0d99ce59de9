package statusfilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestAdmit(t *testing.T) {
	not := func(phase string) *engine.Rejection {
		return &engine.Rejection{Reason: NodeNotReady, Cure: engine.Wait, Subject: phase}
	}
	tests := map[string]struct {
		phase cluster.Phase
		want  *engine.Rejection
	}{
		"no phase":    {"", nil},
		"ready":       {cluster.PhaseReady, nil},
		"not ready":   {"NOT_READY", not("NOT_READY")},
		"unreachable": {"UNREACHABLE", not("UNREACHABLE")},
		"case counts": {"ready", not("ready")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, admit(nil, enginetest.Node("n").Phase(tt.phase).Build())); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

// The filter applies to all tasks, and waiting cures its rejections.
func TestNothingIsPlacedOnNodesThatAreNotReady(t *testing.T) {
	jobs := map[string]*enginetest.JobBuilder{
		"a job":   enginetest.Job("j").CPU(1000, "1Gi"),
		"a model": enginetest.Job("j").CPU(1000, "1Gi").ModelReplica(cluster.Binpack),
	}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			p, err := New(engine.NoArguments{})
			if err != nil {
				t.Fatal(err)
			}
			state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").Phase("NOT_READY"), job)
			s := enginetest.Engine(p, enginetest.Fit()).Open(state, engine.Options{Search: engine.Twin})
			defer s.Close()
			out, err := s.Run()
			if err != nil || len(out.Decisions) != 0 || len(out.Refusals) != 1 {
				t.Fatalf("outcome %+v, error %v", out, err)
			}
			if r := out.Refusals[0]; r.Permanent || r.Reason != NodeNotReady {
				t.Errorf("refused with %s, permanent %v; want %s, to be waited for", r.Reason, r.Permanent, NodeNotReady)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"phase": "READY"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
