package standard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
)

// Side is on which side of a profile, or of another plugin, a plugin is put.
type Side uint8

// The sides.
const (
	Unmoved Side = iota // the plugin stays where the profile has it
	First               // at the beginning of the profile
	Last                // at the end of the profile
	Before              // directly before another plugin
	After               // directly after another plugin
)

// Place is the position of a plugin in a profile.
type Place struct {
	Side   Side   // at which end of the profile, or on which side of Plugin
	Plugin string // the name of the other plugin, for Before and After
}

// String returns the place as in "before NodeResourcesFit".
func (p Place) String() string {
	return [...]string{"unmoved", "first", "last", "before ", "after "}[p.Side] + p.Plugin
}

// arrange moves the plugins that name a place to that place. Plugins that name the same
// place keep the order in which they are written.
func arrange(p engine.Profile, overrides []Override) (engine.Profile, error) {
	var first, last []string
	before, after := map[string][]string{}, map[string][]string{}
	moved := map[string]bool{}
	for i, o := range overrides {
		if o.Place.Side == Unmoved || o.Disabled {
			continue
		}
		moved[o.Name] = true
		switch o.Place.Side {
		case First:
			first = append(first, o.Name)
			continue
		case Last:
			last = append(last, o.Name)
			continue
		case Before:
			before[o.Place.Plugin] = append(before[o.Place.Plugin], o.Name)
		case After:
			after[o.Place.Plugin] = append(after[o.Place.Plugin], o.Name)
		}
		if o.Place.Plugin == o.Name {
			return nil, failure(overrides, i, "its place is %s, which is the plugin itself; name another one", o.Place)
		}
		if indexOf(p, o.Place.Plugin) < 0 {
			return nil, failure(overrides, i, "its place is %s, which is not in the profile%s", o.Place, nearest.Hint(o.Place.Plugin, names(p)))
		}
	}
	rest := slices.DeleteFunc(names(p), func(name string) bool { return moved[name] })
	out := make(engine.Profile, 0, len(p))
	var put func(names []string)
	put = func(names []string) {
		for _, name := range names {
			put(before[name])
			out = append(out, p[indexOf(p, name)])
			put(after[name])
		}
	}
	put(first)
	put(rest)
	put(last)
	if len(out) < len(p) {
		return nil, circularPlaces(out, overrides)
	}
	return out, nil
}

// circularPlaces returns the error for plugins with places that depend on each other,
// reported at the first of them that is written. put is the arranged profile, from which
// these plugins are missing.
func circularPlaces(put engine.Profile, overrides []Override) error {
	at := map[string]int{}
	for i, o := range overrides {
		at[o.Name] = i
	}
	start := slices.IndexFunc(overrides, func(o Override) bool { return o.Place.Plugin != "" && indexOf(put, o.Name) < 0 })
	// A plugin may be next to one of the circle without being in it. After as many steps as
	// there are overrides, the walk is certainly in the circle.
	for range overrides {
		start = at[overrides[start].Place.Plugin]
	}
	members := []int{start}
	for i := at[overrides[start].Place.Plugin]; i != start; i = at[overrides[i].Place.Plugin] {
		members = append(members, i)
	}
	least := slices.Index(members, slices.Min(members))
	members = append(members[least:], members[:least]...)
	steps := make([]string, len(members))
	for k, i := range members {
		steps[k] = fmt.Sprintf("%s %s", overrides[i].Name, overrides[i].Place)
	}
	return failure(overrides, members[0], "the places depend on each other: %s; remove one of them", strings.Join(steps, ", "))
}
