package spot_test

import (
	"fmt"
	"testing"

	"example.com/my-berth/spot"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/spotinstancemanager"
)

const label = "kai.scheduler/instance-type"

// Berth includes a plugin with the same rules and static hooks. Both plugins must give the
// same result for each case.
var forms = map[string]engine.PluginBuilder{
	"task form":   spot.New,
	"static form": spotinstancemanager.New,
}

func TestPlacement(t *testing.T) {
	regular := enginetest.Node("regular").Label(label, "on-demand")
	onSpot := enginetest.Node("a-spot").Label(label, "spot") // its name sorts first: it would be chosen if the scores were equal
	train := enginetest.Job("train")
	batch := enginetest.Job("batch").Preemptible()

	tests := map[string]struct {
		parts []enginetest.Part
		want  string // node and score, or reason and cure
	}{
		"not preemptible, both exist": {[]enginetest.Part{regular, onSpot, train}, "regular 1000"},
		"not preemptible, only spot":  {[]enginetest.Part{onSpot, train}, "SpotNotAllowed Grow|Relax kai.scheduler/instance-type=spot"},
		"preemptible prefers regular": {[]enginetest.Part{regular, onSpot, batch}, "regular 1000"},
		"preemptible may use spot":    {[]enginetest.Part{onSpot, batch}, "a-spot 0"},
		"no label is regular":         {[]enginetest.Part{enginetest.Node("plain"), train}, "plain 1000"},
	}
	for form, build := range forms {
		for name, tt := range tests {
			t.Run(form+"/"+name, func(t *testing.T) {
				if got := decide(t, build, tt.parts); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// decide runs one session with the plugin alone, at weight 10, and returns the result for the job.
func decide(t *testing.T, build engine.PluginBuilder, parts []enginetest.Part) string {
	t.Helper()
	registry := engine.NewRegistry()
	if err := registry.RegisterPluginBuilder(spot.Name, build); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, engine.Profile{{Name: spot.Name, Weight: 10}})
	if err != nil {
		t.Fatal(err)
	}
	session := e.Open(enginetest.State(parts...), engine.Options{Search: engine.Twin})
	defer session.Close()
	out, err := session.Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Refusals) > 0 {
		r := out.Refusals[0].Attempts[0].Nearest[0].Rejection
		return fmt.Sprint(r.Reason, " ", r.Cure, " ", r.Subject)
	}
	d := out.Decisions[0]
	return fmt.Sprint(d.Node, " ", d.Score.Total/1000) // totals are in thousandths
}

func TestArgumentsAreStrict(t *testing.T) {
	if _, err := spot.New(enginetest.Arguments(`{}`)); err != nil {
		t.Error(err)
	}
	if _, err := spot.New(enginetest.Arguments(`{"nonSpotScore": 1000}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
