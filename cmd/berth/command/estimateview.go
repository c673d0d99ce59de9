package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
	"github.com/berth-project/berth/estimate/backend"
	"github.com/berth-project/berth/estimate/fit"
	"github.com/berth-project/berth/estimate/nodes"
	"github.com/berth-project/berth/explain"
)

// estimateView is the answer, as JSON has it. Memory is in bytes.
type estimateView struct {
	Model        string        `json:"model"`
	Format       string        `json:"format"`
	Parameters   int64         `json:"parameters,omitempty"`
	Weights      cluster.Bytes `json:"weights"`
	Quantised    string        `json:"quantised,omitempty"`
	Architecture string        `json:"architecture,omitempty"`
	MaxContext   int           `json:"maxContext,omitempty"`
	Backend      string        `json:"backend"`
	Context      int           `json:"context,omitempty"`
	Sequences    int           `json:"sequences"`
	KVBits       int           `json:"kvBits"`
	// PerToken is with every layer looking at everything, PerLateToken once all windows are full.
	PerToken     cluster.Bytes `json:"bytesPerToken,omitempty"`
	PerLateToken cluster.Bytes `json:"bytesPerTokenBeyondWindows,omitempty"`
	Device       breakdownView `json:"oneDevice"`
	Host         cluster.Bytes `json:"nodeMemory"`
	Devices      []estimateRow `json:"devices"`
	Assumed      []string      `json:"assumed,omitempty"`

	// What the rows are worked out from.
	model   *estimate.Model
	backend *backend.Backend
	form    estimate.Form
}

type breakdownView struct {
	Weights     cluster.Bytes `json:"weights"`
	KVCache     cluster.Bytes `json:"kvCache"`
	Activations cluster.Bytes `json:"activations"`
	Graph       cluster.Bytes `json:"graph"`
	Overhead    cluster.Bytes `json:"overhead"`
	Total       cluster.Bytes `json:"total"`
}

type estimateRow struct {
	Product  string        `json:"product"`
	Memory   cluster.Bytes `json:"memory"`
	Fits     bool          `json:"fits"`
	Devices  int           `json:"devices,omitempty"`
	Tensor   int           `json:"tensorParallel,omitempty"`
	Pipeline int           `json:"pipelineParallel,omitempty"`
	Layers   int           `json:"layersEach,omitempty"`
	Used     cluster.Bytes `json:"used,omitempty"`
	Usable   cluster.Bytes `json:"usable,omitempty"`
	Largest  int           `json:"largestContext,omitempty"`
	Why      string        `json:"why,omitempty"`
	Group    *groupRow     `json:"group,omitempty"`
}

// groupRow is what only a cluster's groups have.
type groupRow struct {
	Devices    int    `json:"devicesPerNode"`
	Nodes      int    `json:"nodes"`
	PerReplica int    `json:"nodesPerReplica,omitempty"`
	Why        string `json:"why,omitempty"`
}

func newEstimateView(m *estimate.Model, b *backend.Backend, f estimate.Form) (*estimateView, error) {
	v := &estimateView{
		Model: m.Name, Format: m.Format, Parameters: m.Weights.Parameters, Weights: m.Weights.Total(), Quantised: m.Weights.Quantised,
		Backend: b.Name, Context: f.Context, Sequences: f.Sequences, KVBits: f.KVBits, Host: b.Host, Assumed: m.Assumed,
		model: m, backend: b, form: f,
	}
	if a := m.Architecture; a != nil {
		v.Architecture, v.MaxContext = a.Name, a.MaxContext
		if v.Context == 0 {
			v.Context = a.MaxContext
		}
		if a.MaxContext > 0 && f.Context > a.MaxContext {
			return nil, fmt.Errorf("--context %d is more than %s can take: %d", f.Context, m.Name, a.MaxContext)
		}
		whole := f
		whole.Tensor, whole.Pipeline = 1, 1
		per, err := m.KVPerToken(whole)
		if err != nil {
			return nil, err
		}
		v.PerToken = per
		if v.PerLateToken, err = late(m, whole); err != nil {
			return nil, err
		}
	}
	// A device without end holds it all: what is left is what it would take there.
	one := f
	one.Tensor, one.Pipeline = 0, 0
	whole, err := fit.On(m, b, one, fit.Pool{Memory: 1 << 60, PerNode: 1, Nodes: 1})
	if err != nil {
		return nil, err
	}
	u := whole.Use
	v.Device = breakdownView{u.Weights, u.KVCache, u.Activations, u.Graph, u.Overhead, u.Total()}
	if m.Layered != nil && slices.Contains(b.Strategies, backend.Offload) {
		need, err := m.Layered.Of(b.Form(one))
		if err != nil {
			return nil, err
		}
		v.Host = need.Host
	}
	if m.Architecture == nil && m.Format != "table" {
		v.Assumed = append(slices.Clone(v.Assumed), "The architecture is not known; 1.2 × the weights and 2 GiB are taken, whatever the context.")
	}
	return v, nil
}

