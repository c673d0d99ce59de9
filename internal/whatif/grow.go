package whatif

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// nodeType is a type of node of which more could be added.
type nodeType struct {
	name     string        // the node group that a new node would be in; "" for a node without devices
	template *cluster.Node // an existing node of the type, which new nodes are copies of
	exact    bool          // the text need not name the template: copies of all templates that were considered could take the task, or there is only one template
	domain   string        // the topology domain in which new nodes must be, as text: " in rack r2"; or ""
}

// NewNodeLike returns a copy of the node under another name. The copy is empty, ready and not
// cordoned, and none of its devices is lost, whatever the state of the node is.
func NewNodeLike(n *cluster.Node, name string) *cluster.Node {
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
			d.OwnSpec().Parent = name + "/" + d.Parent
		}
		m.Devices = append(m.Devices, d)
	}
	return m
}

// AddNodesLike adds count empty copies of the template (see NewNodeLike) and returns their
// names, such as "gpu-1+1".
func AddNodesLike(s *cluster.State, template *cluster.Node, count int) ([]string, error) {
	var names []string
	for i := 1; len(names) < count; i++ {
		name := fmt.Sprintf("%s+%d", template.Name, i)
		if s.Node(name) != nil {
			continue
		}
		if err := s.Apply(cluster.NodePut{Node: *NewNodeLike(template, name)}); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// propertiesKey returns a key of the properties that decide which tasks an empty copy of the
// node could take. Nodes with equal keys count as equal (see templates). Labels that hold the
// name of the node and Device.Parent are left out, and devices count as if none were lost.
// Taints of node conditions are included, although NewNodeLike does not copy them.
func propertiesKey(n *cluster.Node) string {
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
	var was cluster.DeviceSpec
	for i := range n.Devices {
		d := *n.Devices[i].DeviceSpec
		d.ByCount, d.Shares, d.Parent, d.ProductResource, d.Fraction = false, "", "", "", 0
		if d != was {
			fmt.Fprintf(&b, "|%d:%v", i, d)
			was = d
		}
	}
	fmt.Fprintf(&b, "|%d", len(n.Devices))
	return b.String()
}

// maxTemplates limits the templates of one list of nodes, which is a node group or all nodes
// without devices. Further nodes with other properties are not tried.
const maxTemplates = 32

// templates returns the first node of each set of equal nodes (see propertiesKey), at most
// maxTemplates.
func templates(nodes []*cluster.Node) []*cluster.Node {
	seen := map[string]bool{}
	var out []*cluster.Node
	for _, n := range nodes {
		if len(out) == maxTemplates {
			break
		}
		if k := propertiesKey(n); !seen[k] {
			seen[k] = true
			out = append(out, n)
		}
	}
	return out
}

// inBestDomain returns the nodes of the topology domain with the most room, and the name of the
// domain for the text of a change. If the tasks need not be in one domain, it returns all
// nodes and "".
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
	smallEngine *engine.Engine  // for clusters of a few new nodes; nil until it is first used
	lastRefusal *engine.Refusal // of the last call of emptyNodeTakes that returned false; nil if there was none
}

// nodeTypes returns the types of node of which an empty node could take the refused task, the
// smallest first. Edit, which may be nil, changes the request of the task before a node is
// tested.
func (g *grower) nodeTypes(edit func(*cluster.Shape)) []nodeType {
	var out []nodeType
	sorts := g.nodesByGroup()
	if !g.workload.shape().Need.None() {
		sorts = sorts[1:]
	}
	for _, nodes := range sorts {
		nodes, domain := inBestDomain(g.workload.attempt, nodes)
		list := templates(nodes)
		good := 0
		var first *cluster.Node
		for _, n := range list {
			if g.emptyNodeTakes(n, edit) {
				if good++; first == nil {
					first = n
				}
			}
		}
		if first == nil {
			continue
		}
		m := nodeType{name: groupName(first), template: first, exact: good == len(list), domain: domain}
		// A node with lost devices is in another group, but a copy of it is not. The same
		// change would be listed twice.
		if !slices.ContainsFunc(out, func(o nodeType) bool { return o.change(1).text == m.change(1).text }) {
			out = append(out, m)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return roughSize(out[i].template) < roughSize(out[j].template) })
	return out
}

// nodesByGroup returns the nodes without devices, which may be none, and then the nodes of each
// node group.
func (g *grower) nodesByGroup() [][]*cluster.Node {
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
	if s.Apply(cluster.NodePut{Node: *NewNodeLike(n, n.Name)}) != nil || s.Node(n.Name).Group() == nil {
		return ""
	}
	return s.Node(n.Name).Group().Key.String()
}

// roughSize returns a number by which nodes are compared: the larger number is that of the node
// with more device memory in MiB or, if that is equal, with more cores. A node with 1024 cores
// or more may count as larger than a node with a few MiB more device memory.
func roughSize(n *cluster.Node) int64 {
	total := n.Capacity(cluster.CPU) / 1000
	for i := range n.Devices {
		total += int64(n.Devices[i].Memory>>20) << 10
	}
	return total
}

// emptyNodeTakes reports whether an empty copy of the node could take the refused task, after
// the edit of its request. For a job that takes whole nodes, it reports whether as many copies
// as one replica needs could take the replica. It runs a session on a new State that has only
// these copies and this task or replica. Other jobs, the affinities and the topology of the job,
// and limits and quotas of queues are left out, because tries on the whole State consider them.
// It also returns false if the engine fails, which sets lab.err.
func (g *grower) emptyNodeTakes(n *cluster.Node, edit func(*cluster.Shape)) bool {
	if g.lab.err != nil {
		return false
	}
	j, alt := g.workload.job(), g.workload.form()
	s := cluster.NewState()
	if g.lab.err = s.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: j.Queue}}); g.lab.err != nil {
		return false
	}
	count := 1
	probe := cluster.Job{ID: j.ID, Namespace: j.Namespace, Queue: j.Queue, Preemptible: j.Preemptible, Labels: j.Labels, JobDetails: &cluster.JobDetails{}}
	form := cluster.Alternative{Min: 1}
	if alt.Whole != nil {
		count = max(1, alt.Whole.NodesPerReplica)
		form.Whole = &cluster.WholeNodes{Replicas: 1, NodesPerReplica: count, Memory: alt.Whole.Memory}
		form.Min = count
	}
	shape := *g.workload.shape()
	if edit != nil {
		edit(&shape)
		g.workload.setKey(g.workload.attempt.Task.Role, &shape)
	}
	for i := range count {
		form.Tasks = append(form.Tasks, &cluster.Task{Name: fmt.Sprintf("probe-%d", i), Role: g.workload.attempt.Task.Role, Index: i, Shape: &shape})
	}
	probe.Alternatives = []cluster.Alternative{form}
	if s.Apply(cluster.JobPut{Job: probe}) != nil {
		return false
	}
	if _, err := AddNodesLike(s, n, count); err != nil {
		return false
	}
	if g.smallEngine == nil { // lab.engine caches what it knows of the real State, which must not be lost
		if g.smallEngine, g.lab.err = g.lab.engine.Another(); g.lab.err != nil {
			return false
		}
	}
	out, err := sim.Session(g.smallEngine, s, engine.Options{Now: g.lab.now})
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

