package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate"
)

// remarks returns sentences that explain why the model may be pending: what it needs,
// which forms are not tried, and what the estimate assumes.
func (p *converter) remarks() []string {
	var out []string
	if p.selection != "" {
		out = append(out, p.selection)
	}
	if i := slices.IndexFunc(p.forms, func(f Form) bool { return f.tasks != nil && (f.Problem == "" || f.fallback) }); i >= 0 {
		out = append(out, p.forms[i].needSentence(p.spec))
	}
	for _, f := range p.forms {
		switch {
		case f.Problem == "":
		case f.fallback:
			out = append(out, fmt.Sprintf("As %s it would not fit even if all were free: %s.", f.Name, f.Problem))
		default:
			out = append(out, fmt.Sprintf("Not tried: %s, because %s.", f.Name, f.Problem))
		}
	}
	if s := p.spec; s.Source != nil {
		for _, a := range s.Source.Assumptions(s.layered()) {
			out = append(out, "Assumed: "+a)
		}
		if s.Source.IsCrude() && !s.layered() && !s.Memory.known() && !s.Place.WholeNodes {
			out = append(out, "Assumed: "+estimate.CrudeAssumption)
		}
	}
	return out
}

// needSentence returns a sentence that says how much memory the form needs and, if it is
// estimated, for what.
func (f *Form) needSentence(s *Spec) string {
	switch {
	case f.Host > 0:
		return f.hostSentence(s)
	case s.Memory.known():
		return fmt.Sprintf("As %s it needs %s of each, as its spec says.", f.Name, gib(f.PerDevice))
	case f.whole != nil:
		return fmt.Sprintf("It needs %s on %s.", gib(f.whole.Memory), f.Name)
	case f.Parts == (estimate.Breakdown{}):
		return fmt.Sprintf("As %s it needs %s.", f.Name, gib(f.PerDevice))
	}
	var parts []string
	for _, x := range []struct {
		name  string
		bytes cluster.Bytes
	}{
		{"weights", f.Parts.Weights}, {"KV cache" + s.contextSuffix(), f.Parts.KVCache}, {"activations", f.Parts.Activations},
		{"graphs", f.Parts.Graph}, {"overhead", f.Parts.Overhead},
	} {
		if x.bytes > 0 {
			parts = append(parts, x.name+" "+gib(x.bytes))
		}
	}
	on, of := "On", ""
	switch {
	case s.layered() && (f.Devices != 1 || f.Nodes > 1): // the layers are divided by free memory, so only the sum is known
		on, of = "As", " in all"
	case f.Devices > 1 || f.Nodes > 1:
		of = " of each device"
	}
	return fmt.Sprintf("%s %s it needs %s%s: %s.", on, f.Name, gib(f.Parts.Total()), of, strings.Join(parts, ", "))
}

// hostSentence returns a sentence that says how much of the node's memory is booked for a
// replica without devices and, if the spec sets another amount, how much it needs.
func (f *Form) hostSentence(s *Spec) string {
	booked := cluster.Bytes(f.tasks[0].shape.Resources.Of(cluster.Memory))
	if booked == f.Host {
		return fmt.Sprintf("As %s it needs %s of the node's memory.", f.Name, gib(f.Host))
	}
	return fmt.Sprintf("As %s it requests %s of the node's memory, as its spec says, and needs %s.", f.Name, gib(booked), gib(f.Host))
}

// contextSuffix returns " for N tokens", the context that the KV cache is for; "" if the
// context is not known.
func (s *Spec) contextSuffix() string {
	context := s.Serving.Context
	if a := s.Source.Architecture; context == 0 && a != nil {
		context = a.MaxContext
	}
	if context == 0 {
		return ""
	}
	if n := s.Serving.Sequences; n > 1 {
		return fmt.Sprintf(" for %d × %s tokens", n, english.Thousands(context))
	}
	return fmt.Sprintf(" for %s tokens", english.Thousands(context))
}
