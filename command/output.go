package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
	"go.yaml.in/yaml/v3"
)

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeData writes the answer of a command as JSON or YAML. If there are notes, it adds them in
// a field.
func (p *program) writeData(output string, v any) error {
	if len(p.notes) > 0 {
		v = noted{v, p.notes}
	}
	if output == "yaml" {
		return writeYAML(p.stdout, v)
	}
	return writeJSON(p.stdout, v)
}

// noted is an answer with notes. The answer is an object in JSON.
type noted struct {
	answer any
	notes  []string
}

// MarshalJSON writes the answer with a further field, notes.
func (n noted) MarshalJSON() ([]byte, error) {
	var answer, notes bytes.Buffer
	if err := writeJSON(&answer, n.answer); err != nil {
		return nil, err
	}
	if err := writeJSON(&notes, n.notes); err != nil {
		return nil, err
	}
	object := bytes.TrimSuffix(bytes.TrimSpace(answer.Bytes()), []byte("}"))
	separator := ","
	if bytes.HasSuffix(bytes.TrimSpace(object), []byte("{")) {
		separator = ""
	}
	return fmt.Appendf(object, "%s\"notes\":%s}", separator, notes.Bytes()), nil
}

// writeYAML writes v as YAML, with the fields of its JSON form in the same order.
func writeYAML(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(b.Bytes(), &n); err != nil {
		return err
	}
	useBlockStyle(&n)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return err
	}
	return enc.Close()
}

// useBlockStyle removes the flow style and the quotes that the nodes have because
// they were parsed from JSON.
func useBlockStyle(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	} else if n.Kind == yaml.ScalarNode {
		n.Style &^= yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		useBlockStyle(c)
	}
}

// columns returns the width of the output in characters: the value of COLUMNS if it
// is set, between 40 and 200, and 80 otherwise.
func columns() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 40 {
		return min(n, 200)
	}
	return 80
}

// grid prints rows in aligned columns, separated by two spaces.
func grid(w io.Writer, rows [][]string) {
	for _, line := range gridLines(rows) {
		fmt.Fprintln(w, line)
	}
}

