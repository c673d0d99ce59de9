package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/wire"
)

// isNodeCondition reports whether the taint begins with node.kubernetes.io/ and keeps tasks
// from the node. Kubernetes uses that prefix for nodes that are cordoned, not ready, or short
// of a resource.
func isNodeCondition(t cluster.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect != cluster.PreferNoSchedule
}

// openNodes returns a change that makes nodes ready and uncordoned, and removes their taints of
// node conditions. It first tries each of the first four closed nodes alone. If one of these is
// enough, the change opens only that node. Otherwise the change opens all closed nodes, and is
// not tried here. It returns nil if no node is closed.
func (r *relaxer) openNodes() *change {
	const mostSingles = 4
	var closed []string
	for _, n := range r.workload.state.Nodes() {
		if n.Closed() || slices.ContainsFunc(n.Taints, isNodeCondition) {
			closed = append(closed, n.Name)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	for _, name := range closed[:min(len(closed), mostSingles)] {
		if c := openChange([]string{name}); r.lab.try(c).fits {
			return c
		}
	}
	return openChange(closed)
}

func openChange(names []string) *change {
	c := newChange(wire.OpenNodes, "with "+explain.List(names, 3)+" ready and uncordoned", 15, func(s *cluster.State) error {
		for _, name := range names {
			n := *s.Node(name)
			n.Unschedulable, n.Taints = false, slices.DeleteFunc(slices.Clone(n.Taints), isNodeCondition)
			ready := cluster.PhaseReady
			if err := s.Apply(cluster.NodePut{Node: n}); err != nil {
				return err
			}
			if err := s.Apply(cluster.NodeSeen{Name: name, Phase: &ready}); err != nil {
				return err
			}
		}
		return nil
	})
	c.opened = names
	return c
}

// correctSelectors returns changes for values in the node selector that no node has and that
// may be typing errors. Each change replaces one value by the most similar value that some
// node has.
func (r *relaxer) correctSelectors() []*change {
	var out []*change
	var labels []cluster.Label
	for _, role := range r.workload.roles() {
		for _, l := range role.shape.Selector {
			if len(labels) < mostLabels && !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	for _, label := range labels {
		var there []string
		seen := map[string]bool{}
		for _, n := range r.workload.state.Nodes() {
			if v, ok := n.Labels[label.Key]; ok && !seen[v] {
				seen[v] = true
				there = append(there, v)
			}
		}
		near, ok := nearest.Find(label.Value, there)
		if seen[label.Value] || !ok {
			continue
		}
		text := fmt.Sprintf("with the node selector %s=%s instead of %s", label.Key, near, label.Value)
		out = append(out, r.liftChange(5, text, func(s *cluster.Shape) {
			s.Selector = slices.Clone(s.Selector)
			for i := range s.Selector {
				if s.Selector[i] == label {
					s.Selector[i].Value = near
				}
			}
		}))
	}
	return out
}
