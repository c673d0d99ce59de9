package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/numeral"
)

// Plan is what becomes of a model on a cluster.
type Plan struct {
	Spec  *Spec
	Forms []Form // all that were looked at, in order
	Jobs  []*cluster.Job
}

// Replica is the ID of a replica's job.
func (p *Plan) Replica(number int) string { return p.Spec.ID + "-" + strconv.Itoa(number) }

// New is Plan for one model alone.
func New(s *Spec, groups []*cluster.Group) (*Plan, error) { return NewFleet(groups).Plan(s) }

// Plan works out the jobs of a model for the cluster. An error that is a Problem
// names the field it is about.
func (f *Fleet) Plan(s *Spec) (*Plan, error) {
	own := *s // which is changed on the way; the caller's is not
	if err := own.sensible(); err != nil {
		return nil, err
	}
	have, err := f.hardware(own.Backend, own.Version)
	if err != nil {
		return nil, err
	}
	p := &planner{spec: &own, node: &oneNode{&own, sizing{&own}, parallelism{&own}, have}}
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
	remarks, replicas := slices.Concat(own.Remarks, p.remarks()), own.replicas()
	if n := tasks(kept, own.Place.Cells) * len(replicas); n > MostTasks {
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
func (s *Spec) sensible() error {
	if s.Source == nil || s.Memory.known() {
		return nil
	}
	if a := s.Source.Architecture; a != nil && a.MaxContext > 0 && s.Serve.Context > a.MaxContext {
		return &Problem{[]any{"spec", "context"}, fmt.Sprintf("%s takes at most %s tokens, have %s", s.Source.Name, numeral.Thousands(a.MaxContext), numeral.Thousands(s.Serve.Context))}
	}
	if s.layered() && (s.Serve.Tensor > 0 || s.Serve.Pipeline > 0) {
		n := max(1, s.Serve.Tensor) * max(1, s.Serve.Pipeline)
		return &Problem{[]any{"spec", "parallelism"}, fmt.Sprintf("%s divides such a file layer by layer; for a fixed number of devices write placement: {devicesPerReplica: %d}", s.Backend.Name, n)}
	}
	return nil
}

// tasks of one replica, in all forms and cells.
func tasks(forms []Form, cells []string) int {
	n := 0
	for i := range forms {
		for _, t := range forms[i].tasks {
			n += t.count
		}
	}
	return n * max(1, len(cells))
}

// planner tries the ways to lay a replica out in turn, and makes the jobs.
type planner struct {
	spec  *Spec
	node  *oneNode // the way that is tried first, and again for replicas that run
	forms []Form   // all that were looked at, in order
}

// lay looks at all forms in the order in which they are tried.
func (p *planner) lay() error {
	s, n := p.spec, p.node
	if s.Place.WholeNodes {
		var err error
		p.forms, err = (&wholeNodes{s, n.par, n.have}).forms()
		return err
	}
	if s.layered() {
		need, beside, err := n.size.layers()
		if err == nil {
			p.forms = (&byLayers{s, n.have, need, beside}).forms()
		}
		return err
	}
	p.forms = n.forms()
	if s.can(backend.Nodes) {
		p.forms = append(p.forms, (&severalNodes{s, n.size, n.par, n.have}).forms()...)
	}
	if s.can(backend.CPU) && s.Place.Offload {
		memory, err := n.size.host()
		f := onHost(s, memory)
		if err != nil {
			f = left(Form{Name: "CPU"}, "%s", err)
		}
		p.forms = append(p.forms, f)
	}
	return nil
}

// hopeless are forms that cannot fit this cluster but can be requested, the last or
// all on whole nodes: a job that is refused with its numbers says more than an error.
func (p *planner) hopeless() []Form {
	var out []Form
	for i := range slices.Backward(p.forms) {
		if f := &p.forms[i]; f.tasks != nil {
			f.hopeless = true
			out = append(out, *f)
			if !p.spec.Place.WholeNodes { // there the groups are one choice
				break
			}
		}
	}
	slices.Reverse(out)
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
	case p.spec.Serve.Tensor > 0:
		at = append(at, "parallelism", "tensor")
	case p.spec.Source == nil && p.spec.Memory == (Memory{}):
		at = append(at, "source")
	}
	return &Problem{at, message}
}

// replicas are those that are there, and as many more as are wanted, by number.
func (s *Spec) replicas() []Replica {
	out := slices.Clone(s.There)
	taken := map[int]bool{}
	for _, r := range out {
		taken[r.Number] = true
	}
	for n := 0; len(out) < s.Replicas; n++ {
		if !taken[n] {
			out = append(out, Replica{Number: n, Created: s.Created})
		}
	}
	slices.SortFunc(out, func(a, b Replica) int { return a.Number - b.Number })
	return out
}

func (p *planner) job(r Replica, forms []Form) *cluster.Job {
	s := p.spec
	j := &cluster.Job{
		ID: s.ID + "-" + strconv.Itoa(r.Number), Namespace: s.Namespace, Queue: s.Queue, Priority: s.Priority,
		Created: r.Created, Preemptible: s.Preemptible, Labels: maps.Clone(s.Labels), Chosen: -1,
		Set:    cluster.Set{Name: s.ID, Desired: s.Replicas, Group: s.Group},
		Health: r.Health, Offload: r.Offload,
		StaleGrace: s.StaleGrace, PreemptionDelay: s.PreemptionDelay, BelowMinimumSince: r.Torn, Evicted: r.Evicted,
	}
	if s.layered() && s.Place.Distributed {
		apartFromItself(j)
	}
	cells := s.Place.Cells
	if len(cells) == 0 {
		cells = []string{""}
	}
	for i := range forms {
		for _, cell := range cells {
			j.Alternatives = append(j.Alternatives, forms[i].alternative(cell))
		}
	}
	j.Alternatives = append(j.Alternatives, (&running{s, p.node, p.forms}).alternatives(r, forms)...)
	return j
}

// replicaLabel tells the jobs of a model apart.
const replicaLabel = "berth.dev/replica"

// apartFromItself keeps the tasks of a job on different nodes: several nodes are
// meant to be several, and the other forms have one task each.
func apartFromItself(j *cluster.Job) {
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
