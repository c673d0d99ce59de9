package convert

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/phrase"
)

// minWeight and maxWeight are the limits of the weight of a plugin. The weight of a queue is
// from 0 to maxWeight.
const minWeight, maxWeight = 1, 100_000

// Configuration checks a configuration of the scheduler. It returns only notes, because a
// configuration is not part of State. It does not check whether the plugins exist and whether
// their arguments are valid.
func Configuration(o *v1alpha1.SchedulerConfiguration) Notes {
	var notes Notes
	r := reporter{&notes}
	checkPlugins(o.Plugins, path{"plugins"}, r)
	profiles := map[string]int{}
	for i, p := range o.Profiles {
		at := path{"profiles", i}
		if p.SchedulerName == "" {
			r.errorf(at, "schedulerName is missing: it is the name of the profile")
		} else if j, twice := profiles[p.SchedulerName]; twice {
			r.errorf(at.Add("schedulerName"), "profile %s is already profiles[%d]; give it another name, or merge the two", phrase.Quote(p.SchedulerName), j)
		} else {
			profiles[p.SchedulerName] = i
		}
		checkPlugins(p.Plugins, at.Add("plugins"), r)
	}
	return notes
}

// checkPlugins checks a list of plugins.
func checkPlugins(list []v1alpha1.PluginConfig, in path, r reporter) {
	first := map[string]int{}
	for i, p := range list {
		at := in.Add(i)
		if p.Name == "" {
			r.errorf(at, "name is missing: say which plugin")
		} else if j, twice := first[p.Name]; twice {
			r.errorf(at.Add("name"), "plugin %s is already configured as %s; merge the two entries", phrase.Quote(p.Name), in.Add(j))
		} else {
			first[p.Name] = i
		}
		if p.Weight != nil && (*p.Weight < minWeight || *p.Weight > maxWeight) {
			r.errorf(at.Add("weight"), "want a weight from %d to %d, have %d; to switch a plugin off write disabled: true", minWeight, maxWeight, *p.Weight)
		}
		checkPosition(&p, at, r)
	}
}

// checkPosition reports a plugin with more than one of the fields before, after and position,
// and a disabled plugin with any of them.
func checkPosition(p *v1alpha1.PluginConfig, at path, r reporter) {
	first := ""
	for _, place := range []struct{ field, value string }{{"before", p.Before}, {"after", p.After}, {"position", p.Position}} {
		switch {
		case place.value == "":
		case p.Disabled:
			r.errorf(at.Add(place.field), "a plugin that is disabled has no place; remove %s, or disabled", place.field)
		case first != "":
			r.errorf(at.Add(place.field), "the place is already given by %s; remove one of the two", first)
		default:
			first = place.field
		}
	}
	checkEnum(p.Position, []string{v1alpha1.PositionFirst, v1alpha1.PositionLast}, at.Add("position"), r)
}
