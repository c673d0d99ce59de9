// Package deviceorder chooses among the devices of a node. With Pack, it puts fractions
// of devices together, so that other devices stay whole. With Spread, it prefers the device
// with the most room left.
//
// It considers only how much of a device is claimed. It does not compare nodes and does
// not know how devices are connected: Node.Choose prefers sets of devices that are connected
// better to sets with higher scores. For a request of whole devices all devices are equal,
// apart from those that a task is still releasing. It does not apply to models:
// PlacementScorer chooses their devices.
//
// A configuration selects the strategy:
//
//	plugins:
//	- name: DeviceOrder
//	  arguments: {strategy: Spread}
package deviceorder

import (
	"cmp"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
)

// Name is the plugin's name in a profile.
const Name = "DeviceOrder"

// The strategies.
const (
	Pack   = "Pack"   // the fullest device that has room; the default
	Spread = "Spread" // the emptiest device
)

// spellings maps other accepted spellings to the strategies.
var spellings = map[string]string{"pack": Pack, "spread": Spread}

// Arguments are the plugin's arguments.
type Arguments struct {
	// Strategy is Pack (the default) or Spread. The spellings pack and spread are accepted too.
	Strategy string `json:"strategy"`
}

type plugin struct {
	engine.FixedHooks
	spread bool
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(func() Arguments { return Arguments{Strategy: Pack} }, build)

func build(a Arguments) (engine.Plugin, error) {
	a.Strategy = cmp.Or(spellings[a.Strategy], a.Strategy)
	if a.Strategy != Pack && a.Strategy != Spread {
		return nil, fmt.Errorf("strategy %q is not known%s", a.Strategy, nearest.Hint(a.Strategy, []string{Pack, Spread}))
	}
	return &plugin{spread: a.Strategy == Spread}, nil
}

func (p *plugin) Name() string { return Name }

// OnSessionOpen registers a score for devices.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddDeviceScore(p.score)
	engine.EqualNodes(s.Hooks)
}

// score rises by 0.099 for each thousandth of the device, from 0.1 to 99.1. A device
// that a task is still releasing loses half a step. So it is the last of devices that are
// otherwise equal, because a task that gets it has to wait.
func (p *plugin) score(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if s.Need.Layers != nil || s.ServesModel() {
		return 0 // layers must be put where most of them fit; another order may leave some without a device
	}
	used := min(max(0, d.Use.Milli), cluster.Whole)
	if p.spread {
		used = cluster.Whole - used
	}
	points := 100 + 99*int64(used)
	if d.Use.ReleasingLeases > 0 {
		points -= 50
	}
	return float64(points) / 1000
}
