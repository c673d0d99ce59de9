package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// relax tries each condition alone, corrected selectors first.
func (r *relaxer) relax() {
	for _, c := range slices.Concat(r.correctSelectors(), r.conditions()) {
		if r.lab.noTriesLeft() {
			return
		}
		// A change that does not help is reported only if nodes were filtered at all. The
		// change that opens nodes is reported only if it helps.
		if v := r.found.try(c); !v.fits && r.workload.attempt.Before == nil && c.kind != wire.OpenNodes {
			r.found.addFailure(c, v)
		}
	}
	// Without a quota, the job need not be preemptible, but other rules may depend on it. This
	// is reported only if it helps.
	if !r.hasQuota() && !r.workload.job().Preemptible && !r.lab.noTriesLeft() {
		r.found.try(r.makePreemptible())
	}
}

// hasQuota reports whether the job must not exceed a quota because it is not preemptible.
func (r *relaxer) hasQuota() bool {
	return slices.ContainsFunc(r.workload.bounds(), func(b bound) bool { return b.quota })
}

func (r *relaxer) liftChange(cost int, text string, edit func(*cluster.Shape)) *change {
	return newChange(wire.LiftCondition, text, cost, r.workload.editAllShapes(edit))
}

// conditions returns changes that each drop one condition of the request, and the change that
// opens nodes. A condition of several roles is dropped for all of them.
func (r *relaxer) conditions() []*change {
	var out []*change
	add := func(list ...*change) {
		for _, c := range list {
			if c != nil && !slices.ContainsFunc(out, func(o *change) bool { return o.text == c.text }) {
				out = append(out, c)
			}
		}
	}
	for _, role := range r.workload.roles() {
		add(r.selectors(role.shape)...)
	}
	for _, t := range r.untoleratedTaints() {
		add(r.liftChange(10, "with the taint "+explain.TaintText(t)+" tolerated", func(s *cluster.Shape) {
			s.Tolerations = append(slices.Clone(s.Tolerations), cluster.Toleration{Key: t.Key, Operator: "Exists", Effect: t.Effect})
		}))
	}
	add(r.openNodes())
	for _, role := range r.workload.roles() {
		add(r.weakerIsolation(role.shape.Isolation)...)
	}
	own := r.workload.shape().Cell
	for _, cell := range r.otherCells() {
		text := "in cell " + cell
		if cell == "" {
			text = "in any cell"
		}
		add(r.liftChange(10, text+" instead of "+own, func(s *cluster.Shape) { s.Cell = cell }))
	}
	for _, role := range r.workload.roles() {
		add(r.devices(&role.shape.Need, role.shape.ServesModel())...)
	}
	add(r.topologies()...)
	if r.hasQuota() {
		add(r.makePreemptible())
	}
	add(r.affinities()...)
	if r.workload.job().PreemptionDelay == cluster.Forever {
		add(newChange(wire.LiftCondition, "with preemption allowed", 13, r.workload.editJob(func(j *cluster.Job) { j.OwnDetails().PreemptionDelay = 0 })))
	}
	return out
}

// mostLabels is how many labels of a node selector are dropped or corrected one by one. The
// others are dropped together with all labels only.
const mostLabels = 16

// selectors returns changes that drop conditions of the shape on the labels of nodes.
func (r *relaxer) selectors(s *cluster.Shape) []*change {
	var out []*change
	for _, label := range s.Selector[:min(len(s.Selector), mostLabels)] {
		out = append(out, r.liftChange(10, fmt.Sprintf("without the node selector %s=%s", label.Key, label.Value), func(s *cluster.Shape) {
			s.Selector = slices.DeleteFunc(slices.Clone(s.Selector), func(x cluster.Label) bool { return x == label })
		}))
	}
	if len(s.Selector) > 1 {
		out = append(out, r.liftChange(12, "without any node selector", func(s *cluster.Shape) { s.Selector = nil }))
	}
	if len(s.Required) > 0 {
		out = append(out, r.liftChange(11, "without the required node affinity", func(s *cluster.Shape) { s.Required = nil }))
	}
	return out
}

