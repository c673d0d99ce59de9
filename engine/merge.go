package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// instance is a plugin that is built once. in says for each profile whether it has the plugin.
type instance struct {
	PluginConfig
	in []bool
}

// mergeProfiles returns the plugins of all profiles in one list. Each profile is a part of the
// list, in its own order. A plugin that is the same in several profiles is listed once, as far
// as the orders of the profiles allow.
func mergeProfiles(profiles []NamedProfile) []instance {
	var out []instance
	for k, p := range profiles {
		out = mergeProfile(out, p.Plugins, k, len(profiles))
	}
	return out
}

// mergeProfile adds profile k of n profiles to the list: it finds the longest common part of
// both, of which each plugin is listed once. Entries that were written at the same place count
// twice, so that of two plugins that have changed places, the one that the profile has moved
// is listed twice.
func mergeProfile(list []instance, p Profile, k, n int) []instance {
	// common[i][j] is the length of the longest common part of list[i:] and p[j:].
	common := make([][]int, len(list)+1)
	for i := range common {
		common[i] = make([]int, len(p)+1)
	}
	worth := func(i, j int) int {
		switch {
		case !sameConfig(list[i].PluginConfig, p[j]):
			return 0
		case list[i].Where == p[j].Where:
			return 2
		}
		return 1
	}
	for i := len(list) - 1; i >= 0; i-- {
		for j := len(p) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if w := worth(i, j); w > 0 {
				common[i][j] = max(common[i][j], w+common[i+1][j+1])
			}
		}
	}
	var out []instance
	for i, j := 0, 0; i < len(list) || j < len(p); {
		switch {
		case i < len(list) && j < len(p) && worth(i, j) > 0 && common[i][j] == worth(i, j)+common[i+1][j+1]:
			list[i].in[k] = true
			out = append(out, list[i])
			i, j = i+1, j+1
		case j == len(p) || i < len(list) && common[i][j] == common[i+1][j]:
			out = append(out, list[i])
			i++
		default:
			added := instance{p[j], make([]bool, n)}
			added.in[k] = true
			out = append(out, added)
			j++
		}
	}
	return out
}

// sameConfig reports whether the two entries make equal plugins.
func sameConfig(a, b PluginConfig) bool {
	return a.Name == b.Name && max(1, a.Weight) == max(1, b.Weight) && sameArguments(a.Arguments, b.Arguments)
}

// sameArguments reports whether the arguments are equal. Arguments may have a method Equal;
// others are equal if their values are.
func sameArguments(a, b Arguments) bool {
	none := func(a Arguments) bool { return a == nil || a == Arguments(NoArguments{}) }
	if none(a) || none(b) {
		return none(a) && none(b)
	}
	if e, ok := a.(interface{ Equal(any) bool }); ok {
		return e.Equal(b)
	}
	return reflect.DeepEqual(a, b)
}

// differs returns the error for a plugin that must be the same in all profiles and is not: the
// profile from has c, and the profile to has not.
func differs(c *instance, from, to NamedProfile) error {
	other := slices.IndexFunc(to.Plugins, func(o PluginConfig) bool { return o.Name == c.Name })
	how := ""
	switch {
	case other < 0:
		return c.failure(fmt.Errorf("it decides about the jobs of all profiles, and must be the same in all; profile %q has it and profile %q does not; enable or disable it for all profiles, outside of them", from.Name, to.Name))
	case max(1, to.Plugins[other].Weight) != max(1, c.Weight):
		how = "another weight"
	case !sameArguments(to.Plugins[other].Arguments, c.Arguments):
		how = "other arguments"
	default:
		how = "another position"
	}
	return to.Plugins[other].failure(fmt.Errorf("it decides about the jobs of all profiles, and must be the same in all; in profile %q it has %s than in profile %q; configure it outside of the profiles", to.Name, how, from.Name))
}

// checkShared returns an error if the plugin must be the same in all profiles and is not. If the
// first profile has it in another form, the error is about that form.
func checkShared(p Plugin, c *instance, profiles []NamedProfile) error {
	missing := slices.Index(c.in, false)
	if _, shared := p.(Shared); !shared || missing < 0 || missing == 0 && profiles[0].has(c.Name) {
		return nil
	}
	return differs(c, profiles[slices.Index(c.in, true)], profiles[missing])
}

// checkRequired returns errors for the plugins that the plugin requires and that a profile
// lacks.
func (r *Registry) checkRequired(p Plugin, c *instance, profiles []NamedProfile) error {
	d, ok := p.(Dependent)
	if !ok {
		return nil
	}
	var errs []error
	for k, profile := range profiles {
		for _, name := range d.Requires() {
			if c.in[k] && !profile.has(name) {
				errs = append(errs, c.failure(r.remedy(c.Name, name, profile.Name)))
			}
		}
	}
	return errors.Join(errs...)
}
