package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/doublebooking"
	"github.com/berth-project/berth/plugins/preempt"
	"github.com/berth-project/berth/plugins/reclaim"
	"github.com/berth-project/berth/plugins/stalegang"
	"github.com/berth-project/berth/plugins/standard"
)

// readProfiles returns the profiles that the configuration file describes, with the filters of
// Kubernetes; a single profile may have no name. Running pods are not moved: the pod that
// replaces an evicted one has another name and another UID, so that the room that is reserved
// for a move would not be found again.
func readProfiles(configuration string, evictions bool) ([]engine.NamedProfile, error) {
	b := &manifest.Bundle{}
	if configuration != "" {
		var err error
		if b, err = manifest.Load([]string{configuration}); err != nil {
			return nil, err
		}
		if b.Configuration() == nil {
			return nil, fmt.Errorf("%s has no SchedulerConfiguration", configuration)
		}
	}
	profiles, err := scenario.Profiles(b)
	if err != nil {
		return nil, err
	}
	disabled := []string{consolidate.Name}
	if !evictions {
		disabled = append(disabled, preempt.Name, reclaim.Name, stalegang.Name, doublebooking.Name)
	}
	for i, p := range profiles {
		own := slices.DeleteFunc(slices.Clone(p.Plugins), func(c engine.PluginConfig) bool { return slices.Contains(disabled, c.Name) })
		if profiles[i].Plugins, err = standard.Merge(own, []standard.Override{{Name: intree.Name}}, false); err != nil {
			return nil, err
		}
	}
	return profiles, nil
}

// schedulerNames returns the values of spec.schedulerName of the pods to place: the names of the
// profiles if they have names, or else those of the flag --scheduler-name. If the flag is given
// beside profiles with names, it must have the same names, and its order is used.
func schedulerNames(profiles []engine.NamedProfile, names []string, given bool) ([]string, error) {
	if profiles[0].Name == "" {
		if len(names) == 0 || slices.Contains(names, "") {
			return nil, errors.New("--scheduler-name: want at least one name, such as " + DefaultName)
		}
		return names, nil
	}
	var out []string
	for _, p := range profiles {
		out = append(out, p.Name)
	}
	if !given {
		return out, nil
	}
	if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(out))) {
		return nil, fmt.Errorf("--scheduler-name %s: the profiles of the configuration have the names %s, which are the scheduler names; leave the flag out", strings.Join(names, ","), strings.Join(out, ", "))
	}
	return names, nil
}
