package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/nodes"
)

// Relaxation is one way in which a model could request less or allow more, in steps, such
// as a shorter context. Step 0 gives up most, and the last step gives up least.
type Relaxation struct {
	Steps int // how many steps there are, at least 1
	// At returns the change at a step.
	At func(step int) Relaxed
}

// Relaxed is a model that requests less or allows more.
type Relaxed struct {
	Text string // completes "it would fit …"
	// Cost is how much the change costs the user of the model. Costs are only compared with
	// each other; the change with the lowest cost is suggested first.
	Cost int
	Set  []string // the fields of the manifest that make the change: spec.context=8192; without a value, the field is removed
	Spec *Spec    // the changed spec
}

// Relaxations returns the ways in which the model could be changed so that it may fit.
func (p *Result) Relaxations() []Relaxation {
	return p.Spec.relaxations(cmp.Or(p.context, p.Spec.Serving.Context))
}

// relaxations returns the ways to change a model that is served with this context; 0: the longest
// that it supports.
func (s *Spec) relaxations(context int) []Relaxation {
	var out []Relaxation
	addSingle := func(text string, cost int, edit func(*Spec), set ...string) {
		out = append(out, Relaxation{1, func(int) Relaxed {
			changed := *s
			edit(&changed)
			return Relaxed{text, cost, set, &changed}
		}})
	}
	if s.Source != nil && !s.Memory.known() {
		out = append(out, s.shorterContexts(context)...)
		out = append(out, s.fewerSequences()...)
		if bits := s.Serving.KVBits; bits == 0 || bits > 8 {
			addSingle("with an 8-bit KV cache (kvCacheBits: 8)", 15, func(c *Spec) { c.Serving.KVBits = 8 }, "spec.kvCacheBits=8")
		}
	}
	if s.Draft != nil {
		addSingle("without the draft model", 30, func(c *Spec) { c.Draft = nil; c.Files.Draft = "" }, "spec.draft=")
	}
	if s.Serving.Tensor > 0 || s.Serving.Pipeline > 0 || s.Serving.Data > 1 || s.Place.Devices > 0 {
		addSingle("with the parallelism left open", 10, func(c *Spec) {
			c.Serving.Tensor, c.Serving.Pipeline, c.Serving.Data, c.Serving.Expert, c.Place.Devices = 0, 0, 0, false, 0
		},
			"spec.parallelism=", "spec.placement.devicesPerReplica=")
	}
	if len(s.Place.Selected) > 0 {
		addSingle("with the selection of devices lifted", 12, func(c *Spec) { c.Place.Selected = nil }, "spec.placement.devices=")
	}
	if s.Place.Partition != "" {
		addSingle("with the MIG profile left open", 12, func(c *Spec) { c.Place.Partition = "" }, "spec.placement.partition=")
	}
	if s.Place.WholeNodes {
		if s.Replicas > 1 {
			out = append(out, s.fewerReplicas())
		}
		return out
	}
	if (!s.Place.Distributed || s.Place.IfNeeded) && s.supports(backend.Nodes) {
		addSingle("spread over several nodes (placement.distributed: true)", 15, func(c *Spec) { c.Place.Distributed, c.Place.IfNeeded = true, false }, "spec.placement.distributed=true")
	}
	if !s.Place.Offload {
		allow, set := func(c *Spec) { c.Place.Offload = true }, "spec.placement.cpuOffload=true"
		switch {
		case s.layered():
			addSingle("with layers in the node's memory (placement.cpuOffload: true)", 40, allow, set)
		case s.supports(backend.CPU):
			addSingle("without a device (placement.cpuOffload: true)", 40, allow, set)
		}
	}
	if u := s.utilization(); u > 0 && s.Backend != nil && !s.Backend.Static {
		if u < maxUtilization {
			addSingle(utilizationText(maxUtilization), 10, func(c *Spec) { c.Utilization = maxUtilization }, utilizationField(maxUtilization))
		}
		// A device that other tasks use in part may still have enough memory for this model.
		for i, less := range []cluster.Milli{750, 500, 250} {
			if less < u {
				addSingle(utilizationText(less), 16+i, func(c *Spec) { c.Utilization = less }, utilizationField(less))
			}
		}
	}
	return out
}

func utilizationText(m cluster.Milli) string {
	return fmt.Sprintf("with gpuMemoryUtilization %d.%02d", m/1000, m%1000/10)
}

func utilizationField(m cluster.Milli) string {
	return fmt.Sprintf("spec.gpuMemoryUtilization=%d.%02d", m/1000, m%1000/10)
}

// maxUtilization is the largest utilization that is suggested. It leaves 5 % of a device
// for what a driver and a display use.
const maxUtilization cluster.Milli = 950

// utilization returns the share of each device that is claimed; 0 if bytes are claimed.
func (s *Spec) utilization() cluster.Milli {
	if s.Utilization > 0 || s.Backend == nil {
		return s.Utilization
	}
	return s.Backend.Fraction(&estimate.Model{}, estimate.Serving{}, backend.Accelerator{})
}

// shorterContexts returns a relaxation with shorter contexts in steps of 1,024 tokens,
// which are round numbers in a manifest; nil if the context, which is now, cannot be shorter.
func (s *Spec) shorterContexts(now int) []Relaxation {
	const step = 1024
	switch {
	case now > 0:
	case s.Place.WholeNodes:
		now = nodes.DefaultTokens
	case s.Source.Architecture != nil:
		now = s.Source.Architecture.MaxContext
	}
	if now <= step {
		return nil
	}
	return []Relaxation{{(now - 1) / step, func(i int) Relaxed {
		tokens := (i + 1) * step
		changed := *s
		changed.Serving.Context = tokens
		return Relaxed{
			fmt.Sprintf("with context ≤ %s instead of %s", english.Thousands(tokens), english.Thousands(now)), 20 + 60*(now-tokens)/now,
			[]string{fmt.Sprintf("spec.context=%d", tokens)}, &changed,
		}
	}}}
}

func (s *Spec) fewerSequences() []Relaxation {
	now := s.Serving.Sequences
	if now <= 1 {
		return nil
	}
	return []Relaxation{{now - 1, func(i int) Relaxed {
		changed := *s
		changed.Serving.Sequences = i + 1
		return Relaxed{
			fmt.Sprintf("with %s at once instead of %s", english.Count(i+1, "sequence"), english.Thousands(now)), 20 + 60*(now-i-1)/now,
			[]string{fmt.Sprintf("spec.sequences=%d", i+1)}, &changed,
		}
	}}}
}

// fewerReplicas returns a relaxation with fewer replicas. It is offered for whole nodes
// only, because the nodes of all replicas are chosen together there.
func (s *Spec) fewerReplicas() Relaxation {
	return Relaxation{s.Replicas - 1, func(i int) Relaxed {
		changed := *s
		changed.Replicas = i + 1
		changed.Existing = slices.Clone(s.Existing)
		return Relaxed{
			fmt.Sprintf("with %s instead of %s", english.Count(i+1, "replica"), english.Thousands(s.Replicas)), 20 + 100*(s.Replicas-i-1)/s.Replicas,
			[]string{fmt.Sprintf("spec.replicas=%d", i+1)}, &changed,
		}
	}}
}
