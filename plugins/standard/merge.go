package standard

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/plugins/isolationfilter"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
)

// Override is what a configuration says about one plugin.
type Override struct {
	Name      string
	Weight    *int64           // nil: as it was
	Place     Place            // the zero value: where it was, or at the end
	Disabled  bool             // the plugin is left out
	Arguments engine.Arguments // nil: as they were; otherwise they replace those
	Where     string           // "file:line", for errors; may be empty
}

// promises are the plugins no profile may be without, and what would break.
var promises = []struct{ name, why string }{
	{noderesourcesfit.Name, "without it nothing keeps two tasks from being given the same room"},
	{isolationfilter.Name, "without it a task would be placed where the isolation that it was promised is not kept"},
}

// Merge applies overrides to a profile, which stays as it is. A plugin that the
// profile has is changed in its place; any other is added at the end, unknown
// names too, for engine.New to report. With replace the overrides are the whole
// profile, in their own order, and base only supplies what they leave open. Then
// those that name a place are put there.
func Merge(base engine.Profile, overrides []Override, replace bool) (engine.Profile, error) {
	if err := check(base, overrides); err != nil {
		return nil, err
	}
	out := slices.Clone(base)
	if replace {
		out = nil
	}
	for _, o := range overrides {
		at := find(out, o.Name)
		if o.Disabled {
			if at >= 0 {
				out = slices.Delete(out, at, at+1)
			}
			continue
		}
		if at < 0 {
			at = len(out)
			if known := find(base, o.Name); known >= 0 {
				out = append(out, base[known])
			} else {
				out = append(out, engine.PluginConfig{Name: o.Name})
			}
		}
		out[at].Where = o.Where
		if o.Weight != nil {
			out[at].Weight = *o.Weight
		}
		if o.Arguments != nil {
			out[at].Arguments = o.Arguments
		}
	}
	for _, p := range promises {
		if replace && find(out, p.name) < 0 {
			return nil, fmt.Errorf("plugin %s is missing from a profile that replaces the default one: %s; add it", p.name, p.why)
		}
	}
	return arrange(out, overrides)
}

// check looks at each override by itself, and for two of one name.
func check(base engine.Profile, overrides []Override) error {
	for i, o := range overrides {
		fail := func(format string, args ...any) error { return failure(overrides, i, format, args...) }
		if first := slices.IndexFunc(overrides, func(x Override) bool { return x.Name == o.Name }); first < i {
			return fail("it is already set at %s, and only one of the two could count; merge them into one entry", where(overrides, first))
		}
		if o.Weight != nil && (*o.Weight < 1 || *o.Weight > engine.MaxWeight) {
			return fail("weight %d is not between 1 and %d; a plugin whose scores shall not count must be disabled, filters and all", *o.Weight, engine.MaxWeight)
		}
		if !o.Disabled {
			continue
		}
		for _, p := range promises {
			if o.Name == p.name {
				return fail("it cannot be disabled: %s; remove the entry", p.why)
			}
		}
		if find(base, o.Name) < 0 {
			return fail("it is not in the profile, so there is nothing to disable%s", nearest.Hint(o.Name, names(base)))
		}
	}
	return nil
}

// failure is what is wrong with an override.
func failure(overrides []Override, i int, format string, args ...any) error {
	return fmt.Errorf("%s: plugin %s: %s", where(overrides, i), overrides[i].Name, fmt.Sprintf(format, args...))
}

// where says where an override was written.
func where(overrides []Override, i int) string {
	if w := overrides[i].Where; w != "" {
		return w
	}
	return fmt.Sprintf("plugins[%d]", i)
}

func find(p engine.Profile, name string) int {
	return slices.IndexFunc(p, func(c engine.PluginConfig) bool { return c.Name == name })
}

func names(p engine.Profile) []string {
	out := make([]string, len(p))
	for i, c := range p {
		out[i] = c.Name
	}
	return out
}
