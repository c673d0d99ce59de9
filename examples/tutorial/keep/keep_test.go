package keep

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/fixture"
)

func TestSpared(t *testing.T) {
	tests := map[string]struct {
		job  *fixture.JobBuilder
		want engine.Verdict
	}{
		"no label":         {fixture.Job("victim"), engine.NoOpinion},
		"the label":        {fixture.Job("victim").Label("keep", "true"), engine.Protect(Kept)},
		"without a value":  {fixture.Job("victim").Label("keep", ""), engine.Protect(Kept)},
		"another label":    {fixture.Job("victim").Label("keeper", "true"), engine.NoOpinion},
		"all of a gang":    {fixture.Job("victim").Gang(2).Label("keep", "true"), engine.Protect(Kept)},
		"surplus of a job": {fixture.Job("victim").Gang(2).Min(1).Label("keep", "true"), engine.Protect(Kept)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := fixture.State(fixture.Node("a"), fixture.Job("urgent"), tt.job.Preemptible().On("a"))
			may := spare(state.Job("job/urgent"), nil)
			if got := may(engine.VictimOf(state.Job("job/victim").Tasks()[0])); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	if _, err := New(fixture.Arguments(`{"label": "hold"}`)); err == nil {
		t.Error("an argument that it does not have was taken")
	}
}
