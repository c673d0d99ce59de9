package keep

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestProtected(t *testing.T) {
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want engine.Verdict
	}{
		"no label":         {enginetest.Job("victim"), engine.NoOpinion},
		"the label":        {enginetest.Job("victim").Label("keep", "true"), engine.Protect(Kept)},
		"without a value":  {enginetest.Job("victim").Label("keep", ""), engine.Protect(Kept)},
		"another label":    {enginetest.Job("victim").Label("keeper", "true"), engine.NoOpinion},
		"all of a gang":    {enginetest.Job("victim").Gang(2).Label("keep", "true"), engine.Protect(Kept)},
		"surplus of a job": {enginetest.Job("victim").Gang(2).Min(1).Label("keep", "true"), engine.Protect(Kept)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(enginetest.Node("a"), enginetest.Job("urgent"), tt.job.Preemptible().On("a"))
			may := protect(state.Job("job/urgent"), nil)
			if got := may(engine.VictimOf(state.Job("job/victim").Tasks()[0])); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"label": "hold"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
