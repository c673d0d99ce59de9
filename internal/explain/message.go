package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/wire"
)

// noGroup begins the message of the refusal of a job that takes whole nodes. It is API.
const noGroup = "No suitable node group found: insufficient capacity or no matching configurations after filtering."

// permanentText ends the message of a permanent refusal.
const permanentText = "waiting cannot help"

// AwaitedNodes maps the name of a set to the number of nodes that a provisioner is asked to create
// for it.
type AwaitedNodes map[string]int

// AwaitNodes changes a permanent refusal if nodes are going to be created for the workload: the
// refusal is then not permanent, and the message says that the workload waits for the nodes.
func AwaitNodes(r *wire.Refusal, nodes int) {
	if !r.Permanent || nodes == 0 {
		return
	}
	r.AwaitedNodes, r.Permanent = nodes, false
	r.Cure = append([]string{engine.Wait.String()}, r.Cure...)
	r.Message = strings.TrimSuffix(r.Message, permanentText) + "it waits for " + english.Count(nodes, "node") + " to be made"
}

// Message returns in one line why the job was refused, with numbers:
//
//	0/120 nodes: 80 GPUMemoryInUse (want 38 GiB, most free 22 GiB), 40 LabelMismatch (gpu=h100); waiting can help
func (ph Phrases) Message(r *engine.Refusal) string {
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
		b.WriteString("; " + permanentText)
	case r.Settled:
		b.WriteString("; " + settledText(r))
	default:
		b.WriteString("; waiting can help")
	}
	return b.String()
}

// settledText returns what must happen before the job can be placed, if no running job has a
// run time after which it ends by itself.
func settledText(r *engine.Refusal) string {
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
		text += fmt.Sprintf("%s: %s", a.Before.Reason, ph.rejectionText(a.Before, nil))
	case a.Nodes == 0:
		text += "there are no nodes"
	case a.Whole:
		text += string(wire.GroupReason(a)) + ": " + ph.groupsText(a)
	default:
		text += fmt.Sprintf("0/%d nodes: %s", a.Nodes, ph.talliesText(a))
	}
	if x := a.Apart; x != nil {
		text += "; " + apartText(x.Level, x.Needed, x.Most)
	}
	return text
}

// talliesText returns the number of nodes by reason, the highest first.
func (ph Phrases) talliesText(a *engine.Attempt) string {
	tallies := slices.Clone(a.Counts)
	slices.SortStableFunc(tallies, func(x, y engine.Tally) int { return cmp.Compare(y.Nodes, x.Nodes) })
	var out []string
	for i := range tallies {
		t := &tallies[i]
		s := fmt.Sprintf("%d %s", t.Nodes, t.Reason)
		if d := ph.detailText(missesOf(a, t)); d != "" {
			s += " (" + d + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// missesOf returns the nodes that the tally counts, the nearest first. The engine may have kept
// only some of them.
func missesOf(a *engine.Attempt, t *engine.Tally) []*engine.Miss {
	var out []*engine.Miss
	for i := range a.Nearest {
		if r := &a.Nearest[i].Rejection; r.Plugin == t.Plugin && r.Reason == t.Reason && r.Cure == t.Cure {
			out = append(out, &a.Nearest[i])
		}
	}
	return out
}

// detailText returns what a message has in parentheses: the subjects of the misses, and the
// amounts of the nearest miss.
func (ph Phrases) detailText(misses []*engine.Miss) string {
	if len(misses) == 0 {
		return ""
	}
	best := &misses[0].Rejection
	if ph.aboutHasAmount(best) {
		return misses[0].Node + ": " + ph.rejectionText(best, misses)
	}
	text := subjects(misses)
	// If the phrase of the reason has no amount, the amounts do not matter.
	phrase := ph[best.Reason].Phrase
	if best.Want.Unit == engine.NoUnit || phrase != "" && !strings.Contains(phrase, "{want}") {
		return text
	}
	if text != "" {
		text += ": "
	}
	want, have := amounts(best)
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

// subjects returns the subjects of the misses, the most frequent first.
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
	return listInOrder(names, 3)
}

// fitsWhenText returns when a node group would fit that could fit the job but does not now.
func (ph Phrases) fitsWhenText(a *engine.Attempt, g *engine.GroupMiss) string {
	if t := a.Unheld(); t != nil {
		text := "once more of its " + english.Count(g.Nodes, "node") + " can be used"
		if misses := missesOf(a, t); len(misses) > 0 {
			text += " (" + ph.rejectionText(&misses[0].Rejection, misses) + ")"
		}
		return text
	}
	switch {
	case g.Nodes == 1:
		return "with its node free"
	case a.Min > 0 && a.Min <= g.Nodes:
		return fmt.Sprintf("with %d of its %d nodes free", a.Min, g.Nodes)
	}
	return "with more of its " + english.Count(g.Nodes, "node") + " free"
}

// groupsText returns what each filter rejected: nodes first, then node groups.
func (ph Phrases) groupsText(a *engine.Attempt) string {
	var out []string
	for i := range a.Counts {
		t := &a.Counts[i]
		if t.Cure.Transient() {
			continue // nodes that are rejected for now count as members of their group
		}
		s := fmt.Sprintf("%s removed %s (%s", t.Plugin, english.Count(t.Nodes, "node"), t.Reason)
		if d := ph.detailText(missesOf(a, t)); d != "" {
			s += ": " + d
		}
		out = append(out, s+")")
	}
	for _, g := range a.Groups {
		if x := g.Rejection; x != nil && x.Plugin == "" {
			out = append(out, fmt.Sprintf("%s: %s", g.Key, ph.rejectionText(x, nil)))
		} else if x != nil {
			out = append(out, fmt.Sprintf("%s removed %s (%s: %s)", x.Plugin, g.Key, x.Reason, ph.rejectionText(x, nil)))
		} else {
			out = append(out, fmt.Sprintf("%s would fit %s", g.Key, ph.fitsWhenText(a, &g)))
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
