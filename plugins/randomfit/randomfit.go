// Package randomfit places each task on a random node that can take it, and on random devices of
// it. It exists to compare other policies with. The number that is drawn for a task and a node is a
// hash of the seed and of their names, so that equal input gives equal decisions.
//
// It scores every feasible node for every task, so that it is slow on large clusters.
//
// A configuration may set the seed:
//
//	plugins:
//	- name: RandomFit
//	  arguments: {seed: 42}
package randomfit

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "RandomFit"

// Arguments are the plugin's arguments.
type Arguments struct {
	// Seed selects the sequence of random numbers; 0 unless given.
	Seed int64 `json:"seed"`
}

type plugin struct {
	engine.FixedHooks
	seed uint64
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(nil, func(a Arguments) (engine.Plugin, error) { return plugin{seed: uint64(a.Seed)}, nil })

func (plugin) Name() string { return Name }

// OnSessionOpen registers a score for nodes and one for devices.
func (p plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddTaskScore(nil, func(t *cluster.Task, _ *cluster.Job, n *cluster.Node) float64 {
		return p.draw(t.ID, n.Name)
	})
	s.Hooks.AddDeviceScore(func(_ *cluster.Shape, n *cluster.Node, d *cluster.Device) float64 {
		return p.draw(d.UUID, n.Name)
	})
}

// draw returns a number from 0 to 100 for the two texts.
func (p plugin) draw(a, b string) float64 {
	h := p.seed ^ offset
	for _, text := range [...]string{a, "/", b} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
	}
	// FNV alone changes few high bits for texts that differ in their last character.
	h = (h ^ h>>31) * mix
	h ^= h >> 29
	return float64(h>>32) / (1 << 32) * 100
}

// The constants of the FNV-1a hash with 64 bits, and an odd number that spreads bits.
const (
	offset = 14695981039346656037
	prime  = 1099511628211
	mix    = 0x9e3779b97f4a7c15
)
