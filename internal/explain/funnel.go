package explain

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/wire"
)

// AddFunnel adds how many nodes each plugin rejected. Own are nodes on which other tasks of the
// same workload would be placed. They are not counted as rejected but apart, because they show
// how many of its tasks could be placed.
func (r *Report) AddFunnel(a *engine.Attempt, own map[string]bool, ph Phrases) {
	if r.Notes.Domains = domainLines(a); a.Level != "" {
		return // the counts are about one domain only, and the message has all that matters
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

// Brief returns in a few words why a job was refused, for a change that did not help.
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
