package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-project/berth/internal/numeral"
)

// textWidth is how wide reports are written; tables of numbers may be wider.
const textWidth = 80

// Wrap breaks a sentence into lines of the width, the first with its own indent.
func Wrap(w io.Writer, text, first, indent string, width int) {
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(w, line)
}

func wrapped(w io.Writer, text, first, indent string) { Wrap(w, text, first, indent, textWidth) }

// sentences writes each text that is not empty in lines of its own.
func sentences(w io.Writer, first string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			wrapped(w, text, first, "  ")
		}
	}
}

// ifOne is the first text for one thing, and the second for any other number of them.
func ifOne(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) {
	wrapped(w, r.Wants, "", "  ")
	r.endedText(w)
	sentences(w, "", r.torn)
	r.ranked(w)
	r.evicted(w)
	refused := "Refused"
	if len(r.Evicted) > 0 {
		refused = "Pending again"
	}
	switch {
	case r.retired:
		return
	case r.Refusal == nil:
		r.placed(w)
		switch n := len(r.Remarks); {
		case r.kept && n > 0:
			wrapped(w, r.Remarks[n-1], "", "  ")
		case r.Set == nil: // of a model they say what it takes
			sentences(w, "", r.Remarks...)
		}
		return
	case r.Refusal.Surplus:
		fmt.Fprintf(w, "Placed: %d of %s, which is enough. The rest is refused: %s. %s\n", len(r.Placements), numeral.Count(r.total, "task"), r.Refusal.Reason, r.waiting())
		r.displaced(w)
	default:
		fmt.Fprintf(w, "%s: %s. %s\n", refused, r.Refusal.Reason, r.waiting())
	}
	r.modelText(w)
	fmt.Fprintln(w)
	if len(r.Forms) > 0 {
		r.formsText(w)
	} else {
		r.funnelText(w)
		r.nearText(w)
	}
	if r.Offer != "" || r.Foreign != "" {
		fmt.Fprintln(w)
	}
	sentences(w, "", r.Offer, r.Foreign)
	if len(r.reasons) > 0 {
		fmt.Fprintln(w)
	}
	sentences(w, "", r.reasons...)
	r.trialsText(w)
}

// modelText is what there is to be said of a model beside its refusal.
func (r *Report) modelText(w io.Writer) {
	if s := r.Set; s != nil && s.Desired > 1 {
		fmt.Fprintf(w, "%d of %s of %s %s a place.\n", s.Placed, numeral.Count(s.Desired, "replica"), s.Name, ifOne(s.Placed, "has", "have"))
	}
	sentences(w, "", r.Remarks...)
}

func (r *Report) waiting() string {
	switch {
	case r.Refusal.Awaits > 0:
		return "It waits for " + numeral.Count(r.Refusal.Awaits, "node") + " to be made."
	case r.Refusal.Permanent:
		return "Waiting cannot help."
	}
	return "Waiting can help."
}

// funnelText is the subtraction from all nodes to none.
func (r *Report) funnelText(w io.Writer) {
	if len(r.Funnel) == 0 && len(r.Refusal.Groups) == 0 {
		wrapped(w, r.Refusal.Message, "  ", "  ")
		for i, line := range r.domains {
			if i > 0 { // the sentence is about the first
				fmt.Fprintf(w, "  %s\n", line)
			}
		}
		return
	}
	width := len(strconv.Itoa(r.Nodes))
	fmt.Fprintf(w, "  %s\n", numeral.Count(r.Nodes, "node"))
	stepLines(w, "  ", r.Funnel, width)
	left := r.Nodes
	for _, s := range r.Funnel {
		left -= s.Nodes
	}
	switch {
	case len(r.Refusal.Groups) > 0:
		fmt.Fprintf(w, "\n  whole nodes of one group are wanted; groups:\n")
		for _, line := range r.groups {
			fmt.Fprintf(w, "  %s\n", line)
		}
	case r.Own > 0:
		fmt.Fprintf(w, "  = %*d  %s %s of the %s tasks that must be placed together\n", width, left, ifOne(r.Own, "fits", "fit"), number(r.tasks), number(max(r.need, r.tasks+1)))
	default:
		fmt.Fprintf(w, "  = %*d  left\n", width, left)
	}
}

var numbers = []string{"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

func number(n int) string {
	if n < len(numbers) {
		return numbers[n]
	}
	return strconv.Itoa(n)
}

// nearText lists the nodes that came closest, where a number says how close.
func (r *Report) nearText(w io.Writer) {
	const most = 3
	var near []Miss
	for _, m := range r.Refusal.Nodes {
		// A node that has none of it is no near miss.
		if m.Want != "" && m.Have != "" && m.Have[0] != '0' && !r.own[m.Node] && len(near) < most {
			near = append(near, m)
		}
	}
	alike := !slices.ContainsFunc(near, func(m Miss) bool { return m.Plugin != near[0].Plugin || m.Have != near[0].Have })
	if alike || len(r.groups)+len(r.domains) > 0 { // the funnel names the best one already
		return
	}
	columns, plugins := 0, 0
	for _, m := range near {
		columns, plugins = max(columns, utf8.RuneCountInString(m.Node)), max(plugins, len(m.Plugin))
	}
	fmt.Fprintln(w, "\nNearest misses:")
	for _, m := range near {
		subject := ""
		if m.Subject != "" {
			subject = m.Subject + ": "
		}
		fmt.Fprintf(w, "  %s  %s  %swants %s, has %s\n", pad(m.Node, columns), pad(m.Plugin, plugins), subject, spaced(m.Want), spaced(m.Have))
	}
}

// spaced undoes the compact spelling of JSON.
func spaced(s string) string {
	i := strings.IndexFunc(s, func(c rune) bool { return c >= 'A' && c <= 'Z' })
	if i <= 0 || s[i-1] == ' ' {
		return s
	}
	return s[:i] + " " + s[i:]
}

func (r *Report) trialsText(w io.Writer) {
	if r.Conflict {
		fmt.Fprintln(w, "\nNothing would help, not even everything at once: the request conflicts with itself.")
	}
	if b := r.Beyond; b != nil {
		fmt.Fprintf(w, "\nNothing that can be tried would help, not even everything at once. %s of plugin %s would still be in the way; by its plugin it is cured by: %s.\n", b.Reason, b.Plugin, strings.ReplaceAll(b.Cure, "|", ", "))
	}
	if len(r.Trials) == 0 {
		return
	}
	fits := slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.Fits })
	switch {
	case fits:
		fmt.Fprintln(w, "\nIt would fit (each was tried):")
	default:
		fmt.Fprintln(w, "\nIt would still not fit (each was tried):")
	}
	for _, t := range r.Trials {
		if t.Fits {
			text := t.Change
			if len(t.Evicts) > 0 {
				text += "; " + List(t.Evicts, 3) + " would then be evicted"
			}
			wrapped(w, text, "  ✓ ", "    ")
		} else {
			wrapped(w, t.Change+": "+t.Because, "  ✗ ", "    ")
		}
	}
}

