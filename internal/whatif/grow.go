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

// Machine is a sort of node of which more could be added.
type Machine struct {
	Name     string        // of the node group that a new node is in; "" without devices
	Template *cluster.Node // an existing node of the sort
	exact    bool          // a new node like any node of the group could take the workload
	domain   string        // the domain in which they must be: " in rack r2", or ""
}

// Twin returns a new node with another name that is otherwise like the given one. It is
// empty, ready and not cordoned, and none of its devices is lost, whatever the state of the
// given node is.
func Twin(n *cluster.Node, name string) *cluster.Node {
	m := &cluster.Node{
		Name: name, Cell: n.Cell, Labels: maps.Clone(n.Labels), DeviceResource: n.DeviceResource, Sharing: n.Sharing,
		SupportedIsolation: n.SupportedIsolation, Artifacts: maps.Clone(n.Artifacts), Defect: n.Defect, Unified: n.Unified,
	}
	for k, v := range m.Labels {
		if v == n.Name { // kubernetes.io/hostname and the like
			m.Labels[k] = name
		}
	}
	for _, t := range n.Taints {
		if t.Key != "node.kubernetes.io/unschedulable" && !isNodeCondition(t) {
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

// appearance returns a key of all properties of a node that Twin copies and that a filter
// may read. Names of the node are left out, and devices count as if none were lost.
func appearance(n *cluster.Node) string {
	var b strings.Builder
	keys := slices.Sorted(maps.Keys(n.Labels))
	for _, k := range keys {
		if v := n.Labels[k]; v != n.Name {
			fmt.Fprintf(&b, "%s=%s,", k, v)
		}
	}
	fmt.Fprintf(&b, "|%v|%s|%v|%v", n.Taints, n.Cell, n.SupportedIsolation, n.Defect)
	for _, l := range n.Resources {
		fmt.Fprintf(&b, "|%s=%d", l.Name, l.Capacity)
	}
	fmt.Fprintf(&b, "|%s|%v|%t", n.DeviceResource, n.Sharing, n.Unified)
	for _, file := range slices.Sorted(maps.Keys(n.Artifacts)) {
		fmt.Fprintf(&b, "|%s=%s", file, n.Artifacts[file])
	}
	var was cluster.Device
	for i, d := range n.Devices {
		d = cluster.Device{
			Product: d.Product, Profile: d.Profile, Resource: d.Resource, Memory: d.Memory, Reserved: d.Reserved,
			Type: d.Type, NUMA: d.NUMA, Link: d.Link, Replica: d.Replica,
		}
		if d != was {
			fmt.Fprintf(&b, "|%d:%v", i, d)
			was = d
		}
	}
	fmt.Fprintf(&b, "|%d", len(n.Devices))
	return b.String()
}

// maxAppearances is the largest number of templates of one list of nodes: of one node
// group, or of all nodes without devices. Nodes that look different from these are not
// tried.
const maxAppearances = 32

// templates returns the first node of each appearance, at most maxAppearances.
func templates(nodes []*cluster.Node) []*cluster.Node {
	seen := map[string]bool{}
	var out []*cluster.Node
	for _, n := range nodes {
		if len(out) == maxAppearances {
			break
		}
		if k := appearance(n); !seen[k] {
			seen[k] = true
			out = append(out, n)
		}
	}
	return out
}

// inBestDomain are the nodes that are in the domain with the most room, if the tasks must
// be in one domain. Nodes in other domains are not tried. It also returns the name of the
// domain for the text of a change.
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
	lab         *lab
	workload    *workload
	found       *finder
	probe       *engine.Engine  // for clusters of a few nodes; nil until it is first used
	lastRefusal *engine.Refusal // of the last call of holds that returned false; nil if there was none
}

// machines returns the sorts of node that could take the refused task if they were empty,
// the smallest first. Edit, which may be nil, changes the request of the task before a node
// is tested.
func (g *grower) machines(edit func(*cluster.Shape)) []Machine {
	var out []Machine
	sorts := g.sorts()
	if !g.workload.shape().Need.None() {
		sorts = sorts[1:]
	}
	for _, nodes := range sorts {
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
		if first == nil {
			continue
		}
		m := Machine{Name: groupName(first), Template: first, exact: good == len(list), domain: domain}
		// Nodes with lost devices are another group, and a new node like them is not.
		if !slices.ContainsFunc(out, func(o Machine) bool { return o.change(1).text == m.change(1).text }) {
			out = append(out, m)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return size(out[i].Template) < size(out[j].Template) })
	return out
}

// sorts returns the nodes without devices, which may be none, and then the nodes of each
// node group.
func (g *grower) sorts() [][]*cluster.Node {
	out := [][]*cluster.Node{slices.DeleteFunc(slices.Clone(g.workload.state.Nodes()), func(n *cluster.Node) bool { return n.Group() != nil })}
	for _, group := range g.workload.state.View().Groups() {
		out = append(out, group.Nodes)
	}
	return out
}

// groupName returns the name of the node group of a new node like n; "" if n has no
// devices. That group is not the group of n if n has lost devices.
func groupName(n *cluster.Node) string {
	s := cluster.NewState()
	if s.Apply(cluster.NodePut{Node: *Twin(n, n.Name)}) != nil || s.Node(n.Name).Group() == nil {
		return ""
	}
	return s.Node(n.Name).Group().Key.String()
}

// size compares nodes roughly: by device memory, then by cores.
func size(n *cluster.Node) int64 {
	total := n.Capacity(cluster.CPU) / 1000
	for i := range n.Devices {
		total += int64(n.Devices[i].Memory>>20) << 10
	}
	return total
}

// holds runs a session on a cluster of empty twins of the node, and reports whether the
// refused task is placed. Other jobs and the limits of queues are not considered here: a
// try on the whole State does that.
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
	if g.probe == nil { // lab.engine keeps what it knows of the real State
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
	g.lastRefusal = out.Refusals[0]
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

// fewest finds the smallest number of added nodes of the sort by which the workload fits,
// together with other changes. It doubles the number until the workload fits, and then
// bisects. It returns the change that was tried, and its verdict. If the tries are used up,
// that is the smallest number that was found to fit. If no number fits, it is one node for
// each missing task, or the last number that was tried if the tries are used up before.
func (g *grower) fewest(m Machine, with ...*change) (*change, verdict) {
	missing, pending := g.workload.missing(), 0
	for _, j := range g.workload.state.Pending() {
		pending += j.Missing()
	}
	// Other pending workloads may take the nodes that are added.
	const mostNodes = 4096
	most := min(mostNodes, max(missing, pending))
	fits := func(n int) (*change, verdict) {
		c := m.change(n)
		return c, g.lab.try(append(slices.Clone(with), c)...)
	}
	low, n := 0, 1
	var best, failed *change
	var v, failure verdict
	for {
		if best, v = fits(n); v.fits {
			break
		}
		if n <= missing {
			failed, failure = best, v
		}
		if n >= most || g.lab.spent() {
			return failed, failure
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

// grow tries more nodes of every sort that could take the task.
func (g *grower) grow() {
	const mostKinds = 5
	if g.lab.spent() {
		return
	}
	for i, m := range g.machines(nil) {
		if i == mostKinds || g.lab.spent() {
			return
		}
		if c, v := g.fewest(m); v.fits {
			g.found.addHelp(c)
		} else {
			g.found.addFailure(c, v)
		}
	}
}
