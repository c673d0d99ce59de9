package engine_test

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// oracle tries all arrangements of a job. It keeps its own account of what nodes have free.
type oracle struct {
	job   *cluster.Job
	nodes []oracleNode
	at    []int // by task: the index of its node; -1: it is left out
}

type oracleNode struct {
	node  *cluster.Node
	cpu   int64
	milli []cluster.Milli
	alone []bool // by device: it is held exclusively
	held  []int  // by device: how many tasks hold it
}

func newOracle(s *cluster.State, j *cluster.Job) *oracle {
	o := &oracle{job: j, at: make([]int, len(j.Alternatives[0].Tasks))}
	for _, n := range s.Nodes() {
		on := oracleNode{node: n, cpu: n.Ledger(cluster.CPU).Free()}
		for i := range n.Devices {
			on.milli = append(on.milli, n.Devices[i].FreeMilli())
			on.alone = append(on.alone, n.Devices[i].Use.Exclusive > 0)
			on.held = append(on.held, int(n.Devices[i].Use.Leases))
		}
		o.nodes = append(o.nodes, on)
	}
	return o
}

// place reports whether the tasks from i on can be placed or left out so that the job meets all
// its constraints.
func (o *oracle) place(i int) bool {
	tasks := o.job.Alternatives[0].Tasks
	if i == len(tasks) {
		return o.valid()
	}
	placed := 0
	for _, at := range o.at[:i] {
		if at >= 0 {
			placed++
		}
	}
	if placed+len(tasks)-i < o.job.Alternatives[0].Min {
		return false
	}
	if tasks[i].Node != nil { // it runs, and its room is accounted for
		o.at[i] = slices.IndexFunc(o.nodes, func(n oracleNode) bool { return n.node == tasks[i].Node })
		return o.place(i + 1)
	}
	shape := tasks[i].Shape
	for k := range o.nodes {
		n := &o.nodes[k]
		for d := range n.milli {
			others := []int{-1}
			if shape.Need.Devices == 2 {
				others = others[:0]
				for e := d + 1; e < len(n.milli); e++ {
					others = append(others, e)
				}
			}
			for _, e := range others {
				if n.book(shape, d, e) {
					o.at[i] = k
					if o.place(i + 1) {
						return true
					}
					n.unbook(shape, d, e)
				}
			}
		}
	}
	o.at[i] = -1
	return o.place(i + 1)
}

func placementPart(s *cluster.Shape) cluster.Milli {
	if s.Need.Share > 0 && !s.Isolation.Exclusive() {
		return s.Need.Share
	}
	return cluster.Whole
}

func (n *oracleNode) book(s *cluster.Shape, devices ...int) bool {
	if n.cpu < s.Resources.Of(cluster.CPU) {
		return false
	}
	for _, d := range devices {
		if d >= 0 && (n.milli[d] < placementPart(s) || n.alone[d] || s.Isolation.Exclusive() && n.held[d] > 0) {
			return false
		}
	}
	n.change(s, -1, devices)
	return true
}

func (n *oracleNode) unbook(s *cluster.Shape, devices ...int) { n.change(s, +1, devices) }

func (n *oracleNode) change(s *cluster.Shape, by int64, devices []int) {
	n.cpu += by * s.Resources.Of(cluster.CPU)
	for _, d := range devices {
		if d >= 0 {
			n.milli[d] += cluster.Milli(by) * placementPart(s)
			n.held[d] -= int(by)
			n.alone[d] = s.Isolation.Exclusive() && by < 0
		}
	}
}

// valid reports whether the placed tasks make up all minima and are in the required domains.
func (o *oracle) valid() bool {
	alt := &o.job.Alternatives[0]
	total, members := 0, make([]int, len(alt.Subgroups)+1)
	for i, t := range alt.Tasks {
		if o.at[i] >= 0 {
			total++
			members[t.Subgroup]++
		}
	}
	if total < alt.Min {
		return false
	}
	for i, g := range alt.Subgroups {
		if members[i+1] < g.Min || !o.inOne(g.Topology.Required, i+1) {
			return false
		}
	}
	if !o.inOne(alt.Topology.Required, 0) {
		return false
	}
	for _, term := range o.job.Affinity {
		for i := range o.at {
			for k := range i {
				if o.at[i] < 0 || o.at[k] < 0 {
					continue
				}
				a, _ := o.nodes[o.at[i]].node.Domain(term.Within)
				b, _ := o.nodes[o.at[k]].node.Domain(term.Within)
				if (a == b) == term.Anti {
					return false
				}
			}
		}
	}
	return true
}

// inOne reports whether the tasks of the subgroup, or all tasks if sub is 0, are in one domain of
// the level. Tasks that run in the wrong domain are accepted as long as no task is added to them.
func (o *oracle) inOne(level string, sub int) bool {
	values := map[string]bool{}
	fresh, homeless := false, false
	for i, t := range o.job.Alternatives[0].Tasks {
		if level == "" || o.at[i] < 0 || sub > 0 && t.Subgroup != sub {
			continue
		}
		v, ok := o.nodes[o.at[i]].node.Labels[level]
		fresh, homeless = fresh || t.Node == nil, homeless || !ok
		values[v] = true
	}
	return !fresh || len(values) < 2 && !homeless
}
