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

// The reasons.
const (
	NoLicense           engine.Reason = "NoLicense"           // all licenses of the node are held
	NodeWithoutLicenses engine.Reason = "NodeWithoutLicenses" // the node has no licenses at all
)

type plugin struct {
	report func(task cluster.TaskRef, node string) // called for each task that is bound

	read  cluster.Since // which changes of the View have been read
	runs  map[int]int   // how many licenses of a node were held when the session opened; the key is the node's slot
	tried map[int]int   // how many more the session has taken since, or released if negative; the same key
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
	s.Hooks.AddWake(engine.WakeNodes) // the default, stated explicitly: a license becomes free when a task releases its node
	s.Hooks.AddObserver(engine.Observer{Bound: p.report})
}

func licensed(_ *cluster.Task, j *cluster.Job) bool { return j.Labels["license"] != "" }

func (p *plugin) reserve(_ *cluster.Task, n *cluster.Node) *engine.Rejection {
	has, _ := strconv.Atoi(n.Labels["licenses"]) // a label that is not a number counts as 0
	p.tried[n.Slot()]++                          // also if the task is rejected: the engine then calls unreserve
	switch {
	case has == 0:
		return &engine.Rejection{Reason: NodeWithoutLicenses, Cure: engine.Grow, Subject: n.Name}
	case p.runs[n.Slot()]+p.tried[n.Slot()] > has:
		return &engine.Rejection{Reason: NoLicense, Cure: engine.Wait | engine.Evict, Subject: n.Name}
	}
	return nil
}

func (p *plugin) unreserve(_ *cluster.Task, n *cluster.Node) { p.tried[n.Slot()]-- }
