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

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// Text writes the report for people.
func (r *Report) Text(w io.Writer) {
	wrapped(w, r.Request, "", "  ")
	r.endedText(w)
	sentences(w, "", r.Notes.BelowMinimum)
	r.rankedText(w)
	r.evictedText(w)
	refused := "Refused"
	if len(r.Evicted) > 0 {
		refused = "Pending again"
	}
	switch {
	case r.Notes.Retired:
		return
	case r.Refusal == nil:
		r.placedText(w)
		switch n := len(r.Remarks); {
		case r.Notes.KeptForm && n > 0:
			wrapped(w, r.Remarks[n-1], "", "  ")
		case r.Set == nil:
			sentences(w, "", r.Remarks...)
		default: // the other remarks of a model are about its forms, and do not matter once it is placed
			sentences(w, "", slices.DeleteFunc(slices.Clone(r.Remarks), func(s string) bool { return !strings.HasPrefix(s, cluster.Note) })...)
		}
		return
	case r.Refusal.Surplus:
		fmt.Fprintf(w, "Placed: %d of %s, which is enough. The rest is refused: %s. %s\n", len(r.Placements), english.Count(r.Notes.Tasks, "task"), r.Refusal.Reason, r.waitingText())
		r.displacedText(w)
	default:
		wrapped(w, fmt.Sprintf("%s: %s. %s", refused, r.Refusal.Reason, r.waitingText()), "", "  ")
	}
	r.modelText(w)
	fmt.Fprintln(w)
	if len(r.Forms) > 0 {
		r.formsText(w)
	} else {
		r.funnelText(w)
		r.nearText(w)
	}
	if r.FreeMemory != "" || r.Foreign != "" {
		fmt.Fprintln(w)
	}
	sentences(w, "", r.FreeMemory, r.Foreign)
	if len(r.Notes.Reasons) > 0 {
		fmt.Fprintln(w)
	}
	sentences(w, "", r.Notes.Reasons...)
	if list := r.earmarkText(); len(list) > 0 {
		fmt.Fprintln(w)
		sentences(w, "", list...)
	}
	r.trialsText(w)
}

// modelText writes how many replicas of a model are placed, and its remarks.
func (r *Report) modelText(w io.Writer) {
	if s := r.Set; s != nil && s.Desired > 1 {
		fmt.Fprintf(w, "%d of %s of %s %s placed.\n", s.Placed, english.Count(s.Desired, "replica"), s.Name, ifOne(s.Placed, "is", "are"))
	}
	sentences(w, "", r.Remarks...)
}

func (r *Report) waitingText() string {
	switch {
	case r.Refusal.AwaitedNodes > 0:
		return "It waits for " + english.Count(r.Refusal.AwaitedNodes, "node") + " to be made."
	case r.Refusal.Permanent && r.Refusal.TooFewDomains != nil:
		x := r.Refusal.TooFewDomains
		return "Waiting cannot help: " + apartText(x.Level, x.Needed, x.Most) + "."
	case r.Refusal.Permanent:
		return "Waiting cannot help."
	}
	return "Waiting can help."
}

// funnelText writes how many nodes there are, how many each plugin rejected, and how many are
// left.
func (r *Report) funnelText(w io.Writer) {
	if len(r.Funnel) == 0 && len(r.Refusal.Groups) == 0 {
		wrapped(w, r.Refusal.Message, "  ", "  ")
		for i, line := range r.Notes.Domains {
			if i > 0 { // the message is about the first domain
				fmt.Fprintf(w, "  %s\n", line)
			}
		}
		return
	}
	width := len(strconv.Itoa(r.Nodes))
	fmt.Fprintf(w, "  %s\n", english.Count(r.Nodes, "node"))
	stepLines(w, "  ", r.Funnel, width)
	left := r.Nodes
	for _, s := range r.Funnel {
		left -= s.Nodes
	}
	switch {
	case len(r.Refusal.Groups) > 0:
		fmt.Fprintf(w, "\n  whole nodes of one group are requested; groups:\n")
		for _, line := range r.Notes.Groups {
			fmt.Fprintf(w, "  %s\n", line)
		}
	case r.OwnNodes > 0:
		fmt.Fprintf(w, "  = %*d  %s %s of the %s tasks that must be placed together\n", width, left, ifOne(r.OwnNodes, "fits", "fit"), numeral(r.Notes.Placed), numeral(max(r.Notes.Min, r.Notes.Placed+1)))
	default:
		fmt.Fprintf(w, "  = %*d  left\n", width, left)
	}
}

