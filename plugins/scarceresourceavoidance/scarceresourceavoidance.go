// Package scarceresourceavoidance keeps tasks that need no scarce resource off
// the nodes that have it: by score, and where configured by keeping cores and
// memory free for devices that nobody uses yet.
//
// The score looks at types of resources, not at amounts. Of the types that a
// node offers and the task does not ask for (spare) some are scarce:
//
//	(weight of spare − weight of scarce spare) × 100 ÷ weight of spare
//
// rounded down, and 100 if nothing is spare or nothing spare is scarce. A type
// weighs 1 unless the configuration gives a scarce one more; with all weights 1
// the formula counts types. Weights are for machines with many types besides
// the scarce one, which would otherwise drown it.
//
// It refuses to know whether a task fits: without a reservation it filters nothing.
// Nor does it score nodes for models that use devices, which say themselves how
// they are laid out; a model that runs on the CPU is a task like others.
package scarceresourceavoidance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/nearest"
)

// Name is the plugin's name in a profile.
const Name = "ScarceResourceAvoidance"

// Arguments are the plugin's arguments.
type Arguments struct {
	// Resources are the scarce ones; without any, those that have weights, or every
	// resource under which nodes advertise devices.
	Resources []string `json:"resources"`
	// Weights of scarce resources; 1 where none is given.
	Weights map[string]int64 `json:"weights"`
	// Reserve keeps room for unused devices; off unless given.
	Reserve *Reserve `json:"reserve"`
}

// Reserve says how much of a node each of its unused scarce devices keeps free.
type Reserve struct {
	// PerDevice is what each unused scarce device of a node keeps free there.
	PerDevice PerDevice `json:"perDevice"`
}

// PerDevice is what a task that uses one device is expected to need beside it.
type PerDevice struct {
	// CPU is the number of cores, such as 8 or 500m.
	CPU Quantity `json:"cpu"`
	// Memory is the memory of the node, such as 64Gi.
	Memory Quantity `json:"memory"`
}

type plugin struct {
	scarce  []scarce         // none: every resource that devices have
	reserve []cluster.Amount // for each unused device
}

type scarce struct {
	name   string
	weight int64
}

// pods is how many tasks a node takes, and no type of resource.
const pods = "pods"

// New builds the plugin.
var New = engine.WithArguments(nil, build)

func build(a Arguments) (engine.Plugin, error) {
	p := &plugin{}
	if err := p.setScarce(a); err != nil {
		return nil, err
	}
	if a.Reserve != nil {
		if err := p.setReserve(a.Reserve.PerDevice); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *plugin) setScarce(a Arguments) error {
	names := a.Resources
	switch {
	case names == nil:
		names = slices.Sorted(maps.Keys(a.Weights))
	case len(names) == 0:
		return fmt.Errorf("resources is empty, so nothing is scarce; name a resource, or leave the field out for the default")
	}
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("resources: a resource has no name; write one such as %s", cluster.DefaultDeviceResource)
		}
		if name == pods {
			return fmt.Errorf("resources: pods counts tasks and is no type of resource; remove it")
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("resources: %s is listed twice; remove one", name)
		}
		p.scarce = append(p.scarce, scarce{name, 1})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Weights)) {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("weights: %s is not among the scarce resources; add it to resources%s", name, nearest.Hint(name, names))
		}
		w := a.Weights[name]
		if w < 1 || w > engine.MaxWeight {
			return fmt.Errorf("weights: %s: weight %d is not between 1 and %d; to leave it out of the score, remove it", name, w, engine.MaxWeight)
		}
		p.scarce[i].weight = w
	}
	return nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStaticScore(matters, p.score)
	if len(p.reserve) > 0 {
		s.Hooks.AddShapeFilter(needsNone, p.admit)
	}
}

// matters leaves models that use devices to PlacementScorer.
func matters(s *cluster.Shape) bool { return !s.Served() || s.Need.None() }

func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	var spare, rare int64 // by weight
	at := 0
	for i := range n.Resources {
		l := &n.Resources[i]
		asked := false
		for k := at; k < len(s.Resources); k++ {
			if s.Resources[k].Name == l.Name {
				asked = s.Resources[k].Value > 0
				at = k + 1 // both lists are sorted by name
				break
			}
		}
		if asked || l.Capacity <= 0 || l.Name == pods {
			continue
		}
		if w := p.weight(l.Name); w > 0 {
			spare, rare = spare+w, rare+w
		} else {
			spare++
		}
	}
	last := ""
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost || d.Resource == last { // the common case: all devices have one name
			continue
		}
		if last = d.Resource; seen(n.Devices[:i], d) || asks(&s.Need, n, d.Resource) {
			continue
		}
		if w := p.deviceWeight(d.Resource); w > 0 {
			spare, rare = spare+w, rare+w
		} else {
			spare++
		}
	}
	if rare == 0 {
		return 100
	}
	return float64((spare - rare) * 100 / spare)
}

// weight is that of a scarce resource, 0 for any other.
func (p *plugin) weight(name string) int64 {
	for i := range p.scarce {
		if p.scarce[i].name == name {
			return p.scarce[i].weight
		}
	}
	return 0
}

// deviceWeight is the weight of a resource that devices have.
func (p *plugin) deviceWeight(name string) int64 {
	if len(p.scarce) == 0 {
		return 1
	}
	return p.weight(name)
}

// seen reports whether an earlier device that works has the same resource name.
func seen(before []cluster.Device, d *cluster.Device) bool {
	for i := range before {
		if !before[i].Lost && before[i].Resource == d.Resource {
			return true
		}
	}
	return false
}

// asks reports whether the need asks for devices of this name.
func asks(need *cluster.Need, n *cluster.Node, name string) bool {
	if need.None() {
		return false
	}
	if need.Resource != "" {
		return need.Resource == name
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Resource == name && d.Profile == need.Partition {
			return true
		}
	}
	return false
}
