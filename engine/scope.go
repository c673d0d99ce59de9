package engine

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// scope is the nodes to which tasks are kept: a node group, a domain, or both. A nil scope is
// the whole cluster.
type scope struct {
	group  *cluster.Group
	labels []cluster.Label // labels that its nodes have: the last is the domain, those before it are domains that contain it
	nodes  []*cluster.Node // its nodes, by name; nil if the scope is a whole node group
}

// everywhere is the list of scopes of tasks that may be placed on any node.
var everywhere = []*scope{nil}

// has reports whether the node is in the scope. It reads the node's labels and not the list
// of nodes, so that tests can check the list against it.
func (in *scope) has(n *cluster.Node) bool {
	if in == nil {
		return true
	}
	if in.group != nil && n.Group() != in.group {
		return false
	}
	for _, l := range in.labels {
		if v, ok := n.Labels[l.Key]; !ok || v != l.Value {
			return false
		}
	}
	return true
}

// value returns the name of the domain: the value of its label.
func (in *scope) value() string { return in.labels[len(in.labels)-1].Value }

// members returns the nodes of the scope, by name.
func (f *finder) members(in *scope) []*cluster.Node {
	switch {
	case in == nil:
		return f.view.Nodes()
	case in.nodes == nil:
		return in.group.Nodes
	}
	return in.nodes
}

// split returns the domains of a topology level inside the scope, sorted by value. Nodes
// without the label are in no domain. The domains of the whole cluster are computed once per
// session.
func (f *finder) split(in *scope, level string) []*scope {
	if in != nil {
		return f.domains(in, level)
	}
	all, known := f.levels[level]
	if !known {
		all = f.domains(nil, level)
		if f.levels == nil {
			f.levels = map[string][]*scope{}
		}
		f.levels[level] = all
	}
	return all
}

func (f *finder) domains(in *scope, level string) []*scope {
	byValue := map[string]*scope{}
	var out []*scope
	for _, n := range f.members(in) {
		v, ok := n.Labels[level]
		if !ok {
			continue
		}
		d := byValue[v]
		if d == nil {
			d = &scope{labels: []cluster.Label{{Key: level, Value: v}}}
			if in != nil {
				d.group, d.labels = in.group, append(slices.Clone(in.labels), d.labels...)
			}
			byValue[v] = d
			out = append(out, d)
		}
		d.nodes = append(d.nodes, n)
	}
	slices.SortFunc(out, func(a, b *scope) int { return strings.Compare(a.value(), b.value()) })
	return out
}