// late is what the last token of the longest context adds; 0 where no layer has a window.
func late(m *estimate.Model, f estimate.Form) (cluster.Bytes, error) {
	last := m.Architecture.MaxContext
	if m.Architecture.Windows == nil || last < 2 {
		return 0, nil
	}
	before, err := m.KVAt(f, last-1)
	if err != nil {
		return 0, err
	}
	after, err := m.KVAt(f, last)
	return after - before, err
}

// add works out one kind of device.
func (v *estimateView) add(product string, p fit.Pool) error {
	f, err := fit.On(v.model, v.backend, v.form, p)
	if err != nil {
		return err
	}
	r := estimateRow{
		Product: product, Memory: p.Memory, Fits: f.Fits, Devices: f.Devices, Tensor: f.Tensor, Pipeline: f.Pipeline,
		Layers: f.Layers, Used: f.Use.Total(), Usable: f.Usable, Largest: f.Context,
	}
	if !f.Fits {
		r.Why = fmt.Sprintf("%s it needs %s, and %s can use %s", onShape(f), explain.Memory(r.Used), v.Backend, explain.Memory(r.Usable))
	}
	v.Devices = append(v.Devices, r)
	return nil
}

// addGroup works out one group of a cluster. What cannot be combined is one device.
func (v *estimateView) addGroup(g *cluster.Group) error {
	pool := fit.Pool{Memory: cluster.Bytes(g.Key.Memory) << 20, PerNode: g.Key.Count, Nodes: len(g.Nodes)}
	if g.Key.Replicas > 1 || strings.Contains(g.Key.Product, "-MIG-") {
		pool.PerNode, pool.Nodes = 1, 1
	}
	row := groupRow{Devices: g.Key.Count, Nodes: len(g.Nodes)}
	kind := g.Nodes[0].Devices[0].Type
	if ok, err := v.backend.Runs("", kind); err == nil && !ok {
		v.Devices = append(v.Devices, estimateRow{Product: g.Key.Product, Memory: pool.Memory, Why: fmt.Sprintf("%s does not run on %s", v.Backend, kind), Group: &row})
		return nil
	}
	if err := v.add(g.Key.Product, pool); err != nil {
		v.Devices = append(v.Devices, estimateRow{Product: g.Key.Product, Memory: pool.Memory, Why: err.Error(), Group: &row})
		return nil
	}
	v.Devices[len(v.Devices)-1].Group = &row
	if v.model.Architecture == nil {
		row.Why = "the bytes of a token are not known"
		return nil
	}
	r := nodes.Replica{Weights: v.Weights, BytesPerToken: int64(v.PerToken), Tokens: v.form.Context, Heads: v.model.Architecture.Heads}
	if plan, err := r.On(g.Key); err != nil {
		row.Why = err.Error()
	} else {
		row.PerReplica = plan.Nodes
	}
	return nil
}

// onShape is the beginning of a sentence on what each device of a shape needs.
func onShape(f fit.Fit) string {
	switch {
	case f.Devices == 1:
		return "on one device"
	case f.Layers > 0:
		return fmt.Sprintf("with %d layers on each of %d devices", f.Layers, f.Devices)
	}
	return "on each device of " + parallelism(f.Devices, f.Tensor, f.Pipeline, f.Layers)
}

func parallelism(devices, tensor, pipeline, layers int) string {
	switch {
	case devices == 1:
		return "1 device"
	case layers > 0:
		return fmt.Sprintf("%d devices", devices)
	case pipeline == 1:
		return fmt.Sprintf("tp %d", tensor)
	case tensor == 1:
		return fmt.Sprintf("pp %d", pipeline)
	}
	return fmt.Sprintf("tp %d × pp %d", tensor, pipeline)
}

