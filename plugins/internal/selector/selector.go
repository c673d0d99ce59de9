// Package selector compares the labels that a shape demands with those of a
// node: text with text, all of them equal.
//
// It refuses to know what any label means and who asks.
package selector

import "github.com/berth-project/berth/cluster"

// Unmet is the first label that the shape demands and the node lacks or has
// another value for; nil: it has them all.
func Unmet(s *cluster.Shape, n *cluster.Node) *cluster.Label {
	for i := range s.Selector {
		l := &s.Selector[i]
		// An empty value is a value: the label itself must be there.
		if v, ok := n.Labels[l.Key]; !ok || v != l.Value {
			return l
		}
	}
	return nil
}
