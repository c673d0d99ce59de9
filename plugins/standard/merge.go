package standard

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/plugins/isolationfilter"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
)

// Override changes the entry of one plugin in a profile, or adds the plugin.
type Override struct {
	Name      string           // the name of the plugin
	Weight    *int64           // nil keeps the weight of the profile
	Place     Place            // the zero value keeps the position, or adds the plugin at the end
	Disabled  bool             // removes the plugin
	Arguments engine.Arguments // nil keeps the arguments of the profile; otherwise they are replaced
	Where     string           // "file:line", for errors; may be empty
}

// required lists the plugins that every profile must have, and what would go wrong without them.
var required = []struct{ name, why string }{
	{noderesourcesfit.Name, "without it two tasks could be given the same room"},
	{isolationfilter.Name, "without it a task could be placed where the isolation that it requests is not provided"},
}

// Merge returns the profile base with the overrides applied. Base is not changed. A
// plugin that is in base keeps its position, and any other plugin is added at the end, also
// if its name is unknown; engine.New reports unknown names. With replace, the overrides
// are the whole profile, in their own order, and base only provides the values that they
// do not set. Finally, plugins that name a place are moved there.
func Merge(base engine.Profile, overrides []Override, replace bool) (engine.Profile, error) {
	if err := check(base, overrides); err != nil {
		return nil, err
	}
	out := slices.Clone(base)
	if replace {
		out = nil
	}
	for _, o := range overrides {
		at := indexOf(out, o.Name)
		if o.Disabled {
			if at >= 0 {
				out = slices.Delete(out, at, at+1)
			}
			continue
		}
		if at < 0 {
			at = len(out)
			if known := indexOf(base, o.Name); known >= 0 {
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
	for _, p := range required {
		if replace && indexOf(out, p.name) < 0 {
			return nil, fmt.Errorf("plugin %s is missing from a profile that replaces the default one: %s; add it", p.name, p.why)
		}
	}
	return arrange(out, overrides)
}

// check checks each override by itself, and that no plugin is named twice.
func check(base engine.Profile, overrides []Override) error {
	for i, o := range overrides {
		fail := func(format string, args ...any) error { return failure(overrides, i, format, args...) }
		if first := slices.IndexFunc(overrides, func(x Override) bool { return x.Name == o.Name }); first < i {
			return fail("it is already set at %s, and only one of the two can apply; merge them into one entry", where(overrides, first))
		}
		if o.Weight != nil && (*o.Weight < 1 || *o.Weight > engine.MaxWeight) {
			return fail("weight %d is not between 1 and %d; to make its scores not count, disable the plugin, which also disables its filters", *o.Weight, engine.MaxWeight)
		}
		if !o.Disabled {
			continue
		}
		for _, p := range required {
			if o.Name == p.name {
				return fail("it cannot be disabled: %s; remove the entry", p.why)
			}
		}
		if indexOf(base, o.Name) < 0 {
			return fail("it is not in the profile, so there is nothing to disable%s", nearest.Hint(o.Name, names(base)))
		}
	}
	return nil
}

// failure returns an error about an override, with its location and plugin.
func failure(overrides []Override, i int, format string, args ...any) error {
	return fmt.Errorf("%s: plugin %s: %s", where(overrides, i), overrides[i].Name, fmt.Sprintf(format, args...))
}

// where returns the location of an override.
func where(overrides []Override, i int) string {
	if w := overrides[i].Where; w != "" {
		return w
	}
	return fmt.Sprintf("plugins[%d]", i)
}

func indexOf(p engine.Profile, name string) int {
	return slices.IndexFunc(p, func(c engine.PluginConfig) bool { return c.Name == name })
}

func names(p engine.Profile) []string {
	out := make([]string, len(p))
	for i, c := range p {
		out[i] = c.Name
	}
	return out
}
