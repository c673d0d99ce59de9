package standard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/plugins/bestfit"
	"github.com/berth-project/berth/plugins/deviceorder"
	"github.com/berth-project/berth/plugins/fgd"
	"github.com/berth-project/berth/plugins/fillvalue"
	"github.com/berth-project/berth/plugins/gpupacking"
	"github.com/berth-project/berth/plugins/noderesourcesfitplus"
	"github.com/berth-project/berth/plugins/randomfit"
)

// policy is a way to pack tasks: a word, and the plugins that score nodes and devices.
type policy struct {
	word    string
	plugins []string
}

var policies = []policy{
	{"best-fit", []string{bestfit.Name}},
	{"fgd", []string{fgd.Name}},
	{"fill-value", []string{fillvalue.Name}},
	{"packing", []string{gpupacking.Name}},
	{"per-resource", []string{noderesourcesfitplus.Name, deviceorder.Name}},
	{"random", []string{randomfit.Name}},
}

// Policies returns the words that Pack accepts.
func Policies() []string {
	var out []string
	for _, p := range policies {
		out = append(out, p.word)
	}
	return out
}

// Pack returns the profile with the plugins of the policy instead of those of any other policy. They
// are where the first of those was. The profile is not changed.
func Pack(profile engine.Profile, word string) (engine.Profile, error) {
	at := slices.IndexFunc(policies, func(p policy) bool { return p.word == word })
	if at < 0 {
		return nil, fmt.Errorf("packing %q is not known%s; the words are %s", word, nearest.Hint(word, Policies()), strings.Join(Policies(), ", "))
	}
	var out engine.Profile
	position := -1
	kept := map[string]engine.PluginConfig{}
	for _, c := range profile {
		if isPacking(c.Name) {
			if position < 0 {
				position = len(out)
			}
			kept[c.Name] = c
			continue
		}
		out = append(out, c)
	}
	if position < 0 {
		position = len(out)
	}
	var chosen engine.Profile
	for _, name := range policies[at].plugins {
		c, ok := kept[name]
		if !ok {
			c = engine.PluginConfig{Name: name, Weight: 1}
		}
		chosen = append(chosen, c)
	}
	return slices.Insert(out, position, chosen...), nil
}

// ProfileFor returns the default profile or, if the overrides name a plugin of another policy, be it
// to configure it, to disable it, or to put another plugin next to it, the default profile with the
// policy per-resource, which it had before FillValue. So configurations that were written for that
// profile keep their meaning. If the overrides name a plugin of the default policy too, that remains.
func ProfileFor(overrides []Override) engine.Profile {
	profile, other := Profile(), false
	for _, o := range overrides {
		for _, name := range []string{o.Name, o.Place.Plugin} {
			if indexOf(profile, name) >= 0 && isPacking(name) {
				return profile
			}
			other = other || isPacking(name)
		}
	}
	if !other {
		return profile
	}
	packed, err := Pack(profile, "per-resource")
	if err != nil {
		panic(err) // it is one of policies
	}
	return packed
}

// InDefault reports whether the default profile has the plugin, or had it before FillValue.
func InDefault(plugin string) bool {
	return indexOf(Profile(), plugin) >= 0 || policyWith(plugin) == "per-resource"
}

// isPacking reports whether the plugin belongs to a policy.
func isPacking(plugin string) bool { return policyWith(plugin) != "" }

// policyWith returns the word of the policy that the plugin belongs to, "" if there is none.
func policyWith(plugin string) string {
	for _, p := range policies {
		if slices.Contains(p.plugins, plugin) {
			return p.word
		}
	}
	return ""
}
