package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate"
)

// remarks say what the model needs, which forms were left out and what was taken
// for granted, to explain why it is pending.
func (p *planner) remarks() []string {
	var out []string
	if i := slices.IndexFunc(p.forms, func(f Form) bool { return f.tasks != nil && (f.Problem == "" || f.hopeless) }); i >= 0 {
		out = append(out, p.forms[i].needs(p.spec))
	}
	for _, f := range p.forms {
		switch {
		case f.Problem == "":
		case f.hopeless:
			out = append(out, fmt.Sprintf("As %s it would not fit even if all were free: %s.", f.Name, f.Problem))
		default:
			out = append(out, fmt.Sprintf("Not tried as %s: %s.", f.Name, f.Problem))
		}
	}
	if s := p.spec; s.Source != nil {
		for _, a := range s.Source.AssumedWhere(s.layered()) {
			out = append(out, "Assumed: "+a)
		}
	}
	return out
}

// needs says what the form requests of a device, part by part.
func (f *Form) needs(s *Spec) string {
	switch {
	case s.Memory.known():
		return fmt.Sprintf("As %s it needs %s of each, as its spec says.", f.Name, gib(f.Each))
	case f.whole != nil:
		return fmt.Sprintf("It needs %s on %s.", gib(f.whole.Memory), f.Name)
	case f.Parts == (estimate.Breakdown{}):
		return fmt.Sprintf("As %s it needs %s.", f.Name, gib(f.Each))
	}
	var parts []string
	for _, x := range []struct {
		name  string
		bytes cluster.Bytes
	}{
		{"weights", f.Parts.Weights}, {"KV cache" + s.tokens(), f.Parts.KVCache}, {"activations", f.Parts.Activations},
		{"graphs", f.Parts.Graph}, {"overhead", f.Parts.Overhead},
	} {
		if x.bytes > 0 {
			parts = append(parts, x.name+" "+gib(x.bytes))
		}
	}
	on, of := "On", ""
	switch {
	case s.layered() && f.Devices != 1: // whose layers are wherever there is room
		on, of = "As", " in all"
	case f.Devices > 1 || f.Nodes > 1:
		of = " of each device"
	}
	return fmt.Sprintf("%s %s it needs %s%s: %s.", on, f.Name, gib(f.Parts.Total()), of, strings.Join(parts, ", "))
}

// tokens names the context that the cache is for.
func (s *Spec) tokens() string {
	context := s.Serve.Context
	if a := s.Source.Architecture; context == 0 && a != nil {
		context = a.MaxContext
	}
	if context == 0 {
		return ""
	}
	if n := s.Serve.Sequences; n > 1 {
		return fmt.Sprintf(" for %d × %s tokens", n, english.Thousands(context))
	}
	return fmt.Sprintf(" for %s tokens", english.Thousands(context))
}
