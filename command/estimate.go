package command

import (
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/model"
	"github.com/spf13/cobra"
)

// The cluster that is assumed if --cluster is not given.
const (
	defaultPerNode = 8 // devices of a node
	defaultNodes   = 4
)

type estimateOptions struct {
	gpus    []string
	cluster []string
	backend string
	version string
	form    estimate.Serving
	flash   bool // the opposite of form.NoFlashAttention
	// dtype and quantization are converted to form.WeightBits.
	dtype, quantization string
	output              string
	given               func(flag string) bool // reports whether the flag is on the command line
	contextFlag         string                 // the name of the flag that sets form.Context
}

func (p *program) estimate() *cobra.Command {
	var q estimateOptions
	c := &cobra.Command{
		Use:   "estimate MODEL",
		Short: "Estimate how much memory a model needs, and on which devices it fits",
		Long: `Estimates how much memory a model needs on one device that holds all of it:
weights, KV cache, activations, graphs and overhead. For each kind of device it
then shows the smallest number of devices that hold the model, how the model is
divided over them (tp: tensor parallelism, pp: pipeline stages), and the largest
context that fits. Tensor parallelism on one node is tried first, then pipeline
stages on one node, then several nodes.

MODEL is the name of a preset (phi-4-mini), a .gguf file, or a directory with
config.json and safetensors files. Only headers are read. MODEL may also be a
.yaml file with one or more objects of kind Model. Each is estimated with the
settings of its manifest; flags take precedence.

Without --gpu and --cluster the devices are a list of common ones, on up to 4
nodes with 8 devices each. With --cluster they are the node groups of that
cluster, as if all devices were free. The table then also shows how many nodes
one replica takes if it uses whole nodes.`,
		Example: `  berth estimate phi-4
  berth estimate ./models/qwen2.5-7b --gpu L4 --context 32768
  berth estimate llama.gguf --gpu my-card=24Gi
  berth estimate llama-3.3-70b --cluster cluster/ --kv-bits 8
  berth estimate examples/models/chat.yaml --cluster examples/models`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("berth estimate takes one model, not %d", len(args))
			}
			return minArgs(1, "a model: the name of a preset, a .gguf file or a directory")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.check(); err != nil {
				return err
			}
			rows := func() (rowAdder, error) { return p.rowAdder(&q) }
			if isManifest(args[0]) {
				return p.estimateManifest(args[0], &q, rows)
			}
			return p.estimateNamed(args[0], &q, rows)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&q.gpus, "gpu", nil, "a device: PRODUCT, or PRODUCT=MEMORY such as my-card=24Gi (may be repeated)")
	f.StringArrayVar(&q.cluster, "cluster", nil, "a file or directory that describes a cluster (may be repeated)")
	q.addFlags(c, "context")
	completeFlag(c, "gpu", completeProduct)
	c.ValidArgsFunction = completeModel
	return c
}