var numbers = []string{"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

func numeral(n int) string {
	if n < len(numbers) {
		return numbers[n]
	}
	return strconv.Itoa(n)
}

// nearText writes the nodes that nearly fit, with the amounts that they lack. It writes nothing
// if all of them have the same amount, because the funnel names the best node already.
func (r *Report) nearText(w io.Writer) {
	const most = 3
	var near []wire.Miss
	nodes := NaturalRuns(r.Refusal.Nodes, func(m *wire.Miss) string { return m.Node }, func(a, b *wire.Miss) bool {
		return a.Plugin == b.Plugin && a.Reason == b.Reason && a.Want == b.Want && a.Have == b.Have
	})
	for _, m := range nodes {
		// A node that has nothing of what is requested does not nearly fit.
		if m.Want != "" && m.Have != "" && m.Have[0] != '0' && !r.Notes.OwnNodes[m.Node] && len(near) < most {
			near = append(near, m)
		}
	}
	alike := !slices.ContainsFunc(near, func(m wire.Miss) bool { return m.Plugin != near[0].Plugin || m.Have != near[0].Have })
	if alike || len(r.Notes.Groups)+len(r.Notes.Domains) > 0 {
		return
	}
	columns, plugins := 0, 0
	for _, m := range near {
		columns, plugins = max(columns, utf8.RuneCountInString(m.Node)), max(plugins, len(m.Plugin))
	}
	fmt.Fprintln(w, "\nNearest misses:")
	for _, m := range near {
		subject, want, have := "", m.Want, m.Have
		if m.WantMemory != "" {
			want, have = m.WantMemory, m.HaveMemory
		} else if m.Subject != "" {
			subject = m.Subject + ": "
		}
		fmt.Fprintf(w, "  %s  %s  %srequested %s, has %s\n", pad(m.Node, columns), pad(m.Plugin, plugins), subject, spaced(want), spaced(have))
	}
}

// spaced inserts a space before the unit, which an amount in JSON does not have: "38 GiB".
func spaced(s string) string {
	i := strings.IndexFunc(s, func(c rune) bool { return c >= 'A' && c <= 'Z' })
	if i <= 0 || s[i-1] == ' ' {
		return s
	}
	return s[:i] + " " + s[i:]
}

func (r *Report) trialsText(w io.Writer) {
	if r.Conflict {
		fmt.Fprintln(w, "\nNothing would help, not even all changes together: the request contradicts itself.")
	}
	if b := r.Remaining; b != nil {
		fmt.Fprintf(w, "\nNothing that can be tried would help, not even all changes together: %s of plugin %s is left. According to the plugin it is cured by: %s.\n", b.Reason, b.Plugin, strings.ReplaceAll(b.Cure, "|", ", "))
	}
	if len(r.Trials) == 0 {
		return
	}
	fits := slices.ContainsFunc(r.Trials, func(t wire.Trial) bool { return t.Fits })
	switch {
	case fits:
		fmt.Fprintln(w, "\nIt would fit (each change was tried):")
	default:
		fmt.Fprintln(w, "\nIt would still not fit (each change was tried):")
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
	if len(r.Untried) > 0 {
		wrapped(w, fmt.Sprintf("Only %s were tried. Not tried, or only in part: %s.", english.Count(r.TriedChanges, "change"), List(r.Untried, len(r.Untried))), "  ", "  ")
	}
}

// placedText writes on which nodes the tasks are, and why.
func (r *Report) placedText(w io.Writer) {
	form := ""
	if r.Form != "" {
		form = " Form: " + r.Form + "."
	}
	running, fresh := 0, 0
	for _, p := range r.Placements {
		if p.RanBefore {
			running++
		} else {
			fresh++
		}
	}
	switch {
	case fresh == 0 && running == 0:
		fmt.Fprintln(w, "No task of it is placed.")
	case fresh == 0:
		fmt.Fprintf(w, "Running: %s.%s\n", tasksText(running, r.Notes.Tasks), form)
	case running == 0 && len(r.Evicted) > 0:
		fmt.Fprintf(w, "Placed again: %s.%s\n", tasksText(fresh, r.Notes.Tasks), form)
	case running == 0:
		fmt.Fprintf(w, "Placed: %s.%s\n", tasksText(fresh, r.Notes.Tasks), form)
	default:
		fmt.Fprintf(w, "Placed: %d of %s; %d ran already.\n", fresh, english.Count(r.Notes.Tasks, "task"), running)
	}
	if r.Group != nil {
		r.groupText(w)
	}
	r.displacedText(w)
	const most = 8
	for i, p := range NaturalOrder(r.Placements, func(p *wire.Placement) string { return p.Task }) {
		if i == most {
			fmt.Fprintf(w, "\n  … and %s\n", english.Count(len(r.Placements)-most, "more task"))
			break
		}
		placementText(w, &p)
	}
}

// tasksText returns "its one task", "both tasks", "all 3 tasks" or "1 of 3 tasks".
func tasksText(n, total int) string {
	switch {
	case n == total && n == 1:
		return "its one task"
	case n == total && n == 2:
		return "both tasks"
	case n == total:
		return fmt.Sprintf("all %d tasks", n)
	}
	return fmt.Sprintf("%d of %s", n, english.Count(total, "task"))
}

// PodTask is the name of the only task of a pod. Texts leave it out.
const PodTask = "0"

func placementText(w io.Writer, p *wire.Placement) {
	where := "on " + p.Node
	if len(p.Devices) > 0 {
		where += ", " + english.Noun(len(p.Devices), "device") + " " + DeviceRanges(p.Devices, p.Names) + islandText(p.Island)
	}
	if text := LayersText(p.Layers); text != "" {
		where += ", " + text + " on devices"
	}
	switch {
	case p.Nominated && len(p.WaitsFor) > 0:
		where += " (reserved for it until " + List(p.WaitsFor, 3) + ifOne(len(p.WaitsFor), " has released its room)", " have released their room)")
	case p.Nominated:
		where += " (reserved for it until the other tasks can be placed)"
	case p.Releasing:
		where += " (it was evicted or deleted, and still holds its room)"
	case p.RanBefore:
		where += " (it ran there before)"
	}
	fmt.Fprintln(w)
	first := "  "
	if p.Task != PodTask {
		first += p.Task + "  "
	}
	wrapped(w, where, first, "    ")
	if p.Score == nil {
		return
	}
	wrapped(w, fmt.Sprintf("score %s: %s", quantity.Decimal(*p.Score, 1), ScoresText(p.Scores)), "    ", "      ")
	switch {
	case p.RunnerUp == nil:
		fmt.Fprintln(w, "    no other node was feasible")
	default:
		wrapped(w, fmt.Sprintf("runner-up of %s: %s with %s, %s", english.Count(p.Others, "other node"), p.RunnerUp.Node, quantity.Decimal(p.RunnerUp.Score, 1), scoreDifferences(p.RunnerUp.Scores, p.Scores, "the first by name wins")), "    ", "      ")
	}
}

// islandText returns " of NVLink domain a", or " of several NVLink domains".
func islandText(i *wire.Island) string {
	switch {
	case i == nil:
		return ""
	case i.Name == "":
		return " of several " + i.Kind + "s"
	}
	return " of " + i.Kind + " " + i.Name
}

// LayersText returns how many layers are on devices, "54 of 81 layers"; "" if all layers are.
func LayersText(l *wire.Layers) string {
	if l == nil || l.OnDevices == l.Total {
		return ""
	}
	return fmt.Sprintf("%d of %s", l.OnDevices, english.Count(l.Total, "layer"))
}

// scoreDifferences returns the plugins of which the scores differ from those of the winner. Tie
// says what decides between equal scores.
func scoreDifferences(scores, winner map[string]float64, tie string) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(scores)) {
		if scores[n] != winner[n] {
			out = append(out, fmt.Sprintf("%s %s against %s", n, quantity.Decimal(scores[n], 1), quantity.Decimal(winner[n], 1)))
		}
	}
	if len(out) == 0 {
		return "which is equal; " + tie
	}
	return strings.Join(out, ", ")
}

// ScoresText returns the parts of a score, the highest first: "StatusScorer 100, Own 20".
func ScoresText(scores map[string]float64) string {
	names := slices.Sorted(maps.Keys(scores))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })
	return strings.Join(wire.Map(names, func(n string) string { return n + " " + quantity.Decimal(scores[n], 1) }), ", ")
}

// DeviceRanges returns the names of devices, or their indexes if they have no names, with runs
// of more than two as ranges: "cuda:0–3,rocm:1".
func DeviceRanges(indexes []int, names []string) string {
	if len(names) == 0 {
		return IndexRanges(indexes)
	}
	var out []string
	for i := 0; i < len(names); {
		kind, _, _ := strings.Cut(names[i], ":")
		var numbers []int
		for ; i < len(names) && strings.HasPrefix(names[i], kind+":"); i++ {
			number, _ := strconv.Atoi(names[i][len(kind)+1:])
			numbers = append(numbers, number)
		}
		out = append(out, kind+":"+IndexRanges(numbers))
	}
	return strings.Join(out, ",")
}

// IndexRanges returns sorted numbers, with runs of more than two as ranges: "0–3,6".
func IndexRanges(list []int) string {
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
