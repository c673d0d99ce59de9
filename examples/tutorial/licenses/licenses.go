// Package licenses gives each task of a job with the label "license" one of the licenses
// of its node. A node has as many as its label "licenses" says.
//
// It refuses to know where licenses come from: each that is taken is reported.
package licenses

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Licenses"

// NoLicense is a node whose licenses are all held.
const NoLicense engine.Reason = "NoLicense"

type plugin struct {
	report func(task cluster.TaskRef, node string) // of each license that is held for good

	read  cluster.Since // up to where the View was read
	runs  map[int]int   // licenses that tasks on the node held when the session opened, by slot
	tried map[int]int   // how many more the session has reserved, or fewer, by slot
}

// Builder makes plugins that report each license that is taken.
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
				if t.Stays() && licensed(t, t.Job) {
					p.runs[slot]++
				}
			}
		}
	})
	s.Hooks.AddReserve(licensed, engine.Reserver{Reserve: p.reserve, Unreserve: p.unreserve})
	s.Hooks.AddWake(engine.WakeNodes) // a license becomes free when a task leaves its node
	s.Hooks.AddObserver(engine.Observer{Bound: p.report})
}

func licensed(_ *cluster.Task, j *cluster.Job) bool { return j.Labels["license"] != "" }

func (p *plugin) reserve(_ *cluster.Task, n *cluster.Node) *engine.Rejection {
	has, _ := strconv.Atoi(n.Labels["licenses"]) // a label that is no number is none
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
