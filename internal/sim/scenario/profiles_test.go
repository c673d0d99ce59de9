package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/plugins/standard"
)

const profilesHead = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"

// TestProfilesAreLaidOverThePlugins checks what a profile inherits from the plugins of the
// configuration, and what it replaces.
func TestProfilesAreLaidOverThePlugins(t *testing.T) {
	type plugin struct {
		Weight   int64
		Strategy string
	}
	none := plugin{Weight: -1}
	tests := map[string]struct {
		plugins, own string
		want         plugin
	}{
		"nothing is said":         {"", "", none}, // FillValue packs
		"of another policy":       {"{name: DeviceOrder}", "", plugin{1, ""}},
		"of the configuration":    {"{name: NodeResourcesFitPlus, weight: 5, arguments: {s: Pack}}", "", plugin{5, "Pack"}},
		"of the profile":          {"", "{name: NodeResourcesFitPlus, weight: 5, arguments: {s: Pack}}", plugin{5, "Pack"}},
		"only the weight":         {"{name: NodeResourcesFitPlus, weight: 5, arguments: {s: Pack}}", "{name: NodeResourcesFitPlus, weight: 6}", plugin{6, "Pack"}},
		"only the arguments":      {"{name: NodeResourcesFitPlus, weight: 5, arguments: {s: Pack}}", "{name: NodeResourcesFitPlus, arguments: {s: Spread}}", plugin{5, "Spread"}},
		"disabled in the profile": {"{name: NodeResourcesFitPlus, weight: 5}", "{name: NodeResourcesFitPlus, disabled: true}", none},
		"enabled in the profile":  {"{name: NodeResourcesFitPlus, disabled: true}", "{name: NodeResourcesFitPlus}", plugin{1, ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := manifest.Parse("f.yaml", []byte(profilesHead+"plugins: ["+tt.plugins+"]\nprofiles:\n- schedulerName: a\n  plugins: ["+tt.own+"]\n- {schedulerName: b}"))
			if err != nil {
				t.Fatal(err)
			}
			profiles, err := Profiles(b)
			if err != nil || len(profiles) != 2 || profiles[0].Name != "a" || profiles[1].Name != "b" {
				t.Fatal(err, profiles)
			}
			got := none
			for _, p := range profiles[0].Plugins {
				if p.Name != "NodeResourcesFitPlus" {
					continue
				}
				var args struct {
					S string `json:"s"`
				}
				if p.Arguments != nil {
					if err := p.Arguments.Decode(&args); err != nil {
						t.Fatal(err)
					}
				}
				got = plugin{p.Weight, args.S}
			}
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			base, err := Profile(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(len(base), len(profiles[1].Plugins)); diff != "" {
				t.Errorf("a profile without plugins is not that of the configuration: %s", diff)
			}
		})
	}
}

// TestAPluginOfTheConfigurationAndNotOfTheProfile checks that a profile can disable a plugin
// that the default profile does not have.
func TestAPluginOfTheConfigurationAndNotOfTheProfile(t *testing.T) {
	b, err := manifest.Parse("f.yaml", []byte(profilesHead+"plugins: [{name: Mine}]\nprofiles: [{schedulerName: a, plugins: [{name: Mine, disabled: true}]}, {schedulerName: b}]"))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := Profiles(b)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, want := len(profiles[0].Plugins), len(profiles[1].Plugins), len(standard.Profile()); a != want || b != want+1 {
		t.Errorf("the profiles have %d and %d plugins, want %d and %d", a, b, want, want+1)
	}
}

// TestProfilesThatAreWrong checks the errors about profiles, from the file to the engine.
func TestProfilesThatAreWrong(t *testing.T) {
	const job = "\n---\napiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec:\n  schedulerName: fats\n  tasks: [{name: w}]"
	must := "it decides about the jobs of all profiles, and must be the same in all; "
	tests := map[string]struct{ file, want string }{
		"no name":            {"profiles:\n- plugins: []", "f.yaml:4:3: profiles[0]: schedulerName is missing: it is the name of the profile"},
		"a name twice":       {"profiles:\n- schedulerName: a\n- schedulerName: a", `f.yaml:5:18: profiles[1].schedulerName: profile "a" is already profiles[0]; give it another name, or merge the two`},
		"an unknown field":   {"profiles:\n- name: a", `f.yaml:4:3: profiles[0]: unknown field "name"; known: packing, plugins, schedulerName`},
		"a plugin twice":     {"profiles:\n- schedulerName: a\n  plugins:\n  - {name: X}\n  - {name: X}", `f.yaml:7:12: profiles[0].plugins[1].name: plugin "X" is already configured as profiles[0].plugins[0]; merge the two entries`},
		"a wrong weight":     {"profiles:\n- schedulerName: a\n  plugins:\n  - {name: X, weight: 0}", "f.yaml:6:23: profiles[0].plugins[0].weight: want a weight from 1 to 100000, have 0; to switch a plugin off write disabled: true"},
		"no such plugin":     {"profiles:\n- schedulerName: a\n  plugins:\n  - {name: DeviceOrders}", `f.yaml:6: plugin DeviceOrders: no such plugin; did you mean "DeviceOrder"?`},
		"required":           {"profiles:\n- schedulerName: a\n  plugins:\n  - {name: NodeResourcesFit, disabled: true}", "f.yaml:6: plugin NodeResourcesFit: it cannot be disabled: without it two tasks could be given the same room; remove the entry"},
		"other shares":       {"profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins:\n  - {name: FairShare, arguments: {divide: [cpu]}}", `f.yaml:7: plugin FairShare: ` + must + `in profile "b" it has other arguments than in profile "a"; configure it outside of the profiles`},
		"no preemption":      {"profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins:\n  - {name: Preempt, disabled: true}", `plugin Preempt: ` + must + `profile "a" has it and profile "b" does not; enable or disable it for all profiles, outside of them`},
		"an unknown profile": {"profiles: [{schedulerName: fast}]" + job, `f.yaml:9:18: spec.schedulerName: there is no profile "fats"; did you mean "fast"?`},
		"no such profile":    {"profiles: [{schedulerName: slow}, {schedulerName: quick}]" + job, `f.yaml:9:18: spec.schedulerName: there is no profile "fats"; the configuration has slow or quick`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := manifest.Parse("f.yaml", []byte(profilesHead+tt.file))
			if err == nil {
				err = b.Validate()
			}
			if err == nil {
				_, err = Engine(standard.Registry(), b)
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestEqualArgumentsAreOnePlugin checks that profiles share a plugin for which they write the
// same arguments, also one that must be the same in all.
func TestEqualArgumentsAreOnePlugin(t *testing.T) {
	b, err := manifest.Parse("f.yaml", []byte(profilesHead+`profiles:
- schedulerName: a
  plugins:
  - {name: FairShare, arguments: {divide: [cpu, memory]}}
- schedulerName: b
  plugins:
  - name: FairShare
    arguments:
      divide: ["cpu", "memory"]
`))
	if err != nil {
		t.Fatal(err)
	}
	var e *engine.Engine
	if e, err = Engine(standard.Registry(), b); err != nil || e == nil {
		t.Error(err)
	}
}
