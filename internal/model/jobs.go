package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Result is the jobs of a model on a cluster, and the forms from which their alternatives
// were made.
type Result struct {
	Spec  *Spec
	Forms []Form         // all that were considered, in the order in which they are tried
	Jobs  []*cluster.Job // one for each replica, by the number of the replica

	context int // the tokens for which the forms are made; 0: as many as the model supports
}

// Context returns how many tokens a sequence may have in the forms; 0: as many as the model
// supports.
func (p *Result) Context() int { return p.context }

// FormOf returns the form that the alternative of a job was made from; nil if there is none.
func (p *Result) FormOf(alt *cluster.Alternative) *Form {
	for i := range p.Forms {
		f := &p.Forms[i]
		if f.tasks != nil && (alt.Name == f.Name || strings.HasPrefix(alt.Name, f.Name+" in ")) {
			return f
		}
	}
	return nil
}

// ReplicaID returns the ID of the job of the replica with this number.
func (p *Result) ReplicaID(number int) string { return p.Spec.ID + "-" + strconv.Itoa(number) }

// Convert returns the jobs of one model on the groups, which must be in key order. For
// several models, Fleet.Convert does less work.
func Convert(s *Spec, groups []*cluster.Group) (*Result, error) { return NewFleet(groups).Convert(s) }

// Convert returns the jobs of a model on the cluster. It does not change the spec. An error
// about a field of the spec is a *Problem, which names the field.
func (f *Fleet) Convert(s *Spec) (*Result, error) {
	own := *s // wholeNodes.forms changes the copy
	if err := own.validate(); err != nil {
		return nil, err
	}
	at, err := own.Backend.At(own.Version)
	if err != nil {
		return nil, &Problem{[]any{"spec", "backendVersion"}, err.Error()}
	}
	own.Backend = at
	have, err := f.hardware(own.Backend, own.Version)
	if err != nil {
		return nil, err
	}
	p, err := newConverter(&own, have)
	if own.contextIsOpen() && (err != nil || !slices.ContainsFunc(p.forms, Form.isOnOneNode)) {
		own.Serving.Context = DefaultContext
		own.Remarks = append(slices.Clone(own.Remarks), own.contextRemark())
		p, err = newConverter(&own, have)
	}
	if err != nil {
		return nil, err
	}
	if f.WholeDevices {
		p.useWholeDevices()
	}
	kept := slices.DeleteFunc(slices.Clone(p.forms), func(f Form) bool { return f.Problem != "" })
	if len(kept) == 0 {
		kept = p.fallbackForms()
	}
	if len(kept) == 0 {
		return nil, p.noFormError()
	}
	result := &Result{Spec: s, Forms: p.forms, context: own.Serving.Context}
	remarks, replicas := slices.Concat(own.Remarks, p.remarks()), own.replicas()
	if n := countTasks(kept, own.Place.Cells) * len(replicas); n > MaxTasks {
		return nil, &Problem{[]any{"spec", "replicas"}, fmt.Sprintf("%s in %s make %s tasks, and at most %s are allowed; set fewer replicas, or fix the parallelism",
			english.Count(len(replicas), "replica"), english.Count(len(kept), "form"), english.Thousands(n), english.Thousands(MaxTasks))}
	}
	for _, r := range replicas {
		j := p.job(r, kept)
		j.OwnDetails().Remarks = remarks
		result.Jobs = append(result.Jobs, j)
	}
	return result, nil
}

// newConverter returns a converter that has listed the forms of the spec.
func newConverter(s *Spec, have *hardware) (*converter, error) {
	size, tensors := have.fleet.sizing(s)
	p := &converter{spec: s, node: &oneNode{spec: s, size: size, parallel: parallelism{s, tensors}, hardware: have}}
	p.useSelectedDevices()
	return p, p.listForms()
}

// DefaultContext is the context of a model whose spec sets none, if no node of the cluster
// can hold the longest one that the model supports. It does not depend on how many nodes
// there are: a node that is added must not make replicas larger.
const DefaultContext = 32_768

// contextIsOpen reports whether the spec sets no context and the default may be used.
func (s *Spec) contextIsOpen() bool {
	if s.Serving.Context > 0 || s.Place.WholeNodes || s.Memory.known() || s.Source == nil || s.Source.Architecture == nil {
		return false
	}
	longest := s.Source.Architecture.MaxContext
	return longest == 0 || longest > DefaultContext
}

// contextRemark says why the context is the default.
func (s *Spec) contextRemark() string {
	tokens := english.Thousands(DefaultContext)
	if n := s.Source.Architecture.MaxContext; n > 0 {
		return cluster.Note + fmt.Sprintf("no context is set, and no node of the cluster can hold the %s tokens that the model supports. %s tokens are assumed; start the server with that context.", english.Thousands(n), tokens)
	}
	return cluster.Note + fmt.Sprintf("no context is set, and the model does not say which it supports. %s tokens are assumed; start the server with that context.", tokens)
}