// isManifest reports whether the argument of estimate is the name of a manifest.
func isManifest(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// addFlags adds the flags that do not name devices. contextFlag is the name of the flag for the
// tokens of a sequence.
func (q *estimateOptions) addFlags(c *cobra.Command, contextFlag string) {
	q.contextFlag, q.given = contextFlag, c.Flags().Changed
	f := c.Flags()
	f.IntVar(&q.form.Context, contextFlag, 0, "tokens of one sequence (default: the maximum of the model, or 32768 if no node holds that)")
	f.IntVar(&q.form.Sequences, "sequences", 1, "number of sequences in the KV cache at a time, each with --"+contextFlag+" tokens")
	f.IntVar(&q.form.KVBits, "kv-bits", 0, "bits of one number in the KV cache: 16, 8 or 4 (default: 16, or 8 if the files of the model have scales for it)")
	f.IntVar(&q.form.BatchTokens, "batch-tokens", 0, "tokens that one step processes (default: the backend's)")
	f.IntVar(&q.form.MicroBatch, "micro-batch", 0, "tokens that llamacpp computes at once (default: 512)")
	f.BoolVar(&q.flash, "flash-attention", true, "llamacpp uses flash attention")
	f.BoolVar(&q.form.FullWindowCache, "full-window-cache", false, "llamacpp caches the whole context in layers that look back only a window")
	f.IntVar(&q.form.Rows, "max-sequences", 0, "number of sequences that the server processes at once at most (default: the backend's)")
	f.BoolVar(&q.form.Eager, "eager", false, "the server captures no graphs")
	f.StringVar(&q.dtype, "dtype", "auto", "type of numbers that are not quantised: auto, bfloat16, float16 or float32")
	f.StringVar(&q.quantization, "quantization", "", "how the server quantises weights as it loads them: fp8, int8 or bitsandbytes")
	f.IntVar(&q.form.Tensor, "tp", 0, "tensor parallelism (default: the one that needs the fewest devices)")
	f.IntVar(&q.form.Pipeline, "pp", 0, "number of pipeline stages (default: the one that needs the fewest devices)")
	f.IntVar(&q.form.Data, "dp", 0, "number of data-parallel ranks, each with a copy of the model (default: 1)")
	f.BoolVar(&q.form.Expert, "expert-parallel", false, "the experts of a mixture are divided over tp × dp devices")
	f.StringVar(&q.version, "backend-version", "", "version of the backend, such as 0.11.0 (default: the newest that is known)")
	f.StringVar(&q.backend, "backend", "", "server of the model: vllm, sglang, mindie, voxbox, llamacpp or custom (default: depends on the model)")
	f.StringVarP(&q.output, "output", "o", "table", "format of the estimate: table, wide, json or yaml")
	completeValues(c, "output", "table", "wide", "json", "yaml")
	completeValues(c, "backend", backendNames()...)
}

func backendNames() []string {
	var out []string
	for _, b := range backend.All() {
		out = append(out, b.Name)
	}
	return out
}

func (q *estimateOptions) check() error {
	f := q.form
	for _, n := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{q.contextFlag, f.Context, 0, 100_000_000}, {"sequences", f.Sequences, 1, 1_000_000},
		{"tp", f.Tensor, 0, 1024}, {"pp", f.Pipeline, 0, 1024}, {"dp", f.Data, 0, 1024},
		{"batch-tokens", f.BatchTokens, 0, 100_000_000}, {"max-sequences", f.Rows, 0, 1_000_000},
		{"micro-batch", f.MicroBatch, 0, 65_536},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("--%s %d is not between %d and %d", n.flag, n.value, max(1, n.least), n.most)
		}
	}
	bits, err := estimate.WeightBits(q.dtype, q.quantization)
	if err != nil {
		return fmt.Errorf("--%s: %w", err.Field, err)
	}
	q.form.WeightBits, q.form.NoFlashAttention = bits, !q.flash
	if !slices.Contains([]int{0, 4, 8, 16}, f.KVBits) {
		return fmt.Errorf("--kv-bits %d: unknown value; the values are 16, 8 and 4", f.KVBits)
	}
	if len(q.gpus) > 0 && len(q.cluster) > 0 {
		return fmt.Errorf("--gpu and --cluster cannot be combined; omit one of them")
	}
	return oneOf("--output", q.output, "table", "wide", "json", "yaml")
}

// estimateNamed estimates a model that is given by its name or path. rows is called after the model
// was read.
func (p *program) estimateNamed(name string, q *estimateOptions, rows func() (rowAdder, error)) error {
	end := p.showReading(name)
	m, err := library.Open(name)
	end()
	if err != nil {
		return err
	}
	v, err := q.modelView(m, rows)
	if err != nil {
		return err
	}
	return p.writeEstimates(q, v, v)
}

// modelView returns the view of a model that has no manifest, with its rows.
func (q *estimateOptions) modelView(m *estimate.Model, rows func() (rowAdder, error)) (*estimateView, error) {
	b, err := q.backendFor(m)
	if err == nil {
		err = q.checkSettings(b, m, q.form)
	}
	if err == nil {
		err = checkFormat(b, m)
	}
	if err != nil {
		return nil, err
	}
	addRows, err := rows()
	if err != nil {
		return nil, err
	}
	return withContext(m, q.form.Context, addRows, func(context int) (*estimateView, error) {
		form := q.form
		form.Context = context
		if isLayered(m, b) && !q.given("sequences") {
			form.Sequences = 0 // the server has a default
		}
		v, err := newEstimateView(m, b, form, fit.Options{})
		if err == nil {
			v.version = q.version
		}
		return v, err
	})
}

