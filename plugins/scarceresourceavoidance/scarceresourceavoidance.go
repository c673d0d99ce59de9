// Package scarceresourceavoidance keeps tasks that need no scarce resource off the nodes
// that have it: by a score and, if configured, by reserving cores and memory for unused
// devices.
//
// The score considers types of resources, not amounts. The types that a node offers and
// the task does not request are spare, and some of them are scarce:
//
//	(weight of spare − weight of scarce spare) × 100 ÷ weight of spare
//
// rounded down. It is 100 if nothing is spare or nothing spare is scarce. A type has
// weight 1 unless the configuration gives a scarce type a higher weight. With all weights 1
// the formula counts types. A higher weight is useful on machines with many other types,
// among which the scarce one would hardly count.
//
// Without a reservation the plugin rejects no node. It does not score nodes for models
// that use devices, which PlacementScorer scores; a model that runs on the CPU is scored
// like any other task.
//
// A configuration may name the scarce resources, give them weights, and reserve room for
// each unused device:
//
//	plugins:
//	- name: ScarceResourceAvoidance
//	  arguments:
//	    resources: [nvidia.com/gpu]
//	    weights: {nvidia.com/gpu: 5}
//	    reserve: {perDevice: {cpu: 8, memory: 64Gi}}
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
	// Resources lists the scarce resources. The default is the resources that have weights
	// or, without weights, every resource name that devices have.
	Resources []string `json:"resources"`
	// Weights are the weights of scarce resources, from 1 to 100000; 1 unless given.
	Weights map[string]int64 `json:"weights"`
	// Reserve reserves room for unused devices. Unless given, nothing is reserved.
	Reserve *Reserve `json:"reserve"`
}

// Reserve is how much of a node each of its unused scarce devices reserves.
type Reserve struct {
	// PerDevice is what each unused scarce device of a node reserves there.
	PerDevice PerDevice `json:"perDevice"`
}

// PerDevice is what a task with one device is expected to need of the node.
type PerDevice struct {
	// CPU is the number of cores, such as 8 or 500m; 0 unless given.
	CPU Quantity `json:"cpu"`
	// Memory is the memory of the node, such as 64Gi; 0 unless given.
	Memory Quantity `json:"memory"`
}

type plugin struct {
	engine.FixedHooks
	scarce  []scarce         // empty: every resource that devices have
	reserve []cluster.Amount // for each unused device
	// filter and scorer are admit and score. A method value is allocated each time that it is made.
	filter engine.ShapeFilter
	scorer engine.ShapeScore
}

type scarce struct {
	name   string
	weight int64
}

// pods is the number of tasks that a node accepts. It is not a type of resource.
const pods = "pods"

// New builds the plugin from its Arguments.
var New = engine.WithArguments(nil, build)

func build(a Arguments) (engine.Plugin, error) {
	p := &plugin{}
	p.filter, p.scorer = p.admit, p.score
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
			return fmt.Errorf("resources: pods counts tasks and is not a type of resource; remove it")
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
	s.Hooks.AddStaticScore(matters, p.scorer)
	engine.EqualNodes(s.Hooks)
	if len(p.reserve) > 0 {
		s.Hooks.AddShapeFilter(needsNoDevice, p.filter)
		engine.EqualNodes(s.Hooks)
	}
}

// matters excludes models that use devices, which PlacementScorer scores.
func matters(s *cluster.Shape) bool { return !s.ServesModel() || s.Need.None() }

func (p *plugin) score(s *cluster.Shape, n *cluster.Node) float64 {
	var spare, rare int64 // weights of the spare types, and of the scarce ones among them
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
		if last = d.Resource; seen(n.Devices[:i], d) || requests(&s.Need, n, d.Resource) {
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

// weight returns the weight of a scarce resource, and 0 for any other.
func (p *plugin) weight(name string) int64 {
	for i := range p.scarce {
		if p.scarce[i].name == name {
			return p.scarce[i].weight
		}
	}
	return 0
}

// deviceWeight returns the weight of a resource that devices have, and 0 if it is not scarce.
func (p *plugin) deviceWeight(name string) int64 {
	if len(p.scarce) == 0 {
		return 1
	}
	return p.weight(name)
}

// seen reports whether an earlier working device has the same resource name.
func seen(before []cluster.Device, d *cluster.Device) bool {
	for i := range before {
		if !before[i].Lost && before[i].Resource == d.Resource {
			return true
		}
	}
	return false
}

// asks reports whether the task requests devices with the resource name.
func requests(need *cluster.Need, n *cluster.Node, name string) bool {
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
