package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/wire"
)

// AddForms adds the forms of a model that were tried, in order, and why each was not placed. It
// adds nothing for a model with a single form, for which the funnel is enough.
func (r *Report) AddForms(refused *engine.Refusal, shape *cluster.Shape, ph Phrases) {
	if !shape.ServesModel() || len(refused.Attempts) < 2 || refused.Surplus {
		return
	}
	for i := range refused.Attempts {
		a := &refused.Attempts[i]
		t := wire.TriedForm{Form: alternativeName(a, i)}
		switch {
		case a.Level != "":
			t.Because = []string{domainsText(a)}
		case a.Before != nil:
			t.Because = []string{ph.rejectionText(a.Before, nil)}
		case len(a.Groups) > 0:
			t.Form, t.Because = "several nodes of one group", ph.groupLines(a)
		default:
			t.Steps = ph.steps(a, nil)
			if a.Placed > 0 {
				t.Because = []string{neededText(a)}
			}
		}
		r.Forms = append(r.Forms, t)
	}
}

// steps returns how many nodes each plugin rejected, without the nodes in own.
func (ph Phrases) steps(a *engine.Attempt, own map[string]bool) []wire.Step {
	var out []wire.Step
	for i := range a.Counts {
		t := &a.Counts[i]
		misses := missesOf(a, t)
		kept := slices.DeleteFunc(slices.Clone(misses), func(m *engine.Miss) bool { return own[m.Node] })
		nodes := t.Nodes - (len(misses) - len(kept))
		if nodes == 0 {
			continue
		}
		if len(kept) == 0 {
			kept = misses
		}
		step := wire.Step{Nodes: nodes, Plugin: t.Plugin, Reason: string(t.Reason)}
		if len(kept) > 0 {
			step.Words, step.Example = ph.rejectionText(&kept[0].Rejection, kept), ph.exampleText(kept)
		} else {
			step.Words = splitWords(string(t.Reason))
		}
		out = append(out, step)
	}
	return out
}

// groupLines returns a line for each node group: why it was rejected, or when it would fit.
func (ph Phrases) groupLines(a *engine.Attempt) []string {
	var out []string
	for _, g := range a.Groups {
		line := fmt.Sprintf("= %s  would fit %s", g.Key, ph.fitsWhenText(a, &g))
		if x := g.Rejection; x != nil {
			line = fmt.Sprintf("− %s  %s  %s", g.Key, cmp.Or(x.Plugin, "engine"), ph.rejectionText(x, nil))
		}
		out = append(out, line)
	}
	return out
}

// formsText writes, for each form, how many nodes each plugin rejected.
func (r *Report) formsText(w io.Writer) {
	const most = 6
	fmt.Fprintf(w, "Tried in this order, on %s:\n", english.Count(r.Nodes, "node"))
	for i, t := range r.Forms {
		if i == most {
			fmt.Fprintf(w, "  … and %s\n", english.Count(len(r.Forms)-most, "more form"))
			break
		}
		fmt.Fprintf(w, "  %s\n", t.Form)
		stepLines(w, "    ", t.Steps, len(strconv.Itoa(r.Nodes)))
		for _, line := range t.Because {
			wrapped(w, line, "    ", "      ")
		}
	}
}

// stepLines writes a line for each step.
func stepLines(w io.Writer, indent string, steps []wire.Step, width int) {
	columns := 0
	for _, s := range steps {
		columns = max(columns, len(s.Plugin))
	}
	for _, s := range steps {
		first := fmt.Sprintf("%s− %*d  %s  ", indent, width, s.Nodes, pad(s.Plugin, columns))
		wrapped(w, s.Words+" "+s.Example, first, strings.Repeat(" ", utf8.RuneCountInString(first)))
	}
}
