package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// TestPluginsOfOneProfile checks that a plugin which only one of two profiles has is an error when
// the engine is built, or works. Otherwise every session would fail.
func TestPluginsOfOneProfile(t *testing.T) {
	rejected := 0
	for _, plugin := range standard.Profile() {
		without := slices.DeleteFunc(standard.Profile(), func(c engine.PluginConfig) bool { return c.Name == plugin.Name })
		e, err := engine.NewProfiles(standard.Registry(), []engine.NamedProfile{{Name: "a", Plugins: standard.Profile()}, {Name: "b", Plugins: without}})
		if err != nil {
			if rejected++; !strings.Contains(err.Error(), plugin.Name) {
				t.Errorf("without %s: %v", plugin.Name, err)
			}
			continue
		}
		state := enginetest.State(enginetest.Node("n").GPUs(1, "A100", "80Gi"), enginetest.Job("j").Devices(1))
		if _, err := e.Open(state, engine.Options{Now: 1}).Run(); err != nil {
			t.Errorf("one profile without %s: %v", plugin.Name, err)
		}
	}
	if rejected == 0 || rejected == len(standard.Profile()) {
		t.Errorf("%d of %d plugins must be the same in all profiles", rejected, len(standard.Profile()))
	}
}