func (m nodeType) change(n int) *change {
	what := m.name
	text := "with one more node"
	if n > 1 {
		text = fmt.Sprintf("with %d more nodes", n)
	}
	switch {
	case what == "":
		text += " like " + m.template.Name
	case m.exact:
		text += " of " + what
	default:
		text += " of " + what + " like " + m.template.Name
	}
	c := newChange(wire.AddNodes, text+m.domain, 40+20*n, func(s *cluster.State) error {
		_, err := AddNodesLike(s, m.template, n)
		return err
	})
	c.brief = english.Count(n, "more node") + " like " + m.template.Name
	c.arguments = []string{"--add-nodes", fmt.Sprintf("%s=%d", m.template.Name, n)}
	return c
}

// fewest finds the smallest number of added nodes of the type with which the workload fits,
// together with other changes. It takes a number that is enough, and bisects. If some number fits,
// it returns the change with the smallest number that was found to fit, and the verdict of the
// first number that was found to fit. Otherwise it returns what enough returns.
func (g *grower) fewest(m nodeType, with ...*change) (*change, verdict) {
	best, v, low, n := g.enough(m, with...)
	for v.fits && n-low > 1 && !g.lab.noTriesLeft() {
		mid := (low + n) / 2
		if c := m.change(mid); g.lab.try(append(slices.Clone(with), c)...).fits {
			n, best = mid, c
		} else {
			low = mid
		}
	}
	return best, v
}

// enough finds a number n of added nodes of the type with which the workload fits, together with
// other changes. It doubles the number until the workload fits, and returns the change, its verdict,
// and the number low that was not enough. Otherwise it returns the change with the largest number
// that was tried and is not above the number of missing tasks, and the verdict of that change.
func (g *grower) enough(m nodeType, with ...*change) (c *change, v verdict, low, n int) {
	missing, pending := g.workload.missing(), 0
	for _, j := range g.lab.state.Pending() {
		pending += j.Missing()
	}
	// Other pending workloads may take the nodes that are added.
	const mostNodes = 4096
	most := min(mostNodes, max(missing, pending))
	var failed *change
	var failure verdict
	for n = 1; ; {
		c = m.change(n)
		if v = g.lab.try(append(slices.Clone(with), c)...); v.fits {
			return c, v, low, n
		}
		if n <= missing {
			failed, failure = c, v
		}
		if n >= most || g.lab.noTriesLeft() {
			return failed, failure, low, n
		}
		low = n
		next := n * 2
		if n < missing {
			next = min(next, missing)
		}
		n = min(next, most)
	}
}

// grow tries to add nodes, for each type of node that could take the task.
func (g *grower) grow() {
	const mostTypes = 5
	if g.lab.noTriesLeft() {
		return
	}
	for i, m := range g.nodeTypes(nil) {
		if i == mostTypes || g.lab.noTriesLeft() {
			return
		}
		if c, v := g.fewest(m); v.fits {
			g.found.addHelp(c)
		} else {
			g.found.addFailure(c, v)
		}
	}
}
