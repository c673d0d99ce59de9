package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate/backend"
	"github.com/berth-project/berth/numeral"
)

// Plan is what becomes of a model on a cluster.
type Plan struct {
	Spec  *Spec
	Forms []Form // all that were looked at, in order
	Jobs  []*cluster.Job
}

// Replica is the ID of a replica's job.
func (p *Plan) Replica(number int) string { return p.Spec.ID + "-" + strconv.Itoa(number) }

// Fleet is the devices of a cluster, looked at once for many models. It is not
// safe for concurrent use.
type Fleet struct {
	groups []*cluster.Group
	kinds  map[string][][]kind // by the types of device that count: of each group
}

// NewFleet looks at groups, which are in key order.
func NewFleet(groups []*cluster.Group) *Fleet {
	return &Fleet{groups: groups, kinds: map[string][][]kind{}}
}

// of is what each group has of these types.
func (f *Fleet) of(types []string) [][]kind {
	key := strings.Join(types, ",")
	out, known := f.kinds[key]
	if !known {
		for _, g := range f.groups {
			out = append(out, kindsOf(g, types))
		}
		f.kinds[key] = out
	}
	return out
}

// New is Plan for one model alone.
func New(s *Spec, groups []*cluster.Group) (*Plan, error) { return NewFleet(groups).Plan(s) }

// Plan works out the jobs of a model for the cluster. An error that is a Problem
// names the field it is about.
func (f *Fleet) Plan(s *Spec) (*Plan, error) {
	own := *s // what is found out on the way is not the caller's
	p := &planner{Spec: &own}
	if err := p.sensible(); err != nil {
		return nil, err
	}
	if err := p.runsOn(f); err != nil {
		return nil, err
	}
	if err := p.lay(); err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(p.forms), func(f Form) bool { return f.Problem != "" })
	if len(kept) == 0 {
		kept = p.hopeless()
	}
	if len(kept) == 0 {
		return nil, p.none()
	}
	plan := &Plan{Spec: s, Forms: p.forms}
	remarks, replicas := slices.Concat(p.Remarks, p.remarks()), p.replicas()
	if n := p.tasks(kept) * len(replicas); n > MostTasks {
		return nil, &Problem{[]any{"spec", "replicas"}, fmt.Sprintf("%s in %s are %s tasks to choose from, and %s are the most: ask for fewer, or for the parallelism that is meant",
			numeral.Count(len(replicas), "replica"), numeral.Count(len(kept), "form"), numeral.Thousands(n), numeral.Thousands(MostTasks))}
	}
	for _, r := range replicas {
		j := p.job(r, kept)
		j.Remarks = remarks
		plan.Jobs = append(plan.Jobs, j)
	}
	return plan, nil
}

// sensible refuses what the model or its backend would not do, rather than pass it over.
func (p *planner) sensible() error {
	if p.Source == nil || p.Memory.Device > 0 || p.Memory.Total > 0 {
		return nil
	}
	if a := p.Source.Architecture; a != nil && a.MaxContext > 0 && p.Serve.Context > a.MaxContext {
		return &Problem{[]any{"spec", "context"}, fmt.Sprintf("%s takes at most %s tokens, have %s", p.Source.Name, numeral.Thousands(a.MaxContext), numeral.Thousands(p.Serve.Context))}
	}
	if p.layered() && (p.Serve.Tensor > 0 || p.Serve.Pipeline > 0) {
		n := max(1, p.Serve.Tensor) * max(1, p.Serve.Pipeline)
		return &Problem{[]any{"spec", "parallelism"}, fmt.Sprintf("%s divides such a file layer by layer; for a fixed number of devices write placement: {devicesPerReplica: %d}", p.Backend.Name, n)}
	}
	return nil
}

// tasks of one replica, in all forms and cells.
func (p *planner) tasks(forms []Form) int {
	n := 0
	for i := range forms {
		for _, t := range forms[i].tasks {
			n += t.count
		}
	}
	return n * max(1, len(p.Place.Cells))
}

// runsOn finds the types of device that the backend runs on, and their groups.
func (p *planner) runsOn(f *Fleet) error {
	types, err := p.Backend.Types(p.Version)
	if err != nil {
		return &Problem{[]any{"spec", "backendVersion"}, err.Error()}
	}
	if !p.Backend.Anything() {
		p.types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "cpu" })
		slices.Sort(p.types)
	}
	for i, kinds := range f.of(p.types) {
		before := len(p.have)
		for _, k := range kinds {
			if k.profile == "" {
				p.have = append(p.have, k)
			} else {
				p.slices = append(p.slices, k)
			}
		}
		if len(p.have) > before {
			p.groups = append(p.groups, f.groups[i])
		}
	}
	slices.SortStableFunc(p.slices, func(a, b kind) int { return cmp.Compare(a.memory, b.memory) })
	return nil
}

