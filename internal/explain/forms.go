package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// Tried is one form of a model that was tried, and who turned it down.
type Tried struct {
	Form string `json:"form"`
	// Steps count the nodes by who turned them down, in filter order.
	Steps []Step `json:"steps,omitempty"`
	// Because says what is not a matter of single nodes.
	Because []string `json:"because,omitempty"`
}

// tried goes through the forms of a model, in the order in which they were tried.
// There is none for those that have one form only: the funnel says it all.
func tried(w *workload, ph Phrases) []Tried {
	if !w.shape().Served() || len(w.refusal.Attempts) < 2 || w.refusal.Surplus {
		return nil
	}
	var out []Tried
	for i := range w.refusal.Attempts {
		a := &w.refusal.Attempts[i]
		t := Tried{Form: alternativeName(a, i)}
		switch {
		case a.Level != "":
			t.Because = []string{domainsText(a)}
		case a.Before != nil:
			t.Because = []string{ph.words(a.Before, nil)}
		case len(a.Groups) > 0:
			t.Form, t.Because = "several nodes of one group", ph.groupLines(a)
		default:
			t.Steps = ph.steps(a, nil)
			if a.Placed > 0 {
				t.Because = []string{neededText(a)}
			}
		}
		out = append(out, t)
	}
	return out
}

// steps count the nodes of an attempt; those that are its own are left out.
func (ph Phrases) steps(a *engine.Attempt, own map[string]bool) []Step {
	var out []Step
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
		step := Step{Nodes: nodes, Plugin: t.Plugin, Reason: string(t.Reason)}
		if len(kept) > 0 {
			step.Words, step.Example = ph.words(&kept[0].Rejection, kept), ph.example(kept)
		} else {
			step.Words = spell(string(t.Reason))
		}
		out = append(out, step)
	}
	return out
}

// groupLines say of each group what is wrong with it.
func (ph Phrases) groupLines(a *engine.Attempt) []string {
	var out []string
	for _, g := range a.Groups {
		line := fmt.Sprintf("= %s  would do %s", g.Key, ph.onceText(a, &g))
		if x := g.Rejection; x != nil {
			line = fmt.Sprintf("− %s  %s  %s", g.Key, cmp.Or(x.Plugin, "engine"), ph.words(x, nil))
		}
		out = append(out, line)
	}
	return out
}

// formsText is a subtraction from all nodes to none for each form.
func (r *Report) formsText(w io.Writer) {
	const most = 6
	fmt.Fprintf(w, "Tried in this order, on %s:\n", numeral.Count(r.Nodes, "node"))
	for i, t := range r.Forms {
		if i == most {
			fmt.Fprintf(w, "  … and %s\n", numeral.Count(len(r.Forms)-most, "more form"))
			break
		}
		fmt.Fprintf(w, "  %s\n", t.Form)
		stepLines(w, "    ", t.Steps, len(strconv.Itoa(r.Nodes)))
		for _, line := range t.Because {
			wrapped(w, line, "    ", "      ")
		}
	}
}

// stepLines writes the steps one below the other.
func stepLines(w io.Writer, indent string, steps []Step, width int) {
	columns := 0
	for _, s := range steps {
		columns = max(columns, len(s.Plugin))
	}
	for _, s := range steps {
		fmt.Fprintf(w, "%s− %*d  %s  %s\n", indent, width, s.Nodes, pad(s.Plugin, columns), strings.TrimSpace(s.Words+" "+s.Example))
	}
}
