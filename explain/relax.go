package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// relax tries the request without one of its conditions. A condition that turned
// no node down cannot help and is not tried.
func (l *lab) relax(found *finder) {
	for _, c := range slices.Concat(l.misspelt(), l.conditions()) {
		if l.spent() {
			return
		}
		switch v := l.try(c); {
		case v.fits:
			found.yes(c)
		case l.attempt.Before == nil && c.kind != OpenNodes:
			// Nobody asks about nodes where it is not for them to decide, nor about
			// closed ones that are no help.
			found.no(c, v)
		}
	}
}

func (l *lab) lift(cost int, text string, edit func(*cluster.Shape)) *change {
	return &change{LiftCondition, text, cost, l.reshapeAll(edit)}
}

// conditions are all that could be lifted, one by one.
func (l *lab) conditions() []*change {
	s := l.shape()
	var out []*change
	for _, label := range s.Selector {
		out = append(out, l.lift(10, fmt.Sprintf("without the node selector %s=%s", label.Key, label.Value), func(s *cluster.Shape) {
			s.Selector = slices.DeleteFunc(slices.Clone(s.Selector), func(x cluster.Label) bool { return x == label })
		}))
	}
	if len(s.Selector) > 1 {
		out = append(out, l.lift(12, "without any node selector", func(s *cluster.Shape) { s.Selector = nil }))
	}
	if len(s.Required) > 0 {
		out = append(out, l.lift(11, "without the required node affinity", func(s *cluster.Shape) { s.Required = nil }))
	}
	for _, t := range l.taints() {
		out = append(out, l.lift(10, "with the taint "+taintText(t)+" tolerated", func(s *cluster.Shape) {
			s.Tolerations = append(slices.Clone(s.Tolerations), cluster.Toleration{Key: t.Key, Operator: "Exists", Effect: t.Effect})
		}))
	}
	if c := l.open(); c != nil {
		out = append(out, c)
	}
	out = append(out, l.weaker()...)
	for _, cell := range l.cells() {
		text := "in cell " + cell
		if cell == "" {
			text = "in any cell"
		}
		out = append(out, l.lift(10, text+" instead of "+s.Cell, func(s *cluster.Shape) { s.Cell = cell }))
	}
	if len(s.Need.Products) > 0 && !s.Served() {
		out = append(out, l.lift(10, "on any product instead of "+List(s.Need.Products, 3), func(s *cluster.Shape) { s.Need.Products = nil }))
	}
	if s.Need.SameProduct && !s.Served() {
		out = append(out, l.lift(10, "on devices of mixed products", func(s *cluster.Shape) { s.Need.SameProduct = false }))
	}
	if s.Need.Partition != "" {
		out = append(out, l.lift(30, "on a whole device instead of a slice of profile "+s.Need.Partition, func(s *cluster.Shape) { s.Need.Partition, s.Need.Resource = "", "" }))
	}
	out = append(out, l.nearness()...)
	out = append(out, l.preemptible()...)
	return append(out, l.ties()...)
}

// ties are the required affinities to other jobs.
func (l *lab) ties() []*change {
	var out []*change
	for i, term := range l.job().Affinity {
		if term.Weight != 0 {
			continue
		}
		text := "without the required affinity to jobs with "
		if term.Anti {
			text = "without the required distance to jobs with "
		}
		out = append(out, &change{LiftCondition, text + termText(term.Selector), 11, func(s *cluster.State) error {
			return rewrite(s, l.id, func(j *cluster.Job) { j.Affinity = slices.Delete(slices.Clone(j.Affinity), i, i+1) })
		}})
	}
	return out
}

// taints are those that nodes have and the request does not tolerate. Those of a
// node that is closed or not well are there to be respected; see open.
func (l *lab) taints() []cluster.Taint {
	const most = 4
	var out []cluster.Taint
	meet := func(t cluster.Taint) {
		if t.Effect == cluster.PreferNoSchedule || sick(t) || len(out) == most || slices.ContainsFunc(out, func(x cluster.Taint) bool { return x.Key == t.Key && x.Effect == t.Effect }) {
			return
		}
		for i := range l.shape().Tolerations {
			if l.shape().Tolerations[i].Tolerates(t) {
				return
			}
		}
		out = append(out, t)
	}
	for _, n := range l.end.Nodes() {
		for _, t := range n.Taints {
			meet(t)
		}
	}
	return out
}

func taintText(t cluster.Taint) string {
	s := t.Key
	if t.Value != "" {
		s += "=" + t.Value
	}
	return s + ":" + string(t.Effect)
}

func termText(t cluster.Term) string {
	var out []string
	for _, r := range t {
		s := r.Key + " " + string(r.Operator)
		if len(r.Values) > 0 {
			s += " " + strings.Join(r.Values, ",")
		}
		if r.Operator == cluster.In && len(r.Values) == 1 {
			s = r.Key + "=" + r.Values[0]
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}

// weaker are the isolation classes below the ones asked for, strongest first.
func (l *lab) weaker() []*change {
	var out []*change
	iso := l.shape().Isolation
	for i := slices.Index(cluster.GPUClasses, iso.GPU) - 1; i >= 0; i-- {
		class := cluster.GPUClasses[i]
		out = append(out, l.lift(14, fmt.Sprintf("with GPU isolation %s instead of %s", class, iso.GPU), func(s *cluster.Shape) { s.Isolation.GPU = class }))
	}
	if iso.GPU == cluster.GPUShared {
		// A node whose devices are never shared still takes whole ones.
		out = append(out, l.lift(14, "without asking for a shared device", func(s *cluster.Shape) { s.Isolation.GPU = "" }))
	}
	for i := slices.Index(cluster.CPUClasses, iso.CPU) - 1; i >= 0; i-- {
		class := cluster.CPUClasses[i]
		out = append(out, l.lift(14, fmt.Sprintf("with CPU isolation %s instead of %s", class, iso.CPU), func(s *cluster.Shape) { s.Isolation.CPU = class }))
	}
	return out
}

// cells are the others there are, and none in particular.
func (l *lab) cells() []string {
	own := l.shape().Cell
	if own == "" {
		return nil
	}
	var out []string
	for _, n := range l.end.Nodes() {
		if n.Cell != "" && n.Cell != own && !slices.Contains(out, n.Cell) {
			out = append(out, n.Cell)
		}
	}
	slices.Sort(out)
	return append(out[:min(len(out), 3)], "")
}
