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

// isPacking reports whether the plugin belongs to a policy.
func isPacking(name string) bool {
	for _, p := range policies {
		if slices.Contains(p.plugins, name) {
			return true
		}
	}
	return false
}