// lay looks at all forms in the order in which they are tried.
func (p *planner) lay() error {
	if p.Place.WholeNodes {
		return p.wholeNodes()
	}
	if p.layered() {
		return p.byLayers()
	}
	p.oneNode()
	if p.can(backend.Nodes) {
		p.severalNodes()
	}
	if p.can(backend.CPU) && p.Place.Offload {
		if memory, err := p.onCPU(); err != nil {
			p.left(Form{Name: "CPU"}, "%s", err)
		} else {
			p.onHost(memory)
		}
	}
	return nil
}

// onCPU is what the node's memory must hold where there is no device.
func (p *planner) onCPU() (cluster.Bytes, error) {
	if p.layered() {
		need, err := p.layersNeed()
		return need.Alone, err
	}
	each, _, err := p.need(1, 1)
	return each, err
}

// hopeless are forms that cannot fit this cluster but can be asked for: a job
// that is refused with its numbers says more than an error.
func (p *planner) hopeless() []Form {
	var out []Form
	for _, f := range p.forms {
		if f.tasks != nil {
			out = append(out, f)
		}
	}
	if !p.Place.WholeNodes { // there the groups are one choice
		out = out[max(0, len(out)-1):]
	}
	for _, f := range out {
		p.hoped = append(p.hoped, f.Name)
	}
	return out
}

// none says why there is no form at all.
func (p *planner) none() error {
	at, message := []any{"spec"}, "it can be laid out in no form"
	if len(p.forms) > 0 {
		first := p.forms[0]
		message = fmt.Sprintf("%s: %s", first.Name, first.Problem)
	}
	switch {
	case p.Serve.Tensor > 0:
		at = append(at, "parallelism", "tensor")
	case p.Source == nil && p.Memory == (Memory{}):
		at = append(at, "source")
	}
	return &Problem{at, message}
}

// replicas are those that are there, and as many more as are wanted, by number.
func (p *planner) replicas() []Replica {
	out := slices.Clone(p.There)
	taken := map[int]bool{}
	for _, r := range out {
		taken[r.Number] = true
	}
	for n := 0; len(out) < p.Replicas; n++ {
		if !taken[n] {
			out = append(out, Replica{Number: n, Created: p.Created})
		}
	}
	slices.SortFunc(out, func(a, b Replica) int { return a.Number - b.Number })
	return out
}

func (p *planner) job(r Replica, forms []Form) *cluster.Job {
	j := &cluster.Job{
		ID: p.ID + "-" + strconv.Itoa(r.Number), Namespace: p.Namespace, Queue: p.Queue, Priority: p.Priority,
		Created: r.Created, Preemptible: p.Preemptible, Labels: maps.Clone(p.Labels), Chosen: -1,
		Set:    cluster.Set{Name: p.ID, Desired: p.Replicas, Group: p.Group},
		Health: r.Health, Offload: r.Offload,
		StaleGrace: p.StaleGrace, PreemptionDelay: p.PreemptionDelay, Torn: r.Torn, Evicted: r.Evicted,
	}
	if p.layered() && p.Place.Distributed {
		p.apartFromItself(j)
	}
	cells := p.Place.Cells
	if len(cells) == 0 {
		cells = []string{""}
	}
	for i := range forms {
		for _, cell := range cells {
			j.Alternatives = append(j.Alternatives, forms[i].alternative(cell))
		}
	}
	j.Alternatives = append(j.Alternatives, p.running(r, forms)...)
	return j
}

// replicaLabel tells the jobs of a model apart.
const replicaLabel = "berth.dev/replica"

// apartFromItself keeps the tasks of a job on different nodes: several nodes are
// meant to be several, and the other forms have one task each.
func (p *planner) apartFromItself(j *cluster.Job) {
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[replicaLabel] = j.ID
	j.Affinity = []cluster.JobTerm{{Selector: cluster.Term{{Key: replicaLabel, Operator: cluster.In, Values: []string{j.ID}}}, Anti: true}}
}

// alternative is the form as the engine knows it, in a cell.
func (f *Form) alternative(cell string) cluster.Alternative {
	alt := cluster.Alternative{Name: f.Name, Whole: f.whole}
	if cell != "" {
		alt.Name += " in " + cell
	}
	for _, piece := range f.tasks {
		shape := piece.shape
		shape.Cell = cell
		shape.LeftOut = cluster.LeftOut(shape.Resources)
		for i := range piece.count {
			alt.Tasks = append(alt.Tasks, &cluster.Task{Name: piece.role + "-" + strconv.Itoa(i), Role: piece.role, Index: i, Shape: &shape})
		}
	}
	alt.Min = len(alt.Tasks)
	return alt
}
