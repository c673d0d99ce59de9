package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
)

// mostGrounds is how many different grounds are given for the victims of one plan.
const mostGrounds = 3

// evicted says for which workload it was evicted, and why.
func (r *Report) evicted(w io.Writer) {
	for i := range r.Notes.Evicted {
		e := &r.Notes.Evicted[i]
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

// why writes which other plans were possible.
func (e *Eviction) why(w io.Writer, choice string) {
	const most = 3
	sentences(w, "  ", choice)
	if e.plan == nil {
		return
	}
	lines := options(e.plan)
	sentences(w, "  ", lines[:min(len(lines), most)]...)
	if e.protected != "" {
		wrapped(w, "Protected from "+protections[e.plan.Purpose]+": "+e.protected+".", "  ", "  ")
	}
}

// protections complete "Protected from …".
var protections = map[engine.Purpose]string{engine.Reclaim: "reclaim", engine.Preempt: "preemption", engine.Move: "moves"}

// displaced says which workloads were evicted for it, plan by plan.
func (r *Report) displaced(w io.Writer) {
	for i := 0; i < len(r.Notes.Displaced); {
		e := &r.Notes.Displaced[i]
		n := i
		var victims, because []string
		for ; n < len(r.Notes.Displaced) && r.Notes.Displaced[n].plan == e.plan && r.Notes.Displaced[n].Reason == e.Reason; n++ {
			o := &r.Notes.Displaced[n]
			text := o.Workload + " from " + List(o.Nodes, 2)
			if len(o.Tasks) < o.total {
				text = fmt.Sprintf("%s of %s from %s", english.Count(len(o.Tasks), "task"), o.Workload, List(o.Nodes, 2))
			}
			if len(o.Landing) > 0 {
				text += " to " + List(o.Landing, 2)
			}
			victims = append(victims, text)
			if !slices.Contains(because, o.Because) && len(because) < mostGrounds {
				because = append(because, o.Because)
			}
		}
		verb := "Evicted"
		if len(e.Landing) > 0 {
			verb = "Moved"
		}
		wrapped(w, fmt.Sprintf("%s for it: %s (%s).", verb, List(victims, 4), e.Reason), "", "  ")
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
