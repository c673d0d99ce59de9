package explain

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/wire"
)

// AddFunnel adds how many nodes each plugin rejected. Own are the nodes that only the
// workload's own other tasks fill: they are counted apart, because they show how near
// the workload came to being placed.
func (r *Report) AddFunnel(a *engine.Attempt, own map[string]bool, ph Phrases) {
	if r.Notes.Domains = domainLines(a); a.Level != "" {
		return // its counts are about one domain, and the sentence says it all
	}
	r.Notes.OwnNodes = own
	for i := range a.Counts {
		for _, m := range missesOf(a, &a.Counts[i]) {
			if own[m.Node] {
				r.OwnNodes++
			}
		}
	}
	r.Funnel = ph.steps(a, own)
	r.Notes.Placed, r.Notes.Min = a.Placed, a.Min
	r.Notes.Groups = ph.groupLines(a)
}

// Brief says in a few words why a job was refused, for a change that did not help.
func (ph Phrases) Brief(r *engine.Refusal) string {
	a := wire.MainAttempt(r)
	text := ""
	if a.Level != "" {
		return domainsText(a)
	}
	if a.Placed > 0 && !r.Surplus {
		text = fmt.Sprintf("only %d of %d can be placed; ", a.Placed, a.Min)
	}
	if a.Before != nil {
		return text + ph.rejectionText(a.Before, nil)
	}
	for _, g := range a.Groups {
		if g.Rejection != nil {
			return text + g.Key.String() + ": " + ph.rejectionText(g.Rejection, nil)
		}
	}
	for i := range a.Counts {
		if t := &a.Counts[i]; t.Reason == r.Reason || a.Whole && len(a.Groups) == 0 {
			if misses := missesOf(a, t); len(misses) > 0 {
				return text + strings.TrimSpace(ph.rejectionText(&misses[0].Rejection, misses)+" "+ph.exampleText(misses))
			}
		}
	}
	if phrase := ph[r.Reason].Phrase; phrase != "" && !strings.Contains(phrase, "{") {
		return text + phrase
	}
	return text + splitWords(string(r.Reason))
}
