// Package deviceorder chooses among the devices of a node: it packs parts of
// devices together, so that others stay whole, or spreads them, so that each has
// the most room to grow.
//
// It looks at how much of a device is promised and at nothing else, and refuses
// to know which node is better and how devices are wired. Whole devices are all
// alike to it: the lowest index goes first. Models say themselves how they are
// laid out; for them PlacementScorer chooses.
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
	Pack   = "Pack"   // the fullest device that still has room; the default
	Spread = "Spread" // the emptiest
)

// spelt are other spellings that are read.
var spelt = map[string]string{"pack": Pack, "spread": Spread}

// Arguments are the plugin's arguments.
type Arguments struct {
	// Strategy is Pack (the default) or Spread.
	Strategy string `json:"strategy"`
}

type plugin struct{ spread bool }

// New builds the plugin.
var New = engine.WithArguments(func() Arguments { return Arguments{Strategy: Pack} }, build)

func build(a Arguments) (engine.Plugin, error) {
	a.Strategy = cmp.Or(spelt[a.Strategy], a.Strategy)
	if a.Strategy != Pack && a.Strategy != Spread {
		return nil, fmt.Errorf("strategy %q is not known%s", a.Strategy, nearest.Hint(a.Strategy, []string{Pack, Spread}))
	}
	return &plugin{spread: a.Strategy == Spread}, nil
}

func (p *plugin) Name() string                    { return Name }
func (p *plugin) OnSessionOpen(s *engine.Session) { s.Hooks.AddDeviceScore(p.score) }

// score goes in steps of 0.099 for each thousandth of the device, from 0.1 to
// 99.1. A device that somebody is still leaving loses half a step: among equals
// it comes last, because whoever gets it has to wait.
func (p *plugin) score(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if s.Need.Layers != nil || s.Served() {
		return 0 // layers go where most of them fit, and any order but that may leave some over
	}
	part := min(max(0, d.Use.Milli), cluster.Whole)
	if p.spread {
		part = cluster.Whole - part
	}
	points := 100 + 99*int64(part)
	if d.Use.ReleasingLeases > 0 {
		points -= 50
	}
	return float64(points) / 1000
}