// gridLines returns the lines that grid prints.
func gridLines(rows [][]string) []string {
	widths, _ := columnWidths(rows)
	var out []string
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// table prints the result of simulate as text.
type table struct {
	w     io.Writer
	wide  bool
	style explain.Style
}

func (t *table) print(result *wire.Result, state *cluster.State, provisions []model.Provision, paths string) {
	t.decisions(result)
	t.rankings(result)
	if len(state.Nodes()) > 0 {
		explain.Picture(t.w, state, t.style)
		fmt.Fprintln(t.w)
	}
	paragraphs := t.refusals(result)
	t.provisions(provisions)
	switch {
	case len(result.Cures) > 0:
		t.cures(result, paths)
	case paragraphs > 0:
		fmt.Fprintf(t.w, "  What would help: berth why %s %s\n", result.Refusals[0].Workload, paths)
		if paragraphs > 1 {
			fmt.Fprintf(t.w, "  What would help each of them: berth simulate --cures %s\n", paths)
		}
		fmt.Fprintln(t.w)
	}
	placed := map[string]bool{}
	for _, d := range result.Decisions {
		if d.Action != "Evict" {
			placed[d.Workload+"/"+d.Task] = true
		}
	}
	fmt.Fprintln(t.w, explain.TotalsText(len(placed), pendingTasks(state)))
}

func (t *table) decisions(result *wire.Result) {
	if len(result.Decisions) == 0 {
		return
	}
	head := []string{"ACTION", "WORKLOAD", "TASK", "NODE", "DEVICES", "SCORE"}
	if t.wide {
		head = append(head, "GROUP", "FORM", "SCORES")
	}
	grouped := t.wide && slices.ContainsFunc(result.Decisions, func(d wire.Decision) bool { return d.GroupScore != nil })
	if grouped {
		head = append(head, "GROUP SCORES")
	}
	evicts := slices.ContainsFunc(result.Decisions, func(d wire.Decision) bool { return d.Action == "Evict" })
	if evicts {
		head = append(head, "FOR")
	}
	rows := [][]string{head}
	decisions := explain.NaturalOrder(result.Decisions, func(d *wire.Decision) string { return d.Action + " " + d.Workload + " " + d.Task })
	for i := range decisions {
		d := &decisions[i]
		row := []string{d.Action, d.Workload, d.Task, d.Node, devices(d), score(d)}
		if t.wide {
			group := "-"
			if d.Group != nil {
				group = fmt.Sprintf("%s × %d", cmp.Or(d.Group.Product, d.Group.Resource), d.Group.Count)
			}
			row = append(row, group, dash(d.Alternative), dash(explain.ScoresText(d.Scores)))
		}
		if grouped {
			row = append(row, dash(explain.ScoresText(d.GroupScores)))
		}
		if evicts {
			row = append(row, explain.Cause(d))
		}
		rows = append(rows, row)
	}
	switch {
	case t.wide:
		grid(t.w, rows)
	case evicts:
		fitGrid(t.w, wrapLast(rows, t.style.Width), t.style.Width, 1, 2, 3)
	default:
		fitGrid(t.w, rows, t.style.Width, 1, 2, 3)
	}
	fmt.Fprintln(t.w)
}

// rankings prints, for each Set with more replicas than it should have, which
// replicas are retired and which are kept.
func (t *table) rankings(result *wire.Result) {
	for i := range result.Rankings {
		r := &result.Rankings[i]
		fmt.Fprintln(t.w, explain.RankingTitle(r))
		var rows [][]string
		for _, x := range explain.ReplicasByRank(r) {
			row := []string{"  " + x.Workload, strconv.FormatFloat(x.Score, 'f', 1, 64), explain.KeptOrRetired(&x)}
			if t.wide {
				row = append(row, dash(explain.ScoresText(x.Scores)))
			}
			rows = append(rows, row)
		}
		if !t.wide {
			head := make([]string, len(rows[0])) // none is printed
			rows = slices.Concat(fitRows(append([][]string{head}, rows...), t.style.Width, []columnKind{nameColumn, wholeColumn, wholeColumn})[1:]...)
		}
		grid(t.w, rows)
		fmt.Fprintln(t.w)
	}
}

// provisions prints which nodes a provisioner has to create or delete.
func (t *table) provisions(list []model.Provision) {
	for i := range list {
		explain.Wrap(t.w, list[i].String(), "", "  ", t.style.Width)
	}
}

// refusals prints why workloads are pending. Workloads with the same reason and
// message share one paragraph. It returns the number of paragraphs.
func (t *table) refusals(result *wire.Result) int {
	type group struct {
		first *wire.Refusal
		names []string
	}
	var groups []*group
	known := map[string]*group{}
	for i := range result.Refusals {
		r := &result.Refusals[i]
		key := r.Message + "\x00" + r.Reason
		g := known[key]
		if g == nil {
			g = &group{first: r}
			known[key] = g
			groups = append(groups, g)
		}
		g.names = append(g.names, r.Workload)
	}
	for _, g := range groups {
		g.names = explain.NaturalOrder(g.names, func(name *string) string { return *name })
		most := 3
		if t.wide {
			most = len(g.names)
		}
		verb, what := "is", "pending"
		if len(g.names) > 1 {
			verb = "are"
		}
		if g.first.Surplus {
			what = "partly pending"
		}
		explain.Wrap(t.w, fmt.Sprintf("%s %s %s: %s", explain.List(g.names, most), verb, what, g.first.Reason), "", "  ", t.style.Width)
		explain.Wrap(t.w, g.first.Message, "  ", "  ", t.style.Width)
	}
	return len(groups)
}

// shellWords quotes the arguments where needed, so that the user can paste them
// into a shell.
func shellWords(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsFunc(a, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./+,:@%", r)
		}) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func score(d *wire.Decision) string {
	if d.Score == nil {
		return "-"
	}
	return strconv.FormatFloat(*d.Score, 'f', 1, 64)
}

// devices lists the indexes of the devices, or their names if the node has devices of several
// types. A device that is held in part is followed by the memory that is held of it, and the
// devices of a partly offloaded model by the number of layers on them.
func devices(of *wire.Decision) string {
	if len(of.Devices) == 0 {
		return "-"
	}
	var whole []int
	var names, out []string
	for _, d := range of.Devices {
		name := cmp.Or(d.Name, strconv.Itoa(d.Index))
		switch {
		case d.Fraction != 1:
			out = append(out, fmt.Sprintf("%s (%s)", name, quantity.Rounded(d.Memory)))
		case d.Name != "":
			names = append(names, name)
		default:
			whole = append(whole, d.Index)
		}
	}
	if len(whole)+len(names) > 0 {
		out = append([]string{explain.DeviceRanges(whole, names)}, out...)
	}
	text := strings.Join(out, ",")
	if layers := explain.LayersText(of.Layers); layers != "" {
		text += ", " + layers
	}
	return text
}
