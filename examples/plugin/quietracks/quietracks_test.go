package quietracks_test

import (
	"testing"

	"example.com/berth-quietracks/quietracks"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

func TestQuietRacks(t *testing.T) {
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want string // node, or reason
	}{
		"a firm job is rejected":      {enginetest.Job("j").Devices(1), "RackIsQuiet"},
		"a preemptible job is placed": {enginetest.Job("j").Devices(1).Preemptible(), "a"},
		"another rack is preferred":   {enginetest.Job("j").Preemptible(), "b"},
		"a firm job uses other racks": {enginetest.Job("j"), "b"},
	}
	r := standard.Registry()
	if err := r.RegisterPluginBuilder(quietracks.Name, quietracks.New); err != nil {
		t.Fatal(err)
	}
	profile := append(standard.Profile(), engine.PluginConfig{Name: quietracks.Name, Weight: 100, Arguments: enginetest.Arguments(`{"racks": ["r1"]}`)})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(r, profile)
			if err != nil {
				t.Fatal(err)
			}
			s := enginetest.State(
				enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "A10", "24Gi").Label("rack", "r1"),
				enginetest.Node("b").CPU(8, "64Gi").Label("rack", "r2"), tt.job,
			)
			out, err := e.Open(s, engine.Options{Search: engine.Twin}).Run()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(out.Decisions) > 0 {
				got = out.Decisions[0].Node
			}
			for _, r := range out.Refusals {
				for _, c := range r.Attempts[0].Counts {
					if c.Plugin == quietracks.Name {
						got = string(c.Reason)
					}
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	for _, bad := range []string{`{}`, `{"rack": ["r1"]}`, `{"racks": "r1"}`} {
		if _, err := quietracks.New(enginetest.Arguments(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
