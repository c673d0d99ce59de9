package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/wire"
)

// relaxer tries the request without one of its conditions.
type relaxer struct {
	lab      *lab
	workload *workload
	found    *finder
}

func (r *relaxer) relax() {
	for _, c := range slices.Concat(r.misspelt(), r.conditions()) {
		if r.lab.spent() {
			return
		}
		// Nodes are of no interest where the attempt ended before any was looked at,
		// nor are closed ones that do not help.
		if v := r.found.try(c); !v.fits && r.workload.attempt.Before == nil && c.kind != wire.OpenNodes {
			r.found.no(c, v)
		}
	}
}

func (r *relaxer) lift(cost int, text string, edit func(*cluster.Shape)) *change {
	return &change{wire.LiftCondition, text, cost, r.workload.reshapeAll(edit)}
}

// conditions are all that could be lifted, one by one.
func (r *relaxer) conditions() []*change {
	s := r.workload.shape()
	var out []*change
	for _, label := range s.Selector {
		out = append(out, r.lift(10, fmt.Sprintf("without the node selector %s=%s", label.Key, label.Value), func(s *cluster.Shape) {
			s.Selector = slices.DeleteFunc(slices.Clone(s.Selector), func(x cluster.Label) bool { return x == label })
		}))
	}
	if len(s.Selector) > 1 {
		out = append(out, r.lift(12, "without any node selector", func(s *cluster.Shape) { s.Selector = nil }))
	}
	if len(s.Required) > 0 {
		out = append(out, r.lift(11, "without the required node affinity", func(s *cluster.Shape) { s.Required = nil }))
	}
	for _, t := range r.taints() {
		out = append(out, r.lift(10, "with the taint "+taintText(t)+" tolerated", func(s *cluster.Shape) {
			s.Tolerations = append(slices.Clone(s.Tolerations), cluster.Toleration{Key: t.Key, Operator: "Exists", Effect: t.Effect})
		}))
	}
	if c := r.open(); c != nil {
		out = append(out, c)
	}
	out = append(out, r.weaker()...)
	for _, cell := range r.cells() {
		text := "in cell " + cell
		if cell == "" {
			text = "in any cell"
		}
		out = append(out, r.lift(10, text+" instead of "+s.Cell, func(s *cluster.Shape) { s.Cell = cell }))
	}
	if len(s.Need.Products) > 0 && !s.Served() {
		out = append(out, r.lift(10, "on any product instead of "+explain.List(s.Need.Products, 3), func(s *cluster.Shape) { s.Need.Products = nil }))
	}
	if s.Need.SameProduct && !s.Served() {
		out = append(out, r.lift(10, "on devices of mixed products", func(s *cluster.Shape) { s.Need.SameProduct = false }))
	}
	if s.Need.Partition != "" {
		out = append(out, r.lift(30, "on a whole device instead of a slice of profile "+s.Need.Partition, func(s *cluster.Shape) { s.Need.Partition, s.Need.Resource = "", "" }))
	}
	return slices.Concat(out, r.nearness(), r.preemptible(), r.ties())
}

// ties are the required affinities to other jobs.
func (r *relaxer) ties() []*change {
	var out []*change
	for i, term := range r.workload.job().Affinity {
		if term.Weight != 0 {
			continue
		}
		text := "without the required affinity to jobs with "
		if term.Anti {
			text = "without the required distance to jobs with "
		}
		out = append(out, &change{wire.LiftCondition, text + explain.TermText(term.Selector), 11, r.workload.rewrite(func(j *cluster.Job) {
			j.Affinity = slices.Delete(slices.Clone(j.Affinity), i, i+1)
		})})
	}
	return out
}

// taints are those that nodes have and the request does not tolerate. Those of a
// node that is cordoned or not ready are left alone; see open.
func (r *relaxer) taints() []cluster.Taint {
	const most = 4
	var out []cluster.Taint
	for _, n := range r.workload.state.Nodes() {
		for _, t := range n.Taints {
			known := slices.ContainsFunc(out, func(x cluster.Taint) bool { return x.Key == t.Key && x.Effect == t.Effect })
			tolerated := slices.ContainsFunc(r.workload.shape().Tolerations, func(x cluster.Toleration) bool { return x.Tolerates(t) })
			if t.Effect != cluster.PreferNoSchedule && !sick(t) && len(out) < most && !known && !tolerated {
				out = append(out, t)
			}
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

// nearness lifts what keeps the tasks in one domain.
func (r *relaxer) nearness() []*change {
	form := r.workload.form()
	var out []*change
	if level := form.Topology.Required; level != "" {
		out = append(out, &change{wire.LiftCondition, "without having to be in one " + explain.LevelName(level), 12, r.workload.reform(func(form *cluster.Alternative) {
			form.Topology.Required = ""
		})})
	}
	for i := range form.Subgroups {
		if level := form.Subgroups[i].Topology.Required; level != "" {
			text := fmt.Sprintf("without %s having to be in one %s", form.Subgroups[i].Name, explain.LevelName(level))
			out = append(out, &change{wire.LiftCondition, text, 12, r.workload.reform(func(form *cluster.Alternative) {
				form.Subgroups = slices.Clone(form.Subgroups)
				form.Subgroups[i].Topology.Required = ""
			})})
		}
	}
	return out
}

// preemptible lets the job use more than quotas, and in return it may be evicted.
func (r *relaxer) preemptible() []*change {
	if !slices.ContainsFunc(r.workload.bounds(), func(b bound) bool { return b.quota }) {
		return nil
	}
	return []*change{{wire.LiftCondition, "as a preemptible job", 13, func(s *cluster.State) error {
		if err := r.workload.reshapeAll(func(s *cluster.Shape) { s.Preemptible = true })(s); err != nil {
			return err
		}
		return r.workload.rewrite(func(j *cluster.Job) { j.Preemptible = true })(s)
	}}}
}

// weaker are the isolation classes below the ones asked for, strongest first.
func (r *relaxer) weaker() []*change {
	var out []*change
	iso := r.workload.shape().Isolation
	for i := slices.Index(cluster.GPUClasses, iso.GPU) - 1; i >= 0; i-- {
		class := cluster.GPUClasses[i]
		out = append(out, r.lift(14, fmt.Sprintf("with GPU isolation %s instead of %s", class, iso.GPU), func(s *cluster.Shape) { s.Isolation.GPU = class }))
	}
	if iso.GPU == cluster.GPUShared {
		// A node whose devices are never shared still takes whole ones.
		out = append(out, r.lift(14, "without asking for a shared device", func(s *cluster.Shape) { s.Isolation.GPU = "" }))
	}
	for i := slices.Index(cluster.CPUClasses, iso.CPU) - 1; i >= 0; i-- {
		class := cluster.CPUClasses[i]
		out = append(out, r.lift(14, fmt.Sprintf("with CPU isolation %s instead of %s", class, iso.CPU), func(s *cluster.Shape) { s.Isolation.CPU = class }))
	}
	return out
}

// cells are the others there are, and none in particular.
func (r *relaxer) cells() []string {
	own := r.workload.shape().Cell
	if own == "" {
		return nil
	}
	var out []string
	for _, n := range r.workload.state.Nodes() {
		if n.Cell != "" && n.Cell != own && !slices.Contains(out, n.Cell) {
			out = append(out, n.Cell)
		}
	}
	slices.Sort(out)
	return append(out[:min(len(out), 3)], "")
}
