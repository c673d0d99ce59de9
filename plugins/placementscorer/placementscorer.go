// Package placementscorer scores nodes and devices for the replicas of models, by the
// strategy that each model chooses. It does not apply to other tasks.
//
// Binpack, which manifests call Pack, fills nodes and devices that are already in use. For
// each device that the replica would get, and for the memory of the node, it computes the
// fraction that the replica takes of what is free:
//
//	100 × (ram + 2 × device memory) ÷ 3
//
// The device with the largest fraction counts. If the replica takes no device, the score
// is 100 × ram. A fraction is 0 if nothing is requested, and 1 if nothing would be left. On
// unified memory, what the replica takes of devices counts as ram too, and no more is free of a
// device than is free of the node's memory.
//
// Spread avoids nodes with other replicas. With m other replicas of the same model, which are
// those of the same Set, on the node, the score is more than 100 ÷ (2 + m) and at most
// 100 ÷ (1 + m). A node with fewer replicas of the model therefore scores higher, unless layers
// count first (see below). Let step be 100 ÷ (1 + m) − 100 ÷ (2 + m). The place of the score
// between the two bounds depends on o, the number of other replicas on the node, and on the
// devices:
//
//	100 ÷ (2 + m) + step × (0.85 ÷ (1 + o) + 0.15 × device)
//
// A device that k tasks hold already counts 1 ÷ (1 + k). The mean over the devices that the
// replica would get is used, and 1 if it gets none. So 85 % depends on the node and 15 % on
// the devices. Tasks of the same replica that are already on the node count together as one
// replica in o when the node is scored for the next task.
//
// If layers may be put into the memory of the node, the number of layers on devices
// counts first, with either strategy, and then how few devices hold them: with s the score from
// above, l layers of t on n devices score 100 × (l + d) ÷ (t + 1), where d is more than
// 1 ÷ (n + 1) and at most 1 ÷ n:
//
//	d = 1 ÷ (n + 1) + s ÷ 100 × (1 ÷ n − 1 ÷ (n + 1))
//
// Among the devices of a node, Binpack prefers those of which the replica takes the largest
// fraction. Spread prefers those that the fewest tasks hold, then those with the largest
// free fraction.
//
// When the number of replicas of a model is reduced, the plugin also scores which replicas
// to keep. The score of a replica is the mean over its tasks of the score that the task would get
// where it is. The other tasks of the replica do not count in m and o. The plugin does not check
// whether a replica fits.
package placementscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "PlacementScorer"

type plugin struct {
	session  *engine.Session
	register func(*engine.Hooks)
}

// New builds the plugin. It has no arguments: each model has its own strategy.
var New = engine.WithoutArguments(func() engine.Plugin {
	p := &plugin{}
	p.register = p.registration()
	return p
})

func (*plugin) Name() string { return Name }

// OnSessionOpen registers Spread as a bounded score. The shape does not tell which replicas
// are of the same model, so the score of the shape is only an upper bound. On nodes without
// a replica of the model it is exact, unless tasks of the job that serve no model are there.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	p.register(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	return true
}

// registration returns the function that registers the hooks. The functions of the hooks are made
// once, because each function that refers to the plugin allocates memory.
func (p *plugin) registration() func(*engine.Hooks) {
	choose := func(shape *cluster.Shape, n *cluster.Node) ([]cluster.Claim, bool) {
		return p.session.Devices(shape, n)
	}
	packed := func(shape *cluster.Shape, n *cluster.Node) float64 { return pack(choose, shape, n) }
	bound := func(shape *cluster.Shape, n *cluster.Node) float64 {
		return spread(choose, shape, n, 0, replicasOn(n))
	}
	exact := func(t *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
		same, others := replicasBefore(j, n)
		return spread(choose, t.Shape, n, same, others)
	}
	return func(h *engine.Hooks) {
		h.AddShapeScore(packs, packed)
		engine.EqualNodes(h)
		h.AddBoundedScore(spreads, bound, exact)
		h.AddDeviceScore(deviceScore)
		engine.EqualNodes(h)
		h.AddInstanceScore(keep)
	}
}

func packs(s *cluster.Shape) bool   { return s.ServesModel() && s.Strategy != cluster.Spread }
func spreads(s *cluster.Shape) bool { return s.Strategy == cluster.Spread }

// chooseDevices returns the devices of the node that the shape would get, and false if it
// does not fit.
type chooseDevices func(*cluster.Shape, *cluster.Node) ([]cluster.Claim, bool)

// pack returns the score of Binpack.
func pack(choose chooseDevices, s *cluster.Shape, n *cluster.Node) float64 {
	claims, ok := choose(s, n)
	if !ok {
		return 0 // a filter rejects the node
	}
	t := cluster.Task{Shape: s, Node: n, Claims: claims}
	return 100 * layersFirst(&t, utilisation(&t))
}

// spread returns the score of Spread, given how many other replicas are on the node.
func spread(choose chooseDevices, s *cluster.Shape, n *cluster.Node, same, others int) float64 {
	claims, ok := choose(s, n)
	if !ok {
		return 0
	}
	t := cluster.Task{Shape: s, Node: n, Claims: claims}
	return 100 * layersFirst(&t, spreadValue(same, others, exclusivity(&t)))
}

// keep returns the mean, over the tasks of the replica, of the score that the task would get
// where it is or will be moved to. It returns 0 if no task holds room.
func keep(j *cluster.Job) float64 {
	sum, tasks := 0.0, 0
	for _, t := range j.Tasks() {
		if l := t.Landing(); l != nil {
			t = l
		}
		if !inUse(t) || !t.Shape.ServesModel() {
			continue
		}
		tasks++
		if spreads(t.Shape) {
			same, others := replicasBeside(j, t.Node)
			sum += layersFirst(t, spreadValue(same, others, exclusivity(t)))
		} else {
			sum += layersFirst(t, utilisation(t))
		}
	}
	if tasks == 0 {
		return 0
	}
	return min(100, 100*sum/float64(tasks))
}

// layersFirst makes the number of layers on devices count first, and then the number of devices,
// if some layers may be in the memory of the node.
func layersFirst(t *cluster.Task, fraction float64) float64 {
	if !maySpill(t.Shape) {
		return fraction
	}
	on := 0
	for i := range t.Claims {
		on += t.Claims[i].Layers
	}
	if n := float64(len(t.Claims)); n > 0 {
		fraction = 1/(n+1) + fraction*(1/n-1/(n+1))
	}
	return (float64(on) + fraction) / float64(t.Shape.Need.Layers.Total+1)
}

func maySpill(s *cluster.Shape) bool { return s.Need.Layers != nil && s.Need.Layers.Spill }

// inUse reports whether what the task takes is included in what its node has in use.
func inUse(t *cluster.Task) bool { return t.Runs() || t.Status == cluster.Nominated }
