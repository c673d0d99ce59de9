package ctl

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/google/go-cmp/cmp"
)

// TestConfigurationFor checks that a snapshot disables what berth-scheduler does not use, and
// does not name the filters of Kubernetes, which berth does not have.
func TestConfigurationFor(t *testing.T) {
	profile := func(names ...string) engine.Profile {
		var out engine.Profile
		for _, name := range names {
			out = append(out, engine.PluginConfig{Name: name})
		}
		return out
	}
	weight := 2
	for _, c := range []struct {
		name         string
		plugins      []v1alpha1.PluginConfig
		own, profile engine.Profile
		want         []string // the names; those that are disabled begin with "-"
	}{
		{"default", nil, profile("A", "B", "C"), profile("A", "C", intree.Name), []string{"-B"}},
		{"configured", []v1alpha1.PluginConfig{{Name: "B", Weight: &weight}, {Name: "D"}}, profile("A", "B", "D"), profile("A", "D", intree.Name), []string{"-B", "D"}},
		{"filters named", []v1alpha1.PluginConfig{{Name: intree.Name}, {Name: "A"}}, profile("A", intree.Name), profile("A", intree.Name), []string{"A"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var given *v1alpha1.SchedulerConfiguration
			if c.plugins != nil {
				given = &v1alpha1.SchedulerConfiguration{Plugins: c.plugins}
			}
			var got []string
			for _, p := range scheduler.PlainConfiguration(configurationFor(given, c.own, c.profile)).Plugins {
				if p.Disabled {
					p.Name = "-" + p.Name
				}
				got = append(got, p.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the plugins are %v, want %v", got, c.want)
			}
			if given != nil && given.Plugins[0].Disabled {
				t.Error("the configuration that was given has changed")
			}
		})
	}
}

// TestConfigurationWithProfiles checks that the profiles of a snapshot do not enable again what
// berth-scheduler does not use.
func TestConfigurationWithProfiles(t *testing.T) {
	given := &v1alpha1.SchedulerConfiguration{Profiles: []v1alpha1.ProfileConfig{
		{SchedulerName: "a", Plugins: []v1alpha1.PluginConfig{{Name: intree.Name}, {Name: "B"}, {Name: "C"}}}, {SchedulerName: "b"},
	}}
	own, used := engine.Profile{{Name: "A"}, {Name: "B"}, {Name: "C"}}, engine.Profile{{Name: "A"}, {Name: "C"}, {Name: intree.Name}}
	got := scheduler.PlainConfiguration(configurationFor(given, own, used))
	want := []v1alpha1.ProfileConfig{{SchedulerName: "a", Plugins: []v1alpha1.PluginConfig{{Name: "C"}}}, {SchedulerName: "b"}}
	if diff := cmp.Diff(want, got.Profiles); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.PluginConfig{{Name: "B", Disabled: true}}, got.Plugins); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if len(given.Profiles[0].Plugins) != 3 {
		t.Error("the configuration that was given has changed")
	}
}
