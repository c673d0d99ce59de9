package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/numeral"
)

// remarks say what the model needs, which forms were left out and what was taken
// for granted, for whoever asks why it is pending.
func (p *planner) remarks() []string {
	var out []string
	for _, f := range p.forms {
		if f.tasks != nil && p.asked(&f) {
			out = append(out, p.needs(&f))
			break
		}
	}
	for _, f := range p.forms {
		switch {
		case f.Problem == "":
		case p.asked(&f):
			out = append(out, fmt.Sprintf("As %s it would not fit even if all were free: %s.", f.Name, f.Problem))
		default:
			out = append(out, fmt.Sprintf("Not tried as %s: %s.", f.Name, f.Problem))
		}
	}
	if p.Source != nil {
		for _, a := range p.Source.AssumedWhere(p.layered()) {
			out = append(out, "Assumed: "+a)
		}
	}
	return out
}

// asked reports whether the form is asked for, were it only to be refused with its
// numbers.
func (p *planner) asked(f *Form) bool { return f.Problem == "" || slices.Contains(p.hoped, f.Name) }

// needs says what the first form asks of a device, part by part.
func (p *planner) needs(f *Form) string {
	switch {
	case p.Memory.Device > 0 || p.Memory.Total > 0:
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
		{"weights", f.Parts.Weights}, {"KV cache" + p.tokens(), f.Parts.KVCache}, {"activations", f.Parts.Activations},
		{"graphs", f.Parts.Graph}, {"overhead", f.Parts.Overhead},
	} {
		if x.bytes > 0 {
			parts = append(parts, x.name+" "+gib(x.bytes))
		}
	}
	on, of := "On", ""
	switch {
	case p.layered() && f.Devices != 1: // whose layers go wherever there is room
		on, of = "As", " in all"
	case f.Devices > 1 || f.Nodes > 1:
		of = " of each device"
	}
	return fmt.Sprintf("%s %s it needs %s%s: %s.", on, f.Name, gib(f.Parts.Total()), of, strings.Join(parts, ", "))
}

// tokens names the context that the cache is for.
func (p *planner) tokens() string {
	context := p.Serve.Context
	if a := p.Source.Architecture; context == 0 && a != nil {
		context = a.MaxContext
	}
	if context == 0 {
		return ""
	}
	if n := p.Serve.Sequences; n > 1 {
		return fmt.Sprintf(" for %d × %s tokens", n, numeral.Thousands(context))
	}
	return fmt.Sprintf(" for %s tokens", numeral.Thousands(context))
}