// withContext returns the view for this context, with its rows. If the context is 0, it is the
// longest that the model supports or, if no device holds that, a default.
func withContext(m *estimate.Model, context int, addRows rowAdder, view func(context int) (*estimateView, error)) (*estimateView, error) {
	longest := 0
	if m != nil && m.Architecture != nil {
		longest = m.Architecture.MaxContext
	}
	open := context == 0 && m != nil && m.Architecture != nil && (longest == 0 || longest > model.DefaultContext)
	if !open || longest > 0 {
		v, err := view(context)
		if err != nil {
			return nil, err
		}
		err = addRows(v)
		if err != nil || !open || slices.ContainsFunc(v.Devices, estimateRow.fitsOnNode) {
			return v, err
		}
	}
	v, err := view(model.DefaultContext)
	if err != nil {
		return nil, err
	}
	if longest > 0 {
		v.assume(fmt.Sprintf("No context is given, and no node with these devices holds the %s tokens that the model supports; the estimate is for %s tokens.", english.Thousands(longest), english.Thousands(model.DefaultContext)))
	} else {
		v.assume(fmt.Sprintf("No context is given, and the model does not say which it supports; the estimate is for %s tokens.", english.Thousands(model.DefaultContext)))
	}
	return v, addRows(v)
}

// rowAdder adds to a view one row for each kind of device.
type rowAdder func(*estimateView) error

// rowsOf returns a rowAdder for the node groups of a cluster.
func rowsOf(groups []*cluster.Group) rowAdder {
	return func(v *estimateView) error {
		for _, g := range groups {
			if err := v.addGroup(g); err != nil {
				return err
			}
		}
		return nil
	}
}

