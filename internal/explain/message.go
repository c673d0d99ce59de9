package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// noGroup is the sentence that a refusal of a job of whole nodes begins with. It is API.
const noGroup = "No suitable node group found: insufficient capacity or no matching configurations after filtering."

// hopeless ends the message of a refusal that only a change can cure.
const hopeless = "waiting cannot help"

// Awaits is how many nodes are to be made for the workloads of a set, by its name.
type Awaits map[string]int

// Refusal is what is said of a workload that was turned down; State has its set, and
// the set may await nodes.
func (ph Phrases) Refusal(state *cluster.State, a Awaits, r *engine.Refusal, all bool) Refusal {
	out := ph.refusal(r, all)
	if j := state.Job(r.Job); j != nil {
		out.Await(a[j.Set.Name])
	}
	return out
}

// Await takes in that so many nodes are to be made for the workload: then it waits
// for them, whatever those that are there would do.
func (r *Refusal) Await(nodes int) {
	if !r.Permanent || nodes == 0 {
		return
	}
	r.Awaits, r.Permanent = nodes, false
	r.Cure = append([]string{engine.Wait.String()}, r.Cure...)
	r.Message = strings.TrimSuffix(r.Message, hopeless) + "it waits for " + numeral.Count(nodes, "node") + " to be made"
}

// message says in one line why the job was refused, with numbers:
//
//	0/120 nodes: 80 GPUMemoryInUse (want 38 GiB, most free 22 GiB), 40 LabelMismatch (gpu=h100); waiting can help
func (ph Phrases) message(r *engine.Refusal) string {
	var b strings.Builder
	if r.Surplus {
		b.WriteString("the minimum is placed, the rest is not; ")
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if i > 0 {
			b.WriteString("; ")
		}
		if len(r.Attempts) > 1 {
			fmt.Fprintf(&b, "as %s: ", alternativeName(a, i))
		}
		b.WriteString(ph.attemptText(a, r.Reason, r.Surplus))
	}
	switch {
	case r.Permanent:
		b.WriteString("; " + hopeless)
	case r.Settled:
		b.WriteString("; " + settled(r))
	default:
		b.WriteString("; waiting can help")
	}
	return b.String()
}

// settled says what would have to happen where time alone does not help.
func settled(r *engine.Refusal) string {
	text := "nothing that runs has a run time, so it stays pending until a workload ends or is evicted"
	if slices.ContainsFunc(r.Attempts, func(a engine.Attempt) bool { return a.Before == nil }) {
		text += ", or nodes are added"
	}
	return text
}

func alternativeName(a *engine.Attempt, i int) string {
	if a.Alternative != "" {
		return a.Alternative
	}
	return "alternative " + strconv.Itoa(i+1)
}

func (ph Phrases) attemptText(a *engine.Attempt, reason engine.Reason, surplus bool) string {
	if reason == engine.NoSuitableGroup && a.Whole {
		return noGroup + " " + ph.groupsText(a)
	}
	text := ""
	if !surplus && (a.Min > 1 || a.Placed > 0) {
		text = neededText(a) + "; "
	}
	switch {
	case a.Level != "":
		return string(engine.NoDomainFits) + ": " + domainsText(a)
	case a.Before != nil:
		text += fmt.Sprintf("%s: %s", a.Before.Reason, ph.words(a.Before, nil))
	case a.Nodes == 0:
		text += "there are no nodes"
	case a.Whole:
		text += string(groupReason(a)) + ": " + ph.groupsText(a)
	default:
		text += fmt.Sprintf("0/%d nodes: %s", a.Nodes, ph.talliesText(a))
	}
	return text
}

