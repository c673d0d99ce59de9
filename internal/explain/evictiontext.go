package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
)

// mostRuleTexts is how many different rules are written for the victims of one plan.
const mostRuleTexts = 3

// evictedText writes for which workloads the workload was evicted or moved, and why.
func (r *Report) evictedText(w io.Writer) {
	for i := range r.Notes.Evicted {
		e := &r.Notes.Evicted[i]
		verb, to := "Evicted", ""
		if len(e.Landing) > 0 {
			verb, to = "Moved", " to "+List(e.Landing, 4)
		}
		text := fmt.Sprintf("%s: %s from %s%s", verb, tasksText(len(e.Tasks), e.jobTasks), List(e.Nodes, 4), to)
		if e.For != "" {
			text += ", for " + e.For
		}
		wrapped(w, text+" ("+e.Reason+").", "", "  ")
		wrapped(w, capitalized(e.Because)+".", "  ", "  ")
		e.otherPlansText(w, e.Choice)
	}
}

// otherPlansText writes why this workload was chosen (choice), on which other nodes room could
// have been made, and which workloads were protected.
func (e *Eviction) otherPlansText(w io.Writer, choice string) {
	const most = 3
	sentences(w, "  ", choice)
	if e.plan == nil {
		return
	}
	lines := otherNodesText(e.plan)
	sentences(w, "  ", lines[:min(len(lines), most)]...)
	if e.protected != "" {
		wrapped(w, "Protected from "+protections[e.plan.Purpose]+": "+e.protected+".", "  ", "  ")
	}
}

// protections complete "Protected from …".
var protections = map[engine.Purpose]string{engine.Reclaim: "reclaim", engine.Preempt: "preemption", engine.Move: "moves"}

// displacedText writes which workloads were evicted or moved for the workload, plan by plan.
func (r *Report) displacedText(w io.Writer) {
	for i := 0; i < len(r.Notes.Displaced); {
		e := &r.Notes.Displaced[i]
		n := i
		var victims, because []string
		for ; n < len(r.Notes.Displaced) && r.Notes.Displaced[n].plan == e.plan && r.Notes.Displaced[n].Reason == e.Reason; n++ {
			o := &r.Notes.Displaced[n]
			text := o.Workload + " from " + List(o.Nodes, 2)
			if len(o.Tasks) < o.jobTasks {
				text = fmt.Sprintf("%s of %s from %s", english.Count(len(o.Tasks), "task"), o.Workload, List(o.Nodes, 2))
			}
			if len(o.Landing) > 0 {
				text += " to " + List(o.Landing, 2)
			}
			victims = append(victims, text)
			if !slices.Contains(because, o.Because) && len(because) < mostRuleTexts {
				because = append(because, o.Because)
			}
		}
		verb := "Evicted"
		if len(e.Landing) > 0 {
			verb = "Moved"
		}
		wrapped(w, fmt.Sprintf("%s for it: %s (%s).", verb, List(victims, 4), e.Reason), "", "  ")
		for _, text := range because {
			wrapped(w, capitalized(text)+".", "  ", "  ")
		}
		choice := ""
		if n == i+1 && len(e.together) == 0 {
			choice = strings.Replace(e.Choice, ", it is ", ", "+e.Workload+" is ", 1)
		}
		e.otherPlansText(w, choice)
		i = n
	}
}
