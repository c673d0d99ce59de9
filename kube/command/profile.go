package command

import (
	"encoding/json"
	"fmt"

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

// profile returns the profile that the configuration file describes, with the filters of
// Kubernetes. Running pods are not moved: the pod that replaces an evicted one has another name
// and another UID, so that the room that is reserved for a move would not be found again.
func (f *flags) profile() (engine.Profile, error) {
	profile := standard.Profile()
	if f.configuration != "" {
		b, err := manifest.Load([]string{f.configuration})
		if err != nil {
			return nil, err
		}
		if b.Configuration() == nil {
			return nil, fmt.Errorf("%s has no SchedulerConfiguration", f.configuration)
		}
		if profile, err = scenario.Profile(b); err != nil {
			return nil, err
		}
	}
	overrides := []standard.Override{{Name: intree.Name}, {Name: consolidate.Name, Disabled: true}}
	if f.devicesEnforced && f.evictions {
		overrides = append(overrides, standard.Override{Name: doublebooking.Name, Arguments: exactDevices{}})
	}
	if !f.evictions {
		overrides = append(overrides, standard.Override{Name: preempt.Name, Disabled: true}, standard.Override{Name: reclaim.Name, Disabled: true}, standard.Override{Name: stalegang.Name, Disabled: true}, standard.Override{Name: doublebooking.Name, Disabled: true})
	}
	return standard.Merge(profile, overrides, false)
}

// exactDevices are the arguments of the plugin DoubleBooking if containers get the devices that
// were chosen for them.
type exactDevices struct{}

// Decode sets the argument; the others keep their defaults.
func (exactDevices) Decode(into any) error { return json.Unmarshal([]byte(`{"exact": true}`), into) }