// talliesText counts the nodes by reason, most first.
func (ph Phrases) talliesText(a *engine.Attempt) string {
	tallies := slices.Clone(a.Counts)
	slices.SortStableFunc(tallies, func(x, y engine.Tally) int { return cmp.Compare(y.Nodes, x.Nodes) })
	var out []string
	for i := range tallies {
		t := &tallies[i]
		s := fmt.Sprintf("%d %s", t.Nodes, t.Reason)
		if d := ph.detail(missesOf(a, t)); d != "" {
			s += " (" + d + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// missesOf are the misses that the tally counted, nearest first, as far as they were kept.
func missesOf(a *engine.Attempt, t *engine.Tally) []*engine.Miss {
	var out []*engine.Miss
	for i := range a.Nearest {
		if r := &a.Nearest[i].Rejection; r.Plugin == t.Plugin && r.Reason == t.Reason && r.Cure == t.Cure {
			out = append(out, &a.Nearest[i])
		}
	}
	return out
}

// detail is what is between the parentheses: the subject, and the numbers of the nearest miss.
func (ph Phrases) detail(misses []*engine.Miss) string {
	if len(misses) == 0 {
		return ""
	}
	best := &misses[0].Rejection
	text := subjects(misses)
	// What is not a matter of how much needs no numbers.
	phrase := ph[best.Reason].Phrase
	if best.Want.Unit == engine.NoUnit || phrase != "" && !strings.Contains(phrase, "{want}") {
		return text
	}
	if text != "" {
		text += ": "
	}
	want, have := pair(best.Want, best.Have)
	text += "want " + want
	switch {
	case best.Have.Unit == engine.NoUnit:
	case best.Cure.Transient():
		text += ", most free " + have
	default:
		text += ", most " + have
	}
	return text
}

// subjects names what the misses are about, most frequent first.
func subjects(misses []*engine.Miss) string {
	times := map[string]int{}
	var names []string
	for _, m := range misses {
		if s := m.Rejection.Subject; s != "" {
			if times[s]++; times[s] == 1 {
				names = append(names, s)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(times[b], times[a]) })
	return List(names, 3)
}

// onceText says when a group would do.
func (ph Phrases) onceText(a *engine.Attempt, g *engine.GroupMiss) string {
	if t := a.Unheld(); t != nil {
		text := "once more of its " + numeral.Count(g.Nodes, "node") + " can be used"
		if misses := missesOf(a, t); len(misses) > 0 {
			text += " (" + ph.words(&misses[0].Rejection, misses) + ")"
		}
		return text
	}
	return "with more of its " + numeral.Count(g.Nodes, "node") + " free"
}

// groupReason is what is wrong with the groups as a whole: what waiting can cure
// before what it cannot.
func groupReason(a *engine.Attempt) engine.Reason {
	reason := engine.NoSuitableGroup
	for _, g := range a.Groups {
		if t := a.Unheld(); g.Rejection == nil && t != nil {
			return t.Reason
		} else if g.Rejection == nil {
			return engine.GroupInUse
		}
		if reason == engine.NoSuitableGroup && g.Rejection.Cure.Transient() {
			reason = g.Rejection.Reason
		}
	}
	return reason
}

// groupsText says what each filter removed: nodes first, then groups.
func (ph Phrases) groupsText(a *engine.Attempt) string {
	var out []string
	for i := range a.Counts {
		t := &a.Counts[i]
		if t.Cure.Transient() {
			continue // such nodes still count for what could ever fit
		}
		s := fmt.Sprintf("%s removed %s (%s", t.Plugin, numeral.Count(t.Nodes, "node"), t.Reason)
		if d := ph.detail(missesOf(a, t)); d != "" {
			s += ": " + d
		}
		out = append(out, s+")")
	}
	for _, g := range a.Groups {
		if x := g.Rejection; x != nil && x.Plugin == "" {
			out = append(out, fmt.Sprintf("%s: %s", g.Key, ph.words(x, nil)))
		} else if x != nil {
			out = append(out, fmt.Sprintf("%s removed %s (%s: %s)", x.Plugin, g.Key, x.Reason, ph.words(x, nil)))
		} else {
			out = append(out, fmt.Sprintf("%s would do %s", g.Key, ph.onceText(a, &g)))
		}
	}
	if a.Nodes == 0 {
		return "there are no nodes"
	}
	if len(a.Groups) == 0 {
		out = append(out, "there is no node with devices")
	}
	return strings.Join(out, "; ")
}
