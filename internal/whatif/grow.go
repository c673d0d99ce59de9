package whatif

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Machine is a kind of node that more could be had of.
type Machine struct {
	Name     string        // the group's, or "node like NAME" without devices
	Template *cluster.Node // an existing node of the kind
	exact    bool          // all nodes of the group would do alike
	domain   string        // where they must be: " in rack r2", or ""
}

// Twin is an empty node that is like the given one in everything but its name.
func Twin(n *cluster.Node, name string) *cluster.Node {
	m := &cluster.Node{
		Name: name, Cell: n.Cell, Labels: maps.Clone(n.Labels), DeviceResource: n.DeviceResource, Sharing: n.Sharing,
		Advertised: n.Advertised, Artifacts: maps.Clone(n.Artifacts), Defect: n.Defect, Unified: n.Unified,
	}
	for k, v := range m.Labels {
		if v == n.Name { // kubernetes.io/hostname and the like
			m.Labels[k] = name
		}
	}
	for _, t := range n.Taints {
		// A node that was just bought is not cordoned, whatever happened to the one it is like.
		if t.Key != "node.kubernetes.io/unschedulable" {
			m.Taints = append(m.Taints, t)
		}
	}
	for _, l := range n.Resources {
		m.Resources = append(m.Resources, cluster.Ledger{Name: l.Name, Capacity: l.Capacity})
	}
	for i, d := range n.Devices {
		d.Use, d.Foreign, d.UUID, d.Lost = cluster.DeviceUse{}, 0, fmt.Sprintf("%s-%d", name, i), false
		if d.Parent != "" {
			d.Parent = name + "/" + d.Parent
		}
		m.Devices = append(m.Devices, d)
	}
	return m
}

// AddTwins adds count empty nodes like the template and returns their names.
func AddTwins(s *cluster.State, template *cluster.Node, count int) ([]string, error) {
	var names []string
	for i := 1; len(names) < count; i++ {
		name := fmt.Sprintf("%s+%d", template.Name, i)
		if s.Node(name) != nil {
			continue
		}
		if err := s.Apply(cluster.NodePut{Node: *Twin(template, name)}); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// looks spells what tells nodes of a group apart for a filter, names aside.
func looks(n *cluster.Node) string {
	var b strings.Builder
	keys := slices.Sorted(maps.Keys(n.Labels))
	for _, k := range keys {
		if v := n.Labels[k]; v != n.Name {
			fmt.Fprintf(&b, "%s=%s,", k, v)
		}
	}
	fmt.Fprintf(&b, "|%v|%s|%v|%v", n.Taints, n.Cell, n.Advertised, n.Defect)
	for _, l := range n.Resources {
		fmt.Fprintf(&b, "|%s=%d", l.Name, l.Capacity)
	}
	return b.String()
}

// maxLooks bounds how many sorts of node are tried out in one group.
const maxLooks = 32

// templates are one node for each look, by name.
func templates(nodes []*cluster.Node) []*cluster.Node {
	seen := map[string]bool{}
	var out []*cluster.Node
	for _, n := range nodes {
		if len(out) == maxLooks {
			break
		}
		if k := looks(n); !seen[k] {
			seen[k] = true
			out = append(out, n)
		}
	}
	return out
}

// inBestDomain are those of the nodes that are in the domain with the most room,
// where it takes one: more of the same are of no use elsewhere.
func inBestDomain(a *engine.Attempt, nodes []*cluster.Node) ([]*cluster.Node, string) {
	if len(a.Domains) == 0 {
		return nodes, ""
	}
	best := a.Domains[0].Value
	there := slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return n.Labels[a.Level] != best })
	return there, " in " + explain.LevelName(a.Level) + " " + best
}

// grower adds nodes to the cluster.
type grower struct {
	lab      *lab
	workload *workload
	found    *finder
	probe    *engine.Engine  // for clusters of its own; nil until one is asked about
	left     *engine.Refusal // of the last node that did not hold the workload
}

// machines are the kinds of node that could hold the blocked task if they were
// empty, the smallest first. Edit, which may be nil, relaxes the request before.
func (g *grower) machines(edit func(*cluster.Shape)) []Machine {
	var out []Machine
	consider := func(name string, nodes []*cluster.Node) {
		nodes, domain := inBestDomain(g.workload.attempt, nodes)
		list := templates(nodes)
		good := 0
		var first *cluster.Node
		for _, n := range list {
			if g.holds(n, edit) {
				if good++; first == nil {
					first = n
				}
			}
		}
		if first != nil {
			out = append(out, Machine{Name: name, Template: first, exact: good == len(list), domain: domain})
		}
	}
	for _, group := range g.workload.state.View().Groups() {
		consider(group.Key.String(), group.Nodes)
	}
	if g.workload.shape().Need.None() {
		consider("", slices.DeleteFunc(slices.Clone(g.workload.state.Nodes()), func(n *cluster.Node) bool { return n.Group() != nil }))
	}
	sort.SliceStable(out, func(i, j int) bool { return size(out[i].Template) < size(out[j].Template) })
	return out
}