// placed says where the tasks are and why there.
func (r *Report) placed(w io.Writer) {
	as := ""
	if r.Form != "" {
		as = " as " + r.Form
	}
	running, fresh := 0, 0
	for _, p := range r.Placements {
		if p.Running {
			running++
		} else {
			fresh++
		}
	}
	switch {
	case fresh == 0:
		fmt.Fprintf(w, "Running%s: %s.\n", as, share(running, r.total))
	case running == 0 && len(r.Evicted) > 0:
		fmt.Fprintf(w, "Placed again%s: %s.\n", as, share(fresh, r.total))
	case running == 0:
		fmt.Fprintf(w, "Placed%s: %s.\n", as, share(fresh, r.total))
	default:
		fmt.Fprintf(w, "Placed: %d of %s; %d ran already.\n", fresh, numeral.Count(r.total, "task"), running)
	}
	if r.Group != nil {
		r.Group.text(w)
	}
	r.displaced(w)
	const most = 8
	for i, p := range r.Placements {
		if i == most {
			fmt.Fprintf(w, "\n  … and %s\n", numeral.Count(len(r.Placements)-most, "more task"))
			break
		}
		p.text(w)
	}
}

// share says how many of so many tasks: "its one task", "both tasks", "1 of 3 tasks".
func share(n, total int) string {
	switch {
	case n == total && n == 1:
		return "its one task"
	case n == total && n == 2:
		return "both tasks"
	case n == total:
		return fmt.Sprintf("all %d tasks", n)
	}
	return fmt.Sprintf("%d of %s", n, numeral.Count(total, "task"))
}

// podTask is what a pod's only task is called, which tells nobody anything.
const podTask = "0"

func (p *Placement) text(w io.Writer) {
	where := "on " + p.Node
	if len(p.Devices) > 0 {
		where += ", " + numeral.Noun(len(p.Devices), "device") + " " + Indexes(p.Devices)
	}
	switch {
	case p.Promised && len(p.WaitsFor) > 0:
		where += " (promised: held for it until " + List(p.WaitsFor, 3) + ifOne(len(p.WaitsFor), " has", " have") + " left)"
	case p.Promised:
		where += " (promised: held for it until the rest has its room)"
	case p.Leaving:
		where += " (it was told to stop and is leaving)"
	case p.Running:
		where += " (it ran there before)"
	}
	if p.Task == podTask {
		fmt.Fprintf(w, "\n  %s\n", where)
	} else {
		fmt.Fprintf(w, "\n  %s  %s\n", p.Task, where)
	}
	if p.Score == nil {
		return
	}
	wrapped(w, fmt.Sprintf("score %s: %s", decimal(*p.Score, 1), Scores(p.Scores)), "    ", "      ")
	switch {
	case p.RunnerUp == nil:
		fmt.Fprintln(w, "    no other node would have taken it")
	default:
		wrapped(w, fmt.Sprintf("runner-up of %s: %s with %s, %s", numeral.Count(p.Others, "other node"), p.RunnerUp.Node, decimal(p.RunnerUp.Score, 1), against(p.RunnerUp.Scores, p.Scores, "the first by name wins")), "    ", "      ")
	}
}

// against names the parts in which one score differs from another; tie says what
// decides where they are equal.
func against(scores, winner map[string]float64, tie string) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(scores)) {
		if scores[n] != winner[n] {
			out = append(out, fmt.Sprintf("%s %s against %s", n, decimal(scores[n], 1), decimal(winner[n], 1)))
		}
	}
	if len(out) == 0 {
		return "which is equal; " + tie
	}
	return strings.Join(out, ", ")
}

// Scores lists the parts of a score, highest first.
func Scores(scores map[string]float64) string {
	names := slices.Sorted(maps.Keys(scores))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })
	return strings.Join(mapped(names, func(n string) string { return n + " " + decimal(scores[n], 1) }), ", ")
}

// Indexes lists sorted numbers with runs drawn together: "0–3,6".
func Indexes(list []int) string {
	var out []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			out = append(out, fmt.Sprintf("%d–%d", list[i], list[j]))
		case j > i:
			out = append(out, strconv.Itoa(list[i]), strconv.Itoa(list[j]))
		default:
			out = append(out, strconv.Itoa(list[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}