// devices returns changes that drop conditions on devices. The devices of a model follow from its
// settings.
func (r *relaxer) devices(own *cluster.Need, isModel bool) []*change {
	var out []*change
	if len(own.Products) > 0 && !isModel {
		out = append(out, r.liftChange(10, "on any product instead of "+explain.List(own.Products, 3), func(s *cluster.Shape) {
			if slices.Equal(s.Need.Products, own.Products) {
				s.Need.Products = nil
			}
		}))
	}
	if own.SameProduct && !isModel {
		out = append(out, r.liftChange(10, "on devices of mixed products", func(s *cluster.Shape) { s.Need.SameProduct = false }))
	}
	if own.SameLink && !isModel {
		out = append(out, r.liftChange(10, "on devices of several NVLink domains", func(s *cluster.Shape) { s.Need.SameLink = false }))
	}
	if own.Partition != "" {
		out = append(out, r.liftChange(30, "on a whole device instead of a slice of profile "+own.Partition, func(s *cluster.Shape) {
			if s.Need.Partition != own.Partition {
				return
			}
			if s.Need.Partition = ""; s.Need.Resource != "" { // a pod names the resource of its devices
				s.Need.Resource = cluster.DefaultDeviceResource
			}
		}))
	}
	return append(out, r.otherSlices(own)...)
}

// otherSlices returns changes that request a MIG slice of another profile: those with less
// memory, the largest first, and then those with more, the smallest first. If no node has a slice
// of the requested profile, its memory is not known, and all profiles count as smaller.
func (r *relaxer) otherSlices(own *cluster.Need) []*change {
	const mostSmaller, mostLarger = 4, 2
	if own.Partition == "" {
		return nil
	}
	var size cluster.Bytes
	others := map[cluster.DeviceSpec]bool{} // only Profile, Resource and Memory are set
	for _, n := range r.workload.state.Nodes() {
		for i := range n.Devices {
			switch d := &n.Devices[i]; d.Profile {
			case "":
			case own.Partition:
				size = max(size, d.Memory)
			default:
				others[cluster.DeviceSpec{Profile: d.Profile, Resource: d.Resource, Memory: d.Memory}] = true
			}
		}
	}
	list := slices.SortedFunc(maps.Keys(others), func(a, b cluster.DeviceSpec) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), strings.Compare(a.Profile, b.Profile), strings.Compare(a.Resource, b.Resource))
	})
	var smaller, larger []*change
	for _, d := range list {
		cost := 20 + costOfGivingUp(int64(size), int64(d.Memory))/2
		if size == 0 {
			cost = 40
		}
		isLarger := size > 0 && d.Memory >= size
		if isLarger {
			cost = 29 // less than a whole device, see devices
		}
		text := fmt.Sprintf("on a slice of profile %s instead of %s", d.Profile, own.Partition)
		c := r.liftChange(cost, text, func(s *cluster.Shape) {
			if s.Need.Partition != own.Partition {
				return
			}
			if s.Need.Partition = d.Profile; s.Need.Resource != "" {
				s.Need.Resource = d.Resource
			}
		})
		if isLarger {
			larger = append(larger, c)
		} else {
			smaller = append(smaller, c)
		}
	}
	slices.Reverse(larger)
	return append(smaller[:min(len(smaller), mostSmaller)], larger[:min(len(larger), mostLarger)]...)
}

// affinities returns changes that each drop one required affinity to other jobs. That the
// tasks of a replica are on different nodes is no condition of its manifest.
func (r *relaxer) affinities() []*change {
	var out []*change
	for i, term := range r.workload.job().Affinity {
		if term.Weight != 0 || term.KeepsReplicaApart() {
			continue
		}
		text := "without the required affinity to jobs with "
		if term.Anti {
			text = "without the required distance to jobs with "
		}
		out = append(out, newChange(wire.LiftCondition, text+explain.TermText(term.Selector), 11, r.workload.editJob(func(j *cluster.Job) {
			j.OwnDetails().Affinity = slices.Delete(slices.Clone(j.Affinity), i, i+1)
		})))
	}
	return out
}

