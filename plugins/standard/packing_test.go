package standard

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/engine"
)

func TestPack(t *testing.T) {
	profile := Profile()
	for _, word := range Policies() {
		packed, err := Pack(profile, word)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.New(Registry(), packed); err != nil {
			t.Errorf("%s: %v", word, err)
		}
		again, err := Pack(packed, "per-resource")
		if err != nil || !slices.Equal(names(again), names(mustPack(t, profile, "per-resource"))) {
			t.Errorf("%s: another policy after it: %v, %v", word, names(again), err)
		}
		for _, p := range policies {
			for _, plugin := range p.plugins {
				if (indexOf(packed, plugin) >= 0) != (p.word == word) {
					t.Errorf("%s: %s", word, plugin)
				}
			}
		}
	}
	if !slices.Equal(names(profile), names(Profile())) {
		t.Error("the profile was changed")
	}
	if _, err := Pack(profile, "best-fti"); err == nil || !strings.Contains(err.Error(), `did you mean "best-fit"`) {
		t.Errorf("%v", err)
	}
}

func mustPack(t *testing.T, p engine.Profile, word string) engine.Profile {
	t.Helper()
	out, err := Pack(p, word)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPackKeepsArguments: a plugin of the policy that the profile configures stays configured.
func TestPackKeepsArguments(t *testing.T) {
	profile := mustPack(t, Profile(), "per-resource")
	profile[indexOf(profile, "DeviceOrder")].Weight = 7
	packed := mustPack(t, profile, "per-resource")
	if packed[indexOf(packed, "DeviceOrder")].Weight != 7 {
		t.Error("the weight is lost")
	}
}

// TestProfileFor: a configuration that names a plugin of another policy keeps its meaning.
func TestProfileFor(t *testing.T) {
	tests := map[string]struct {
		overrides []Override
		want      string
	}{
		"none":                          {nil, "fill-value"},
		"a plugin without packing":      {[]Override{{Name: "TaintToleration"}}, "fill-value"},
		"configured":                    {[]Override{{Name: "NodeResourcesFitPlus"}}, "per-resource"},
		"disabled":                      {[]Override{{Name: "DeviceOrder", Disabled: true}}, "per-resource"},
		"a place beside it":             {[]Override{{Name: "Mine", Place: Place{Side: After, Plugin: "DeviceOrder"}}}, "per-resource"},
		"a policy that was not default": {[]Override{{Name: "BestFit"}}, "per-resource"},
		"the default one too":           {[]Override{{Name: "NodeResourcesFitPlus"}, {Name: "FillValue"}}, "fill-value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, want := names(ProfileFor(tt.overrides)), names(mustPack(t, Profile(), tt.want)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
