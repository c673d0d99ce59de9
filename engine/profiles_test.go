package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// shared is a policy that must be the same in all profiles.
type shared struct{ policy }

func (*shared) SharedByProfiles() {}

// settings are the arguments of the plugins of profileRegistry.
type settings struct {
	Node string `json:"node"`
}

// profileRegistry returns a registry of plugins that take the name of a node as argument:
//
//	Prefers  gives the node the score 100
//	Rejects  rejects the node
//	Limits   rejects all tasks in a PreFilter
//	First    compares jobs, and must be the same in all profiles
//	Hidden   compares jobs as well, and does not say so
func profileRegistry(t *testing.T) *engine.Registry {
	t.Helper()
	r := engine.NewRegistry()
	add := func(name string, build func(settings) engine.Plugin) {
		if err := r.RegisterPluginBuilder(name, engine.WithArguments(nil, func(a settings) (engine.Plugin, error) { return build(a), nil })); err != nil {
			t.Fatal(err)
		}
	}
	add("Fit", func(settings) engine.Plugin { return fit() })
	add("Prefers", func(a settings) engine.Plugin { return prefer("Prefers", map[string]float64{a.Node: 100}) })
	add("Rejects", func(a settings) engine.Plugin {
		return &policy{name: "Rejects", open: func(s *engine.Session) {
			s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
				if n.Name == a.Node {
					return &engine.Rejection{Reason: "Unwanted"}
				}
				return nil
			})
		}}
	})
	add("Limits", func(settings) engine.Plugin {
		return &policy{name: "Limits", open: func(s *engine.Session) {
			s.Hooks.AddPreFilter(func(*cluster.Task, *cluster.Job) *engine.Rejection {
				return &engine.Rejection{Reason: "Limited", Cure: engine.Wait}
			})
		}}
	})
	byID := func(s *engine.Session) {
		s.Hooks.AddJobOrder(func(l, r *cluster.Job) int { return -strings.Compare(l.ID, r.ID) })
	}
	add("First", func(settings) engine.Plugin { return &shared{policy{name: "First", open: byID}} })
	add("Hidden", func(settings) engine.Plugin { return &policy{name: "Hidden", open: byID} })
	return r
}

// entry returns the entry of a plugin with a node as argument, or without arguments.
func entry(name, node string) engine.PluginConfig {
	c := engine.PluginConfig{Name: name}
	if node != "" {
		c.Arguments = enginetest.Arguments(fmt.Sprintf(`{"node": %q}`, node))
	}
	return c
}

// places returns the node of each decision, by job.
func places(out *engine.Outcome) map[string]string {
	got := map[string]string{}
	for i := range out.Decisions {
		got[strings.TrimPrefix(out.Decisions[i].Task.Job, "job/")] = out.Decisions[i].Node
	}
	for _, r := range out.Refusals {
		got[strings.TrimPrefix(r.Job, "job/")] = string(r.Reason)
	}
	return got
}

// TestProfilesDecideAboutTheirJobs checks that the hooks of a plugin are called for the jobs of
// the profiles that have it, that the first profile decides about all other jobs, and that no
// refusal is shared by jobs of different profiles.
func TestProfilesDecideAboutTheirJobs(t *testing.T) {
	profiles := []engine.NamedProfile{
		{Name: "left", Plugins: engine.Profile{entry("Fit", ""), entry("Prefers", "a")}},
		{Name: "right", Plugins: engine.Profile{entry("Prefers", "b"), entry("Fit", "")}},
		{Name: "strict", Plugins: engine.Profile{entry("Fit", ""), entry("Rejects", "a")}},
		{Name: "closed", Plugins: engine.Profile{entry("Limits", ""), entry("Fit", "")}},
	}
	e, err := engine.NewProfiles(profileRegistry(t), profiles)
	if err != nil {
		t.Fatal(err)
	}
	job := func(name, profile string) *enginetest.JobBuilder {
		return enginetest.Job(name).CPU(1000, "1Gi").Profile(profile)
	}
	want := map[string]string{"1": "a", "2": "b", "3": "b", "4": "Limited", "5": "a", "6": "a", "7": "Limited", "8": "b"}
	for _, patient := range []bool{false, true} {
		state := enginetest.State(
			enginetest.Node("a").CPU(8, "8Gi"), enginetest.Node("b").CPU(8, "8Gi"),
			job("1", "left"), job("2", "right"), job("3", "strict"), job("4", "closed"), job("5", ""), job("6", "unknown"), job("7", "closed"), job("8", "right"),
		)
		s := e.Open(state, engine.Options{Search: engine.Twin, Patient: patient})
		out, err := s.Run()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, places(&out)); diff != "" {
			t.Errorf("patient %v (-want +got):\n%s", patient, diff)
		}
		for _, d := range out.Decisions {
			for _, p := range d.Score.Parts {
				if d.Score.Weight != 1 || p.Plugin != "Prefers" {
					t.Errorf("%s has the score %+v", d.Task.Job, d.Score)
				}
			}
		}
	}
}

