package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/nodes"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
)

// onEachDevice returns the beginning of a sentence about what each device needs, such
// as "on each device of tp 2".
func (d division) onEachDevice() string {
	switch {
	case d.Devices == 1:
		return "on one device"
	case d.Layers > 0:
		return fmt.Sprintf("with %d layers on each of %d devices", d.Layers, d.Devices)
	}
	return "on each device of " + d.String()
}

// String returns the parallelism, such as "tp 2 × pp 4".
func (d division) String() string {
	switch {
	case d.Devices == 1:
		return "1 device"
	case d.Layers > 0:
		return fmt.Sprintf("%d devices", d.Devices)
	}
	var out []string
	for _, x := range []struct {
		name string
		n    int
	}{{"tp", d.Tensor}, {"pp", d.Pipeline}, {"dp", d.Data}} {
		if x.n > 1 {
			out = append(out, fmt.Sprintf("%s %d", x.name, x.n))
		}
	}
	return strings.Join(out, " × ")
}

func (v *estimateView) table(p *program, wide bool) {
	width := columns()
	explain.Wrap(p.stdout, v.headline(), "", "  ", width)
	explain.Wrap(p.stdout, v.served(), "", "  ", width)
	fmt.Fprintln(p.stdout)
	title, parts := v.breakdown()
	rows := [][]string{}
	for _, use := range []struct {
		name  string
		bytes cluster.Bytes
	}{
		{"weights", parts.Weights}, {"KV cache", parts.KVCache}, {"activations", parts.Activations},
		{"graphs", parts.Graph}, {"overhead", parts.Overhead},
		{"draft, adapters", parts.Beside}, {title, parts.Total},
	} {
		if use.bytes > 0 {
			rows = append(rows, []string{"  " + use.name, fmt.Sprintf("%9s", quantity.Memory(use.bytes))})
		}
	}
	grid(p.stdout, rows)
	fmt.Fprintln(p.stdout)
	v.devices(p, wide)
	v.caches(p, wide)
	if len(v.Assumed) > 0 {
		fmt.Fprintln(p.stdout, "\nAssumed:")
		for _, a := range v.Assumed {
			explain.Wrap(p.stdout, a, "  ", "  ", width)
		}
	}
}

// breakdown returns the parts of the need, and what they are the parts of: each device of the
// only kind that is asked about, as the model is divided there, or else one device of which
// nothing is known.
func (v *estimateView) breakdown() (title string, parts breakdownView) {
	if len(v.Devices) != 1 || v.Devices[0].Each == nil {
		return "on one device", v.Device
	}
	r := &v.Devices[0]
	title = "on one " + r.Product
	if r.Devices > 1 {
		title = fmt.Sprintf("on each of %s", r.division)
		if r.Layers == 0 {
			title = fmt.Sprintf("on each of %d devices (%s)", r.Devices, r.division)
		}
	}
	return title, *r.Each
}

// caches prints what the KV cache holds on each kind of device: a server fills its share of the
// device with it.
func (v *estimateView) caches(p *program, wide bool) {
	rows := [][]string{{"DEVICE", "KV CACHE OF EACH", "TOKENS", "SEQUENCES AT ONCE", "WITH 8 BITS"}}
	for _, r := range v.Devices {
		if r.Cache == nil {
			continue
		}
		narrow := "-"
		if c := r.NarrowCache; c != nil {
			narrow = fmt.Sprintf("%s, %s", english.Thousands(c.Tokens), times(c.Sequences))
		}
		rows = append(rows, []string{r.Product, quantity.Memory(r.Cache.Bytes), english.Thousands(r.Cache.Tokens), times(r.Cache.Sequences), narrow})
	}
	if len(rows) == 1 {
		return
	}
	fmt.Fprintln(p.stdout)
	if wide {
		grid(p.stdout, rows)
	} else {
		grid(p.stdout, slices.Concat(fitRows(rows, columns(), []columnKind{brokenColumn, wholeColumn, wholeColumn, wholeColumn, textColumn})...))
	}
	explain.Wrap(p.stdout, "SEQUENCES AT ONCE is how many sequences of "+english.Thousands(v.Context)+" tokens the KV cache holds. LARGEST CONTEXT is the largest with which the server starts.", "", "  ", columns())
}

