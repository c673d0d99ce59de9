// Package licenses gives each task of a job with the label "license" one of the licenses
// of its node. The label "licenses" of a node is the number of its licenses.
//
// It does not manage licenses; it reports each license that is taken.
package licenses

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Licenses"

// NoLicense is given for a node on which all licenses are held.
const NoLicense engine.Reason = "NoLicense"

type plugin struct {
	report func(task cluster.TaskRef, node string) // called for each task that is bound

	read  cluster.Since // the version of the View that was read
	runs  map[int]int   // licenses that tasks on the node held when the session opened, by slot
	tried map[int]int   // by how much the session has changed that number, by slot
}

// Builder returns a builder of plugins that report each license that is taken.
func Builder(report func(task cluster.TaskRef, node string)) engine.PluginBuilder {
	return engine.WithoutArguments(func() engine.Plugin { return &plugin{report: report} })
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.tried = map[int]int{}
	p.read.Nodes(s.View, func() { p.runs = map[int]int{} }, func(slot int) {
		delete(p.runs, slot)
		if n := s.View.At(slot); n != nil {
			for _, t := range n.Tasks {
				if t.KeepsRoom() && licensed(t, t.Job) {
					p.runs[slot]++
				}
			}
		}
	})
	s.Hooks.AddReserve(licensed, engine.Reserver{Reserve: p.reserve, Unreserve: p.unreserve})
	s.Hooks.AddWake(engine.WakeNodes) // a license becomes free when a task releases its node
	s.Hooks.AddObserver(engine.Observer{Bound: p.report})
}

func licensed(_ *cluster.Task, j *cluster.Job) bool { return j.Labels["license"] != "" }

func (p *plugin) reserve(_ *cluster.Task, n *cluster.Node) *engine.Rejection {
	has, _ := strconv.Atoi(n.Labels["licenses"]) // a label that is not a number counts as 0
	p.tried[n.Slot()]++
	if p.runs[n.Slot()]+p.tried[n.Slot()] > has {
		r := &engine.Rejection{Reason: NoLicense, Cure: engine.Wait | engine.Evict, Subject: n.Name, Want: engine.Quantity{Value: 1, Unit: engine.Count}}
		if has == 0 {
			r.Cure = engine.Grow
		}
		return r
	}
	return nil
}

func (p *plugin) unreserve(_ *cluster.Task, n *cluster.Node) { p.tried[n.Slot()]-- }
