package engine

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// scope is the part of the cluster that tasks are kept to: a group, a domain, or
// both. Nil is all of it.
type scope struct {
	group  *cluster.Group
	labels []cluster.Label // that its nodes have: the domain, after those it lies in
	nodes  []*cluster.Node // exactly these, by name; nil where a group alone says it
}

// everywhere is where tasks may go that nothing ties down.
var everywhere = []*scope{nil}

// has goes by what the node is, not by the list of nodes: it is what the list is
// checked against.
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

// value is the domain's name.
func (in *scope) value() string { return in.labels[len(in.labels)-1].Value }

// members are the scope's nodes, by name.
func (f *finder) members(in *scope) []*cluster.Node {
	switch {
	case in == nil:
		return f.view.Nodes()
	case in.nodes == nil:
		return in.group.Nodes
	}
	return in.nodes
}

// split divides the scope into the domains of a level, by value. Nodes without
// the label are in none. What the whole cluster divides into is worked out once
// a session.
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