// rowAdder returns a rowAdder for the devices that the flags select. Input is read only once, for
// any number of models.
func (p *program) rowAdder(q *estimateOptions) (rowAdder, error) {
	if len(q.cluster) > 0 {
		groups, err := p.groups(q.cluster)
		return rowsOf(groups), err
	}
	var devices []instance.Device
	for _, g := range q.gpus {
		d, err := parseDevice(g)
		if err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	return func(v *estimateView) error {
		for _, d := range devices {
			if err := v.backend.CheckType(v.version, d.Type); err != nil {
				return fmt.Errorf("--gpu %s: %w; name another device, or another --backend", d.Product, err)
			}
		}
		on := devices
		if len(on) == 0 {
			on = v.commonDevices()
		}
		for _, d := range on {
			if err := v.add(d.Product, fit.Pool{Accelerator: accelerator(d), PerNode: defaultPerNode, Nodes: defaultNodes}); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// commonDevices returns widely used devices on which the backend runs, or all known ones if there
// is none.
func (v *estimateView) commonDevices() []instance.Device {
	all := slices.DeleteFunc(instance.Devices(), func(d instance.Device) bool { return v.backend.CheckType(v.version, d.Type) != nil })
	if common := slices.DeleteFunc(slices.Clone(all), func(d instance.Device) bool { return !d.Common }); len(common) > 0 {
		return common
	}
	return all
}

// backendFor returns the backend that the flag names, or the default for the
// format of the model.
func (q *estimateOptions) backendFor(m *estimate.Model) (*backend.Backend, error) {
	name := q.backend
	switch {
	case name != "":
	case m.Format == "gguf":
		name = "llamacpp"
	case m.Format == "table":
		name = "voxbox"
	default:
		name = "vllm"
	}
	b, err := backend.Find(name)
	if err == nil && b.FromTable() && m.Format != "table" {
		_, err = backend.FindSpeech(m.Name)
	}
	if err != nil {
		return nil, err
	}
	if b, err = b.At(q.version); err != nil {
		return nil, fmt.Errorf("--backend-version: %w", err)
	}
	return b, nil
}

// checkFormat returns an error for a model that the backend does not serve.
func checkFormat(b *backend.Backend, m *estimate.Model) error {
	if err := b.CheckFormat(m); err != nil {
		return fmt.Errorf("%w; name another --backend", err)
	}
	return nil
}

// checkSettings returns an error for settings that the backend or the model does not have. They
// are refused in a manifest too.
func (q *estimateOptions) checkSettings(b *backend.Backend, m *estimate.Model, f estimate.Serving) error {
	for _, flag := range []string{"micro-batch", "flash-attention", "full-window-cache"} {
		if q.given(flag) && !slices.Contains(b.Strategies, backend.Offload) {
			return fmt.Errorf("--%s: %s does not have this setting, only llamacpp has", flag, b.Name)
		}
	}
	for _, e := range b.CheckServing(f) {
		return fmt.Errorf("%s: %w; %s", q.settingName(e), e, flagRemedy(e))
	}
	if m.Architecture != nil {
		if err := m.CheckExperts(estimate.Serving{Expert: f.Expert}); err != nil {
			return fmt.Errorf("%w; omit expert parallelism", err)
		}
	}
	return nil
}

// settingFlags are the flags for fields of a manifest.
var settingFlags = map[string]string{"kvCacheBits": "kv-bits", "maxSequences": "max-sequences", "data": "dp", "expert": "expert-parallel"}

// settingName returns the flag that has the setting, or the field of the manifest.
func (q *estimateOptions) settingName(e *backend.SettingError) string {
	last := fmt.Sprint(e.Field[len(e.Field)-1])
	if flag := settingFlags[last]; q.given(flag) {
		return "--" + flag
	}
	name := "spec"
	for _, step := range e.Field {
		name += fmt.Sprintf(".%v", step)
	}
	return name
}

// flagRemedy says which flags to change.
func flagRemedy(e *backend.SettingError) string {
	if e.Field[0] == "maxSequences" {
		return "raise --max-sequences, or lower --sequences"
	}
	return "omit it, or name another --backend"
}

// groups returns the node groups of a cluster.
func (p *program) groups(paths []string) ([]*cluster.Group, error) {
	p.shown = p.screen.start()
	defer p.shown.end()
	b, err := p.load(paths, &inputFlags{})
	if err != nil {
		return nil, err
	}
	_, state, err := p.prepare(b)
	if err != nil {
		return nil, err
	}
	groups := state.View().Groups()
	if len(groups) == 0 {
		return nil, fmt.Errorf("no node of %s has devices", strings.Join(paths, ", "))
	}
	return groups, nil
}

var memoryPattern = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,6})?)(Mi|MiB|Gi|GiB)$`)

// parseDevice parses PRODUCT or PRODUCT=MEMORY.
func parseDevice(text string) (instance.Device, error) {
	product, memory, given := strings.Cut(text, "=")
	if product == "" {
		return instance.Device{}, fmt.Errorf("--gpu %q: want PRODUCT, or PRODUCT=MEMORY such as my-card=24Gi", text)
	}
	if !given {
		d, err := instance.FindDevice(product)
		if err != nil {
			return d, fmt.Errorf("--gpu: %w; any other device can be given with its memory, such as %s=24Gi", err, product)
		}
		return d, nil
	}
	m := memoryPattern.FindStringSubmatch(memory)
	if m == nil {
		return instance.Device{}, fmt.Errorf("--gpu %q: %q is not an amount of memory; write for example %s=24Gi or %s=23028Mi", text, memory, product, product)
	}
	unit := int64(1 << 20)
	if strings.HasPrefix(m[2], "G") {
		unit = 1 << 30
	}
	r, _ := new(big.Rat).SetString(m[1])
	r.Mul(r, big.NewRat(unit, 1))
	bytes := cluster.Bytes(new(big.Int).Quo(r.Num(), r.Denom()).Int64())
	if bytes < 1<<20 || bytes > cluster.MaxDeviceMemory {
		return instance.Device{}, fmt.Errorf("--gpu %q: the memory of a device is between 1Mi and %dTi", text, cluster.MaxDeviceMemory>>40)
	}
	d, err := instance.FindDevice(product)
	if err != nil { // its type is not known
		return instance.Device{Product: product, Memory: bytes, Unusable: instance.Unusable(product, "cuda", bytes)}, nil
	}
	return instance.Device{Product: product, Type: d.Type, Memory: bytes, Unusable: instance.Unusable(product, d.Type, bytes)}, nil
}

func accelerator(d instance.Device) backend.Accelerator {
	return backend.Accelerator{Product: d.Product, Type: d.Type, Memory: d.Memory, Unusable: d.Unusable}
}
