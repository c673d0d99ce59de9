package engine

import "github.com/berth-project/berth/cluster"

// groupChoice is a group that fits now, and the form that is for it.
type groupChoice struct {
	group *cluster.Group
	form  *cluster.Alternative
	score Score
	miss  int // its place among the groups that were judged
}

func (p *placer) scoreGroup(job *cluster.Job, want *cluster.WholeNodes, g *cluster.Group, nodes []*cluster.Node) Score {
	out := Score{Parts: make([]Part, 0, len(p.finder.hooks.groupOrders))}
	for _, h := range p.finder.hooks.groupOrders {
		out.add(p.finder, h.plugin, h.weight, h.fn(job, want, g, nodes))
	}
	return out
}

// takers are the group's nodes that take the task now.
func (p *placer) takers(t *cluster.Task, g *cluster.Group) []*cluster.Node {
	ask := p.finder.verdicts(t)
	filters, _, _ := p.finder.taskHooks(t)
	var out []*cluster.Node
	for _, n := range g.Nodes {
		if rejected, _ := ask(n); !rejected && p.finder.rejectTask(filters, t, n) == nil {
			out = append(out, n)
		}
	}
	return out
}

// choose tells the decisions since the checkpoint how their group was chosen: it
// is the first of the choices.
func (st *Statement) choose(checkpoint int, choices []groupChoice) {
	var groups []GroupCandidate
	if st.clerk.explain {
		for _, c := range choices {
			groups = append(groups, GroupCandidate{c.group.Key, c.form.Name, c.score})
		}
	}
	for i := checkpoint; i < len(st.log); i++ {
		if op := &st.log[i]; op.kind == placed {
			d := &st.decisions[op.decision-1]
			d.GroupScore, d.Groups = choices[0].score, groups
		}
	}
}
