package engine_test

import (
	"testing"

	"github.com/berth-project/berth/engine"
)

// dependent is a plugin that requires others.
type dependent struct {
	policy
	requires []string
}

func (d *dependent) Requires() []string { return d.requires }

func TestProfileHasWhatItsPluginsRequire(t *testing.T) {
	r := engine.NewRegistry()
	for _, p := range []engine.Plugin{
		fit(), &policy{name: "Shares"},
		&dependent{policy{name: "Takes"}, []string{"Shares", "Fit"}},
		&dependent{policy{name: "Typo"}, []string{"Share"}},
	} {
		if err := r.RegisterPluginBuilder(p.Name(), func(engine.Arguments) (engine.Plugin, error) { return p, nil }); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		profile engine.Profile
		want    string
	}{
		"all there":      {engine.Profile{{Name: "Shares"}, {Name: "Takes"}, {Name: "Fit"}}, ""},
		"after it":       {engine.Profile{{Name: "Takes"}, {Name: "Fit"}, {Name: "Shares"}}, ""},
		"one missing":    {engine.Profile{{Name: "Fit"}, {Name: "Takes", Where: "c.yaml:3"}}, "c.yaml:3: plugin Takes: it requires the plugin Shares, which is not in the profile; add Shares, or remove Takes"},
		"both missing":   {engine.Profile{{Name: "Takes"}}, "plugin Takes: it requires the plugin Shares, which is not in the profile; add Shares, or remove Takes\nplugin Takes: it requires the plugin Fit, which is not in the profile; add Fit, or remove Takes"},
		"not registered": {engine.Profile{{Name: "Typo"}}, `plugin Typo: it requires the plugin Share, which is not registered; did you mean "Shares"?`},
		"there, but bad": {engine.Profile{{Name: "Takes"}, {Name: "Fit"}, {Name: "Shares", Weight: -1}}, "plugin Shares: weight -1 is not between 1 and 100000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := engine.New(r, tt.profile)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