func (v *estimateView) table(p *program) {
	width := columns()
	explain.Wrap(p.stdout, v.headline(), "", "  ", width)
	explain.Wrap(p.stdout, v.served(), "", "  ", width)
	fmt.Fprintln(p.stdout)
	rows := [][]string{}
	for _, part := range []struct {
		name  string
		bytes cluster.Bytes
	}{
		{"weights", v.Device.Weights}, {"KV cache", v.Device.KVCache}, {"activations", v.Device.Activations},
		{"graph", v.Device.Graph}, {"overhead", v.Device.Overhead}, {"on one device", v.Device.Total},
	} {
		if part.bytes > 0 {
			rows = append(rows, []string{"  " + part.name, fmt.Sprintf("%9s", explain.Memory(part.bytes))})
		}
	}
	grid(p.stdout, rows)
	fmt.Fprintln(p.stdout)
	v.devices(p)
	if len(v.Assumed) > 0 {
		fmt.Fprintln(p.stdout, "\nAssumed:")
		for _, a := range v.Assumed {
			explain.Wrap(p.stdout, a, "  ", "  ", width)
		}
	}
}

func (v *estimateView) headline() string {
	s := fmt.Sprintf("%s (%s): ", v.Model, v.Format)
	if v.Parameters > 0 {
		s += millions(v.Parameters) + " parameters, "
	}
	if v.Format == "table" {
		return s + explain.Memory(v.Weights) + " in all."
	}
	s += explain.Memory(v.Weights) + " of weights"
	if v.Quantised != "" {
		s += " (" + v.Quantised + ")"
	}
	if v.Architecture != "" {
		s += ", " + v.Architecture
	}
	if v.MaxContext > 0 {
		s += ", up to " + thousands(v.MaxContext) + " tokens"
	}
	return s + "."
}

func (v *estimateView) served() string {
	s := "Served by " + v.Backend
	if v.Context > 0 {
		s += fmt.Sprintf(" with %s of %s tokens", plural(v.Sequences, "sequence"), thousands(v.Context))
	}
	if v.PerToken > 0 {
		s += fmt.Sprintf(", %s bytes a token", thousands(int(v.PerToken)))
	}
	if v.PerLateToken > 0 && v.PerLateToken < v.PerToken {
		s += fmt.Sprintf(" and %s once the windows are full", thousands(int(v.PerLateToken)))
	}
	if v.KVBits != 16 {
		s += fmt.Sprintf(" (%d bits a number)", v.KVBits)
	}
	return s + fmt.Sprintf("; %s of the node's memory.", explain.Memory(v.Host))
}

// devices is the table of where it fits; below it stands why it does not.
func (v *estimateView) devices(p *program) {
	clustered := len(v.Devices) > 0 && v.Devices[0].Group != nil
	head := []string{"DEVICE", "MEMORY", "FITS WITH", "USED OF EACH", "LARGEST CONTEXT"}
	if clustered {
		head = []string{"GROUP", "MEMORY", "NODES", "FITS WITH", "USED OF EACH", "LARGEST CONTEXT", "WHOLE NODES"}
	}
	rows, why := [][]string{head}, [][2]string{}
	for _, r := range v.Devices {
		with, used, most := "no", "-", "-"
		if r.Fits {
			with = parallelism(r.Devices, r.Tensor, r.Pipeline, r.Layers)
			used = explain.Memory(r.Used) + " of " + explain.Memory(r.Usable)
		}
		if r.Largest > 0 {
			most = thousands(r.Largest)
			if !r.Fits {
				most += " (" + parallelism(r.Devices, r.Tensor, r.Pipeline, r.Layers) + ")"
			}
		}
		row := []string{r.Product, explain.Memory(r.Memory), with, used, most}
		if r.Why != "" {
			why = append(why, [2]string{r.Product, r.Why})
		}
		if g := r.Group; g != nil {
			whole := "-"
			if g.PerReplica > 0 {
				whole = strconv.Itoa(g.PerReplica)
				if g.PerReplica > g.Nodes {
					whole += " (too few)"
				}
			}
			if g.Why != "" {
				why = append(why, [2]string{r.Product + ", whole nodes", g.Why})
			}
			row = []string{fmt.Sprintf("%s × %d", r.Product, g.Devices), row[1], strconv.Itoa(g.Nodes), with, used, most, whole}
		}
		rows = append(rows, row)
	}
	grid(p.stdout, rows)
	if clustered {
		tokens := v.form.Context
		if tokens == 0 {
			tokens = nodes.DefaultTokens
		}
		explain.Wrap(p.stdout, "Whole nodes: what one replica takes that has nodes to itself, reckoned for "+thousands(tokens)+" tokens.", "", "  ", columns())
	}
	for i, w := range why {
		if i == 0 {
			fmt.Fprintln(p.stdout)
		}
		explain.Wrap(p.stdout, w[0]+": "+w[1]+".", "", "  ", columns())
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands sets commas, as in 131,072.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millions spells how many parameters there are: 14.7 billion.
func millions(n int64) string {
	if n >= 1e9 {
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + " billion"
	}
	return strconv.FormatInt(n/1e6, 10) + " million"
}