// isOnOneNode reports whether the form has no problem and the whole model is on devices of one
// node.
func (f Form) isOnOneNode() bool { return f.Nodes == 1 && f.isOnDevices() }

// isOnDevices reports whether the form has no problem and the whole model is on devices.
func (f Form) isOnDevices() bool {
	if f.Problem != "" || len(f.tasks) == 0 {
		return false
	}
	need := &f.tasks[0].shape.Need
	return !need.None() && (need.Layers == nil || !need.Layers.Spill)
}

// validate returns an error for values that the model or its backend cannot serve.
// Ignoring such a value would serve something else than was requested.
func (s *Spec) validate() error {
	if s.Place.DeviceLayers != nil && !s.layered() {
		return &Problem{[]any{"spec", "placement", "deviceLayers"}, "only llamacpp divides a model by layers, and only if it reads the layers from a GGUF file; leave it out"}
	}
	if n, p := s.Place.DeviceLayers, s.Place; n != nil && *n == 0 && (p.Partition != "" || len(p.Selected) > 0 || p.Devices > 0) {
		return &Problem{[]any{"spec", "placement", "deviceLayers"}, "0 layers on devices contradict partition, devices and devicesPerReplica; leave one out"}
	}
	if a := s.architecture(); a != nil && s.Serving.Expert && a.Experts == 0 {
		return &Problem{[]any{"spec", "parallelism", "expert"}, fmt.Sprintf("model %s has no experts that could be divided; leave it out", s.Source.Name)}
	}
	if s.Source == nil || s.Memory.known() {
		return nil
	}
	if a := s.Source.Architecture; a != nil && a.MaxContext > 0 && s.Serving.Context > a.MaxContext {
		return &Problem{[]any{"spec", "context"}, fmt.Sprintf("%s takes at most %s tokens, have %s", s.Source.Name, english.Thousands(a.MaxContext), english.Thousands(s.Serving.Context))}
	}
	if s.layered() && (s.Serving.Tensor > 0 || s.Serving.Pipeline > 0) {
		n := max(1, s.Serving.Tensor) * max(1, s.Serving.Pipeline)
		return &Problem{[]any{"spec", "parallelism"}, fmt.Sprintf("%s divides such a file layer by layer; for a fixed number of devices write placement: {devicesPerReplica: %d}", s.Backend.Name, n)}
	}
	return nil
}

// countTasks returns the number of tasks of one replica, over all forms and cells.
func countTasks(forms []Form, cells []string) int {
	n := 0
	for i := range forms {
		for _, t := range forms[i].tasks {
			n += t.count
		}
	}
	return n * max(1, len(cells))
}

// converter lists the forms of a replica and makes the jobs.
type converter struct {
	spec  *Spec
	node  *oneNode // also used for replicas that run already
	forms []Form   // all that were considered, in the order in which they are tried
	// selected is the devices that were selected by hand for one replica, by node; nil unless
	// they are on several nodes.
	selected [][]*cluster.Device
	// selection says why one replica does not use all devices that were selected for it; "": it
	// does, or none are selected.
	selection string
}

// listForms fills in forms, in the order in which they are tried.
func (p *converter) listForms() error {
	s, n := p.spec, p.node
	if s.Place.WholeNodes {
		var err error
		p.forms, err = (&wholeNodes{s, n.parallel, n.hardware}).forms()
		return err
	}
	if s.layered() {
		need, extra, err := n.size.layeredNeed()
		if most, n := need.Layers, s.Place.DeviceLayers; err == nil && n != nil && *n > most {
			return &Problem{[]any{"spec", "placement", "deviceLayers"}, fmt.Sprintf("%s has %s with the output layer, have %d", s.Source.Name, english.Count(most, "layer"), *n)}
		}
		if err == nil {
			p.forms = (&byLayers{s, n.hardware, need, extra, n.chosen, p.selected}).forms()
		}
		if s.Place.Partition != "" {
			p.forms = slices.DeleteFunc(p.forms, notOnSlice)
		}
		return err
	}
	if s.Place.Partition != "" {
		p.forms = slices.DeleteFunc(n.withParallelism(1, 1), notOnSlice)
		return nil
	}
	if p.selected != nil {
		p.forms = []Form{p.onSelectedNodes(p.selected)}
		return nil
	}
	p.forms = n.forms()
	if s.ranks() > 1 {
		p.forms = append(p.forms, (&dataParallel{n}).forms()...)
		return nil
	}
	if s.supports(backend.Nodes) {
		p.forms = append(p.forms, (&severalNodes{s, n.size, n.parallel, n.hardware}).forms(p.forms)...)
	}
	if s.supports(backend.CPU) && s.Place.Offload {
		memory, err := n.size.hostMemory()
		f := cpuForm(s, memory)
		if err != nil {
			f = withProblem(Form{Name: "CPU"}, "%s", err)
		}
		p.forms = append(p.forms, f)
	}
	return nil
}

