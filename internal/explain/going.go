package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/numeral"
)

// mostGrounds is for how many of those who go together it is said why they may.
const mostGrounds = 3

// evicted says for whom it had to go, and why it.
func (r *Report) evicted(w io.Writer) {
	for i := range r.Evicted {
		e := &r.Evicted[i]
		verb, to := "Evicted", ""
		if len(e.Landing) > 0 {
			verb, to = "Moved", " to "+List(e.Landing, 4)
		}
		text := fmt.Sprintf("%s: %s from %s%s", verb, share(len(e.Tasks), e.total), List(e.Nodes, 4), to)
		if e.For != "" {
			text += ", for " + e.For
		}
		wrapped(w, text+" ("+e.Reason+").", "", "  ")
		wrapped(w, upper(e.Because)+".", "  ", "  ")
		e.why(w, e.Choice)
	}
}

// why writes what was weighed before it was done.
func (e *Eviction) why(w io.Writer, choice string) {
	const most = 3
	sentences(w, "  ", choice)
	if e.Weighed == nil {
		return
	}
	sentences(w, "  ", e.Weighed.lines[:min(len(e.Weighed.lines), most)]...)
	if e.spared != "" {
		wrapped(w, "Spared: "+e.spared+".", "  ", "  ")
	}
}

// displaced says who had to go for it, plan by plan.
func (r *Report) displaced(w io.Writer) {
	for i := 0; i < len(r.Displaced); {
		e := &r.Displaced[i]
		n := i
		var who, because []string
		for ; n < len(r.Displaced) && r.Displaced[n].plan == e.plan && r.Displaced[n].Reason == e.Reason; n++ {
			o := &r.Displaced[n]
			text := o.Workload + " from " + List(o.Nodes, 2)
			if len(o.Tasks) < o.total {
				text = fmt.Sprintf("%s of %s from %s", numeral.Count(len(o.Tasks), "task"), o.Workload, List(o.Nodes, 2))
			}
			if len(o.Landing) > 0 {
				text += " to " + List(o.Landing, 2)
			}
			who = append(who, text)
			if !slices.Contains(because, o.Because) && len(because) < mostGrounds {
				because = append(because, o.Because)
			}
		}
		verb := "Evicted"
		if len(e.Landing) > 0 {
			verb = "Moved"
		}
		wrapped(w, fmt.Sprintf("%s for it: %s (%s).", verb, List(who, 4), e.Reason), "", "  ")
		for _, text := range because {
			wrapped(w, upper(text)+".", "  ", "  ")
		}
		choice := ""
		if n == i+1 && len(e.also) == 0 {
			choice = strings.Replace(e.Choice, ", it is ", ", "+e.Workload+" is ", 1)
		}
		e.why(w, choice)
		i = n
	}
}
