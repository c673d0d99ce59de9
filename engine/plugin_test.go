package engine_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// dependent is a plugin that requires other plugins.
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

func TestWithArguments(t *testing.T) {
	type arguments struct {
		Roles []string `json:"roles"`
		Most  int      `json:"most"`
	}
	var got arguments
	read := func(a arguments) (engine.Plugin, error) {
		if got = a; a.Most < 0 {
			return nil, errors.New("most is below 0")
		}
		return fit(), nil
	}
	roles := engine.WithArguments(func() arguments { return arguments{Roles: []string{"leader"}, Most: 3} }, read)
	tests := map[string]struct {
		build engine.PluginBuilder
		args  engine.Arguments
		want  arguments
		err   string
	}{
		"not the defaults":                {roles, enginetest.Arguments(`{"roles": ["master"]}`), arguments{[]string{"master"}, 3}, ""},
		"no arguments":                    {roles, engine.NoArguments{}, arguments{[]string{"leader"}, 3}, ""},
		"no defaults":                     {engine.WithArguments(nil, read), enginetest.Arguments(`{"most": 1}`), arguments{Most: 1}, ""},
		"an unknown argument":             {roles, enginetest.Arguments(`{"role": "a"}`), arguments{}, `json: unknown field "role"`},
		"a value out of range":            {roles, enginetest.Arguments(`{"most": -1}`), arguments{[]string{"leader"}, -1}, "most is below 0"},
		"an argument of a plugin without": {engine.WithoutArguments(func() engine.Plugin { return fit() }), enginetest.Arguments(`{"most": 1}`), arguments{}, `json: unknown field "most"`},
		"no argument of a plugin without": {engine.WithoutArguments(func() engine.Plugin { return fit() }), enginetest.Arguments(`{}`), arguments{}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got = arguments{}
			p, err := tt.build(tt.args)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" || said != tt.err || (p == nil) != (tt.err != "") {
				t.Errorf("plugin %v, error %q, want %q; arguments (-want +got):\n%s", p, said, tt.err, d)
			}
			// Decoded values must not become defaults of the next plugin.
			if _, err := roles(engine.NoArguments{}); err != nil || got.Roles[0] != "leader" {
				t.Errorf("the defaults are %v, %v", got, err)
			}
		})
	}
}