// size is what a node is worth, roughly: its device memory, then its cores.
func size(n *cluster.Node) int64 {
	total := n.Capacity(cluster.CPU) / 1000
	for i := range n.Devices {
		total += int64(n.Devices[i].Memory>>20) << 10
	}
	return total
}

// holds asks the real filters whether an empty twin of the node takes the
// blocked task, in a cluster that has nothing else. Other jobs and the queue's
// limits are left out: they are what the full try is for.
func (g *grower) holds(n *cluster.Node, edit func(*cluster.Shape)) bool {
	if g.lab.err != nil {
		return false
	}
	j, alt := g.workload.job(), g.workload.form()
	s := cluster.NewState()
	if g.lab.err = s.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: j.Queue}}); g.lab.err != nil {
		return false
	}
	count := 1
	probe := cluster.Job{ID: j.ID, Namespace: j.Namespace, Queue: j.Queue, Preemptible: j.Preemptible, Labels: j.Labels}
	form := cluster.Alternative{Min: 1}
	if alt.Whole != nil {
		count = max(1, alt.Whole.NodesPerReplica)
		form.Whole = &cluster.WholeNodes{Replicas: 1, NodesPerReplica: count, Memory: alt.Whole.Memory}
		form.Min = count
	}
	shape := *g.workload.shape()
	if edit != nil {
		edit(&shape)
	}
	for i := range count {
		form.Tasks = append(form.Tasks, &cluster.Task{Name: fmt.Sprintf("probe-%d", i), Role: g.workload.attempt.Task.Role, Index: i, Shape: &shape})
	}
	probe.Alternatives = []cluster.Alternative{form}
	if s.Apply(cluster.JobPut{Job: probe}) != nil {
		return false
	}
	if _, err := AddTwins(s, n, count); err != nil {
		return false
	}
	if g.probe == nil { // the engine itself remembers the cluster in question
		if g.probe, g.lab.err = g.lab.engine.Another(); g.lab.err != nil {
			return false
		}
	}
	out, err := sim.Session(g.probe, s, engine.Options{Now: g.lab.now})
	if err != nil {
		g.lab.err = err
		return false
	}
	if len(out.Refusals) == 0 {
		return true
	}
	g.left = out.Refusals[0]
	return false
}

func (m Machine) change(n int) *change {
	what := m.Name
	text := "with one more node"
	if n > 1 {
		text = fmt.Sprintf("with %d more nodes", n)
	}
	switch {
	case what == "":
		text += " like " + m.Template.Name
	case m.exact:
		text += " of " + what
	default:
		text += " of " + what + " like " + m.Template.Name
	}
	return &change{kind: wire.AddNodes, text: text + m.domain, cost: 40 + 20*n, apply: func(s *cluster.State) error {
		_, err := AddTwins(s, m.Template, n)
		return err
	}}
}

// fewest finds the smallest number of nodes of the kind that makes it fit, given
// other changes: doubling, then halving the gap.
func (g *grower) fewest(m Machine, with ...*change) (*change, verdict) {
	missing, pending := g.workload.missing(), 0
	for _, j := range g.workload.state.Pending() {
		pending += j.Missing()
	}
	// Others that are pending may take what was meant for this one.
	const mostNodes = 4096
	most := min(mostNodes, max(missing, pending))
	fits := func(n int) (*change, verdict) {
		c := m.change(n)
		return c, g.lab.try(append(slices.Clone(with), c)...)
	}
	low, n := 0, 1
	var best *change
	var v verdict
	for {
		if best, v = fits(n); v.fits {
			break
		}
		if n >= most || g.lab.spent() {
			return nil, v
		}
		low = n
		next := n * 2
		if n < missing {
			next = min(next, missing)
		}
		n = min(next, most)
	}
	for n-low > 1 && !g.lab.spent() {
		mid := (low + n) / 2
		if c, got := fits(mid); got.fits {
			n, best = mid, c
		} else {
			low = mid
		}
	}
	return best, v
}

// grow tries more nodes of every kind that could hold the task.
func (g *grower) grow() {
	const mostKinds = 5
	if g.lab.spent() {
		return
	}
	for i, m := range g.machines(nil) {
		if i == mostKinds || g.lab.spent() {
			return
		}
		c, v := g.fewest(m)
		if c != nil {
			g.found.yes(c)
		} else {
			g.found.no(m.change(g.workload.missing()), v)
		}
	}
}