// TestProfilesShareOneOrder checks that jobs of different profiles are tried in one order.
func TestProfilesShareOneOrder(t *testing.T) {
	base := engine.Profile{entry("Fit", ""), entry("First", "")}
	e, err := engine.NewProfiles(profileRegistry(t), []engine.NamedProfile{
		{Name: "left", Plugins: append(base[:2:2], entry("Prefers", "a"))}, {Name: "right", Plugins: append(base[:2:2], entry("Prefers", "b"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	parts := []enginetest.Part{enginetest.Node("a").CPU(8, "8Gi"), enginetest.Node("b").CPU(8, "8Gi")}
	var want []string
	for i := range 6 {
		parts = append(parts, enginetest.Job(fmt.Sprint(i)).CPU(1000, "1Gi").Profile([]string{"left", "right"}[i/2%2]))
		want = append(want, fmt.Sprint("job/", 5-i))
	}
	out, err := e.Open(enginetest.State(parts...), engine.Options{}).Run()
	if diff := cmp.Diff(want, out.Tried); diff != "" || err != nil {
		t.Errorf("%v, tried (-want +got):\n%s", err, diff)
	}
}

// TestReserversCountTasksOfAllProfiles checks that a Reserver counts the tasks of profiles that
// do not have its plugin, and rejects only tasks of those that do.
func TestReserversCountTasksOfAllProfiles(t *testing.T) {
	r := profileRegistry(t)
	held := 0
	build := func(engine.Arguments) (engine.Plugin, error) {
		return &policy{name: "License", open: func(s *engine.Session) {
			s.Hooks.AddReserve(nil, engine.Reserver{
				Reserve: func(*cluster.Task, *cluster.Node) *engine.Rejection {
					if held++; held > 1 {
						return &engine.Rejection{Reason: "NoLicense", Cure: engine.Wait}
					}
					return nil
				},
				Unreserve: func(*cluster.Task, *cluster.Node) { held-- },
			})
		}}, nil
	}
	if err := r.RegisterPluginBuilder("License", build); err != nil {
		t.Fatal(err)
	}
	e, err := engine.NewProfiles(r, []engine.NamedProfile{
		{Name: "free", Plugins: engine.Profile{entry("Fit", "")}}, {Name: "licensed", Plugins: engine.Profile{entry("Fit", ""), entry("License", "")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	job := func(name, profile string) *enginetest.JobBuilder {
		return enginetest.Job(name).CPU(1000, "1Gi").Profile(profile)
	}
	out, err := e.Open(enginetest.State(enginetest.Node("a").CPU(8, "8Gi"), job("1", "free"), job("2", "licensed"), job("3", "free")), engine.Options{Search: engine.Twin}).Run()
	want := map[string]string{"1": "a", "2": "NoLicense", "3": "a"}
	if diff := cmp.Diff(want, places(&out)); diff != "" || err != nil || held != 2 {
		t.Errorf("%v, %d held, decisions (-want +got):\n%s", err, held, diff)
	}
}

// TestReserversChooseDevicesForTheirProfiles checks that a Reserver does not choose the devices of
// tasks of profiles that do not have its plugin.
func TestReserversChooseDevicesForTheirProfiles(t *testing.T) {
	r := profileRegistry(t)
	build := func(engine.Arguments) (engine.Plugin, error) {
		return &policy{name: "Chooses", open: func(s *engine.Session) {
			s.Hooks.AddReserve(nil, engine.Reserver{
				Reserve:   func(*cluster.Task, *cluster.Node) *engine.Rejection { return nil },
				Unreserve: func(*cluster.Task, *cluster.Node) {},
				Devices: func(*cluster.Task, *cluster.Node) []cluster.Holding {
					return []cluster.Holding{{Device: "GPU-a-3", Milli: cluster.Whole, Memory: enginetest.Size("80Gi")}}
				},
			})
		}}, nil
	}
	if err := r.RegisterPluginBuilder("Chooses", build); err != nil {
		t.Fatal(err)
	}
	e, err := engine.NewProfiles(r, []engine.NamedProfile{
		{Name: "plain", Plugins: engine.Profile{entry("Fit", "")}}, {Name: "choosing", Plugins: engine.Profile{entry("Fit", ""), entry("Chooses", "")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Open(enginetest.State(
		enginetest.Node("a").GPUs(4, "A100", "80Gi"),
		enginetest.Job("1").Devices(1).Profile("plain"), enginetest.Job("2").Devices(1).Profile("choosing"),
	), engine.Options{}).Run()
	got := map[string]int{}
	for _, d := range out.Decisions {
		got[d.Task.Job] = d.Claims[0].Device
	}
	if diff := cmp.Diff(map[string]int{"job/1": 0, "job/2": 3}, got); diff != "" || err != nil {
		t.Errorf("%v, devices (-want +got):\n%s", err, diff)
	}
}

// TestProfilesKeepTheirOwnParameters checks that plugins of one name that differ between
// profiles do not replace each other's published parameters.
func TestProfilesKeepTheirOwnParameters(t *testing.T) {
	r := profileRegistry(t)
	err := r.RegisterPluginBuilder("Learns", engine.WithArguments(nil, func(a settings) (engine.Plugin, error) {
		return &policy{name: "Learns", open: func(s *engine.Session) {
			known, _ := s.Published("Learns")
			s.Hooks.Publish("Learns", known+uint64(len(a.Node)))
		}}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.NewProfiles(r, []engine.NamedProfile{
		{Name: "x", Plugins: engine.Profile{entry("Learns", "1")}}, {Name: "y", Plugins: engine.Profile{entry("Learns", "333")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(enginetest.Node("a").CPU(8, "8Gi"))
	e.Open(state, engine.Options{})
	e.Open(state, engine.Options{})
	if diff := cmp.Diff(map[string]uint64{"Learns": 2, "Learns@y": 6}, e.Parameters()); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}

func TestProfilesThatMakeNoEngine(t *testing.T) {
	x := func(name string, p ...engine.PluginConfig) engine.NamedProfile {
		return engine.NamedProfile{Name: name, Plugins: p}
	}
	at := func(c engine.PluginConfig, where string) engine.PluginConfig { c.Where = where; return c }
	heavy := entry("First", "")
	heavy.Weight = 7
	must := "plugin First: it decides about the jobs of all profiles, and must be the same in all; "
	tests := map[string]struct {
		profiles []engine.NamedProfile
		want     string
	}{
		"no profile":           {nil, "an engine needs at least one profile"},
		"no name":              {[]engine.NamedProfile{x("a"), x("")}, "profile 2 has no name; name each profile"},
		"a name twice":         {[]engine.NamedProfile{x("a"), x("b"), x("a")}, `there are two profiles named "a"; give each its own name`},
		"a plugin twice":       {[]engine.NamedProfile{x("a", entry("Fit", "")), x("b", entry("Fit", ""), at(entry("Fit", ""), "c.yaml:9"))}, "c.yaml:9: plugin Fit: listed twice"},
		"an unknown plugin":    {[]engine.NamedProfile{x("a", entry("Fit", "")), x("b", entry("Fits", ""))}, `plugin Fits: no such plugin; did you mean "Fit"?`},
		"wrong arguments":      {[]engine.NamedProfile{x("a", entry("Fit", "")), x("b", engine.PluginConfig{Name: "Fit", Arguments: enginetest.Arguments(`{"no": 1}`)})}, `plugin Fit: json: unknown field "no"`},
		"missing in one":       {[]engine.NamedProfile{x("a", entry("First", "")), x("b")}, must + `profile "a" has it and profile "b" does not; enable or disable it for all profiles, outside of them`},
		"only in the second":   {[]engine.NamedProfile{x("a"), x("b", at(entry("First", ""), "c.yaml:4"))}, "c.yaml:4: " + must + `profile "b" has it and profile "a" does not; enable or disable it for all profiles, outside of them`},
		"another weight":       {[]engine.NamedProfile{x("a", entry("First", "")), x("b", at(heavy, "c.yaml:5"))}, "c.yaml:5: " + must + `in profile "b" it has another weight than in profile "a"; configure it outside of the profiles`},
		"other arguments":      {[]engine.NamedProfile{x("a", entry("First", "n")), x("b", entry("First", "n")), x("c", entry("First", "m"))}, must + `in profile "c" it has other arguments than in profile "a"; configure it outside of the profiles`},
		"another position":     {[]engine.NamedProfile{x("a", entry("First", ""), entry("Fit", "")), x("b", entry("Fit", ""), at(entry("First", ""), "c.yaml:6"))}, "c.yaml:6: " + must + `in profile "b" it has another position than in profile "a"; configure it outside of the profiles`},
		"another place of Fit": {[]engine.NamedProfile{x("a", entry("First", ""), entry("Fit", "")), x("b", at(entry("Fit", ""), "c.yaml:6"), entry("First", ""))}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := engine.NewProfiles(profileRegistry(t), tt.profiles)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestHooksAboutAllJobsAreInAllProfiles checks that a plugin that is not the same in all
// profiles cannot register a hook about the jobs of all of them.
func TestHooksAboutAllJobsAreInAllProfiles(t *testing.T) {
	e, err := engine.NewProfiles(profileRegistry(t), []engine.NamedProfile{
		{Name: "a", Plugins: engine.Profile{entry("Fit", "")}}, {Name: "b", Plugins: engine.Profile{entry("Fit", ""), entry("Hidden", "")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Open(enginetest.State(), engine.Options{}).Run()
	if err == nil || !strings.Contains(err.Error(), "plugin Hidden: AddJobOrder: this hook is about the jobs of all profiles") {
		t.Errorf("the session returned %v", err)
	}
}