// times formats a number of sequences, with one digit after the point if it is small.
func times(n float64) string {
	if n >= 100 {
		return english.Thousands(int(n))
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func (v *estimateView) headline() string {
	s := fmt.Sprintf("%s (%s): ", v.Model, v.Format)
	if v.Name != "" {
		s = v.Name + ", " + s
	}
	if v.Parameters > 0 {
		s += millions(v.Parameters) + " parameters, "
	}
	if v.Format == "table" {
		return s + quantity.Memory(v.Weights) + " in total."
	}
	s += quantity.Memory(v.Weights) + " of weights"
	if v.Quantised != "" {
		s += " (" + v.Quantised + ")"
	}
	if v.Architecture != "" {
		s += ", " + v.Architecture
	}
	if v.MaxContext > 0 {
		s += ", up to " + english.Thousands(v.MaxContext) + " tokens"
	}
	return s + "."
}

func (v *estimateView) served() string {
	s := "Served by " + v.Backend
	if v.Context > 0 {
		s += fmt.Sprintf(" with %s %s of %s tokens", english.Thousands(v.Sequences), english.Noun(v.Sequences, "sequence"), english.Thousands(v.Context))
	}
	if v.PerToken > 0 {
		s += fmt.Sprintf("; the KV cache takes %s bytes per token", english.Thousands(int(v.PerToken)))
	}
	if v.PerLateToken > 0 && v.PerLateToken < v.PerToken {
		s += fmt.Sprintf(" and %s when the attention windows are full", english.Thousands(int(v.PerLateToken)))
	}
	if v.KVBits != 16 {
		s += fmt.Sprintf(" (%d bits per number)", v.KVBits)
	}
	return s + fmt.Sprintf(". The server also needs %s of the node's memory.", quantity.Memory(v.Host))
}

// devices prints the table of the devices, and below it why the model does not fit
// on some of them.
func (v *estimateView) devices(p *program, wide bool) {
	clustered := len(v.Devices) > 0 && v.Devices[0].Group != nil
	head := []string{"DEVICE", "MEMORY", "FITS WITH", "USED OF EACH", "LARGEST CONTEXT"}
	if clustered {
		head = []string{"GROUP", "MEMORY", "NODES", "FITS WITH", "USED OF EACH", "LARGEST CONTEXT", "WHOLE NODES"}
	}
	rows, why := [][]string{head}, [][2]string{} // why: a device and the reason
	tooFew := ""
	for _, r := range v.Devices {
		with, used, most := "no", "-", "-"
		if r.Fits {
			with = r.division.String()
			used = usedOf(r.Used, r.Usable)
		}
		if r.Largest > 0 {
			most = english.Thousands(r.Largest)
			if !r.Fits {
				most += " (" + r.division.String() + ")"
			}
		}
		row := []string{r.Product, quantity.Memory(r.Memory), with, used, most}
		if r.Why != "" {
			why = append(why, [2]string{r.Product, r.Why})
		}
		if g := r.Group; g != nil {
			whole := "-"
			if g.PerReplica > 0 {
				whole = strconv.Itoa(g.PerReplica)
				if g.PerReplica > g.Nodes {
					whole += fmt.Sprintf(" (%d)", g.Nodes)
					tooFew = "; if the group has fewer, their number is in parentheses"
				}
			}
			if g.Why != "" {
				why = append(why, [2]string{r.Product + ", whole nodes", g.Why})
			}
			row = []string{fmt.Sprintf("%s × %d", r.Product, g.Devices), row[1], strconv.Itoa(g.Nodes), with, used, most, whole}
		}
		rows = append(rows, row)
	}
	switch {
	case wide:
		grid(p.stdout, rows)
	case clustered:
		grid(p.stdout, slices.Concat(fitRows(rows, columns(), []columnKind{brokenColumn, wholeColumn, wholeColumn, wholeColumn, wholeColumn, textColumn, textColumn})...))
	default:
		grid(p.stdout, slices.Concat(fitRows(rows, columns(), []columnKind{brokenColumn, wholeColumn, wholeColumn, wholeColumn, textColumn})...))
	}
	if clustered {
		tokens := v.form.Context
		if tokens == 0 {
			tokens = nodes.DefaultTokens
		}
		explain.Wrap(p.stdout, "WHOLE NODES is how many nodes one replica needs if it gets all devices of each node, for "+english.Thousands(tokens)+" tokens"+tooFew+".", "", "  ", columns())
	}
	for i, w := range why {
		if i == 0 {
			fmt.Fprintln(p.stdout)
		}
		explain.Wrap(p.stdout, w[0]+": "+w[1]+".", "", "  ", columns())
	}
}

// usedOf returns how much is used of an amount, with the unit once if both have the same.
func usedOf(used, of cluster.Bytes) string {
	x, y := quantity.Memory(used), quantity.Memory(of)
	if amount, unit, _ := strings.Cut(x, " "); strings.HasSuffix(y, " "+unit) {
		x = amount
	}
	return x + " of " + y
}

// millions formats a number of parameters, such as "14.7 billion".
func millions(n int64) string {
	if n >= 1e9 {
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + " billion"
	}
	return strconv.FormatInt(n/1e6, 10) + " million"
}