// notOverNodes says why a replica is not divided over several nodes; "" if it may be. onNode
// is its forms on one node.
func (s *Spec) notOverNodes(onNode []Form) string {
	switch {
	case !s.Place.Distributed:
		return "placement.distributed is false"
	case s.Place.IfNeeded && slices.ContainsFunc(onNode, Form.isOnDevices):
		return "one node can hold the replica, and placement.distributed is not set"
	}
	return ""
}

// fallbackForms returns the forms that are requested if every form has a problem: of the
// forms that can be requested, the last one or, if that is on whole nodes, all forms on whole
// nodes. They cannot fit this cluster, but the refusal of a job has figures and an error has
// none.
func (p *converter) fallbackForms() []Form {
	for i := range slices.Backward(p.forms) {
		// A form on one node is preferred: its refusal says how much each node lacks.
		if f := &p.forms[i]; f.tasks != nil && f.Nodes == 1 && f.whole == nil && !f.tasks[0].shape.Need.None() && f.Devices <= p.node.hardware.maxDevices() {
			f.fallback = true
			return []Form{*f}
		}
	}
	var out []Form
	for i := range slices.Backward(p.forms) {
		f := &p.forms[i]
		if f.tasks == nil || len(out) > 0 && f.whole == nil {
			continue
		}
		f.fallback = true
		out = append(out, *f)
		if f.whole == nil { // the engine tries forms on whole nodes of several groups as one choice
			break
		}
	}
	slices.Reverse(out)
	return out
}

// noFormError says why the model has no form that can be requested.
func (p *converter) noFormError() error {
	at, message := []any{"spec"}, "it has no form that can be placed"
	if len(p.forms) > 0 {
		first := p.forms[0]
		message = fmt.Sprintf("%s: %s", first.Name, first.Problem)
	}
	switch f := p.spec.Serving; {
	case f.Pipeline > 0 && p.node.parallel.tensorProblem(max(1, f.Tensor)) == "":
		at = append(at, "parallelism", "pipeline")
	case f.Tensor > 0:
		at = append(at, "parallelism", "tensor")
	case p.spec.Source == nil && p.spec.Memory == (Memory{}):
		at = append(at, "source")
	}
	return &Problem{at, message}
}

// replicas returns the replicas that exist and as many new ones as are missing, sorted by
// number. New replicas get the lowest numbers that are not in use.
func (s *Spec) replicas() []Replica {
	out := slices.Clone(s.Existing)
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

// job returns the job of one replica, with the forms as alternatives.
func (p *converter) job(r Replica, forms []Form) *cluster.Job {
	s := p.spec
	j := &cluster.Job{
		ID: s.ID + "-" + strconv.Itoa(r.Number), Namespace: s.Namespace, Queue: s.Queue, Priority: s.Priority,
		Created: r.Created, Preemptible: s.Preemptible, Labels: maps.Clone(s.Labels), Chosen: -1,
		JobDetails: &cluster.JobDetails{
			Set:    cluster.Set{Name: s.ID, Desired: s.Replicas, Group: s.Group},
			Health: r.Health, Offload: r.Offload,
			StaleGrace: s.StaleGrace, PreemptionDelay: s.PreemptionDelay, BelowMinimumSince: r.BelowMinimumSince, Evicted: r.Evicted,
		},
	}
	if slices.ContainsFunc(forms, func(f Form) bool { return f.whole == nil && f.Nodes > 1 }) {
		keepTasksOnDifferentNodes(j)
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
	j.Alternatives = append(j.Alternatives, (&runningReplica{s, p.node, p.forms}).alternatives(r, forms)...)
	return j
}

// keepTasksOnDifferentNodes adds an anti-affinity of the job to itself. A form over
// several nodes needs different nodes; the other forms have one task each and are not
// affected.
func keepTasksOnDifferentNodes(j *cluster.Job) {
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[cluster.ReplicaLabel] = j.ID
	j.OwnDetails().Affinity = []cluster.JobTerm{{Selector: cluster.Term{{Key: cluster.ReplicaLabel, Operator: cluster.In, Values: []string{j.ID}}}, Anti: true}}
}

// alternative returns the form as an alternative of a job, in this cell; "": in any
// cell.
func (f *Form) alternative(cell string) cluster.Alternative {
	alt := cluster.Alternative{Name: f.Name, Whole: f.whole}
	if cell != "" {
		alt.Name += " in " + cell
	}
	var shape *cluster.Shape
	for k, group := range f.tasks {
		if k == 0 || group.shape != f.tasks[k-1].shape {
			own := *group.shape
			own.Cell, own.LeftOut = cell, cluster.LeftOut(own.Resources)
			shape = &own
		}
		from := f.firstIndex(k)
		for i := range group.count {
			alt.Tasks = append(alt.Tasks, &cluster.Task{Name: group.role + "-" + strconv.Itoa(from+i), Role: group.role, Index: from + i, Shape: shape})
		}
	}
	alt.Min = len(alt.Tasks)
	return alt
}