// untoleratedTaints returns up to four taints of nodes that the request does not tolerate.
// Taints with the effect PreferNoSchedule are left out, because they reject no task. Taints of
// node conditions are left out too, because openNodes removes these.
func (r *relaxer) untoleratedTaints() []cluster.Taint {
	const most = 4
	var out []cluster.Taint
	for _, n := range r.workload.state.Nodes() {
		for _, t := range n.Taints {
			known := slices.ContainsFunc(out, func(x cluster.Taint) bool { return x.Key == t.Key && x.Effect == t.Effect })
			tolerated := slices.ContainsFunc(r.workload.shape().Tolerations, func(x cluster.Toleration) bool { return x.Tolerates(t) }) // all roles have the same
			if t.Effect != cluster.PreferNoSchedule && !isNodeCondition(t) && len(out) < most && !known && !tolerated {
				out = append(out, t)
			}
		}
	}
	return out
}

// topologies returns changes that each drop one condition that tasks must be in one topology
// domain: that of the job, or that of a subgroup.
func (r *relaxer) topologies() []*change {
	form := r.workload.form()
	var out []*change
	if level := form.Topology.Required; level != "" {
		out = append(out, newChange(wire.LiftCondition, "without having to be in one "+explain.LevelName(level), 12, r.workload.editForm(func(form *cluster.Alternative) {
			form.Topology.Required = ""
		})))
	}
	for i := range form.Subgroups {
		if level := form.Subgroups[i].Topology.Required; level != "" {
			text := fmt.Sprintf("without %s having to be in one %s", form.Subgroups[i].Name, explain.LevelName(level))
			out = append(out, newChange(wire.LiftCondition, text, 12, r.workload.editForm(func(form *cluster.Alternative) {
				form.Subgroups = slices.Clone(form.Subgroups)
				form.Subgroups[i].Topology.Required = ""
			})))
		}
	}
	return out
}

// makePreemptible returns the change that makes the job preemptible. It may then exceed
// quotas, and may be evicted.
func (r *relaxer) makePreemptible() *change {
	return newChange(wire.LiftCondition, "as a preemptible job", 13, func(s *cluster.State) error {
		if err := r.workload.editAllShapes(func(s *cluster.Shape) { s.Preemptible = true })(s); err != nil {
			return err
		}
		return r.workload.editJob(func(j *cluster.Job) { j.Preemptible = true })(s)
	})
}

// weakerIsolation returns changes that request a weaker isolation class, the strongest first.
func (r *relaxer) weakerIsolation(iso cluster.Isolation) []*change {
	var out []*change
	for i := slices.Index(cluster.GPUClasses, iso.GPU) - 1; i >= 0; i-- {
		class := cluster.GPUClasses[i]
		out = append(out, r.liftChange(14, fmt.Sprintf("with GPU isolation %s instead of %s", class, iso.GPU), func(s *cluster.Shape) {
			if s.Isolation.GPU == iso.GPU {
				s.Isolation.GPU = class
			}
		}))
	}
	if iso.GPU != "" {
		// A node that does not support shared devices may still offer whole ones.
		text := "without GPU isolation"
		if iso.GPU == cluster.GPUShared {
			text = "without asking for a shared device"
		}
		out = append(out, r.liftChange(14, text, func(s *cluster.Shape) {
			if s.Isolation.GPU == iso.GPU {
				s.Isolation.GPU, s.Isolation.Session = "", ""
			}
		}))
	}
	for i := slices.Index(cluster.CPUClasses, iso.CPU) - 1; i >= 0; i-- {
		class := cluster.CPUClasses[i]
		out = append(out, r.liftChange(14, fmt.Sprintf("with CPU isolation %s instead of %s", class, iso.CPU), func(s *cluster.Shape) {
			if s.Isolation.CPU == iso.CPU {
				s.Isolation.CPU = class
			}
		}))
	}
	return out
}

// otherCells returns the names of up to three cells other than the requested one, followed by
// "", which means any cell. It returns nothing if no cell is requested.
func (r *relaxer) otherCells() []string {
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
