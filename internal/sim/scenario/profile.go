package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/plugins/standard"
)

// Engine returns an engine with the profiles of the bundle.
func Engine(r *engine.Registry, b *manifest.Bundle) (*engine.Engine, error) {
	profiles, err := Profiles(b)
	if err != nil {
		return nil, err
	}
	return engine.NewProfiles(r, profiles)
}

// Profiles returns the profiles of the configuration of the bundle. Without any, it returns one
// profile without a name: the default profile with the changes of the configuration.
func Profiles(b *manifest.Bundle) ([]engine.NamedProfile, error) {
	base, err := Profile(b)
	c := b.Configuration()
	if err != nil || c == nil || len(c.Profiles) == 0 {
		return []engine.NamedProfile{{Plugins: base}}, err
	}
	out := make([]engine.NamedProfile, len(c.Profiles))
	for i, p := range c.Profiles {
		out[i].Name = p.Name
		if out[i].Plugins, err = merge(c, cmp.Or(p.Packing, c.Packing), overlay(overridesOf(c.Plugins), overridesOf(p.Plugins))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Profile returns the default profile with the changes that the configuration of the bundle
// makes for all profiles.
func Profile(b *manifest.Bundle) (engine.Profile, error) {
	c := b.Configuration()
	if c == nil {
		return standard.Profile(), nil
	}
	return merge(c, c.Packing, overridesOf(c.Plugins))
}

// merge returns the default profile with the policy and the overrides. Without a policy, the plugins
// that the overrides name decide. An error names a place in the configuration.
func merge(c *manifest.Configuration, packing string, overrides []standard.Override) (engine.Profile, error) {
	base := standard.ProfileFor(overrides)
	if packing != "" {
		if c.ReplaceDefaults {
			return nil, fmt.Errorf("%s: packing: it changes the default profile, which replaceDefaults drops; list the plugin of the policy instead", c.Where)
		}
		var err error
		if base, err = standard.Pack(standard.Profile(), packing); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Where, err)
		}
	}
	profile, err := standard.Merge(base, overrides, c.ReplaceDefaults)
	if err != nil && !strings.HasPrefix(err.Error(), c.Where[:strings.LastIndexByte(c.Where, ':')+1]) {
		return nil, fmt.Errorf("%s: %w", c.Where, err)
	}
	return profile, err
}

// overridesOf returns the overrides that the entries describe.
func overridesOf(list []manifest.PluginEntry) []standard.Override {
	overrides := make([]standard.Override, 0, len(list))
	for _, p := range list {
		o := standard.Override{Name: p.Name, Place: placeOf(p), Disabled: p.Disabled, Where: p.Where}
		if p.Weight != nil {
			w := int64(*p.Weight)
			o.Weight = &w
		}
		if !p.Arguments.Empty() {
			o.Arguments = p.Arguments
		}
		overrides = append(overrides, o)
	}
	return overrides
}

// overlay returns the overrides of base with those of a profile laid over them: what an override
// of the profile sets replaces what base sets for the same plugin.
func overlay(base, own []standard.Override) []standard.Override {
	out := slices.Clone(base)
	for _, o := range own {
		at := slices.IndexFunc(out, func(b standard.Override) bool { return b.Name == o.Name })
		switch {
		case at < 0:
			out = append(out, o)
		case o.Disabled && !standard.InDefault(o.Name) && !out[at].Disabled: // the profile does not have the plugin that base adds
			out = slices.Delete(out, at, at+1)
		case o.Disabled:
			out[at] = o
		default:
			out[at] = layOver(out[at], o)
		}
	}
	return out
}

// layOver returns the override with what the second one sets.
func layOver(base, o standard.Override) standard.Override {
	if o.Weight == nil {
		o.Weight = base.Weight
	}
	if o.Arguments == nil {
		o.Arguments = base.Arguments
	}
	if o.Place == (standard.Place{}) {
		o.Place = base.Place
	}
	return o
}

// placeOf returns the position in the profile that the configuration gives to a plugin.
func placeOf(p manifest.PluginEntry) standard.Place {
	switch {
	case p.Before != "":
		return standard.Place{Side: standard.Before, Plugin: p.Before}
	case p.After != "":
		return standard.Place{Side: standard.After, Plugin: p.After}
	case p.Position == v1alpha1.PositionFirst:
		return standard.Place{Side: standard.First}
	case p.Position == v1alpha1.PositionLast:
		return standard.Place{Side: standard.Last}
	}
	return standard.Place{}
}
