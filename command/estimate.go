package command

import (
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/fit"
	"github.com/berth-project/berth/internal/estimate/instance"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/spf13/cobra"
)

// What is taken to stand in a row where no cluster says it.
const (
	usualPerNode = 8
	usualNodes   = 4
)

// question is what the flags ask.
type question struct {
	gpus    []string
	cluster []string
	backend string
	form    estimate.Form
	output  string
	given   func(flag string) bool
}

func (p *program) estimate() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "estimate MODEL",
		Short: "Say how much memory a model needs, and on which devices it fits",
		Long: `Says what a model needs of one device that holds all of it: weights, KV cache,
activations, graphs and overhead; then, for each kind of device, the fewest that
hold it, how it is divided over them (tp: tensor parallelism, pp: stages of a
pipeline), and the largest context that fits so. Tensor parallelism on one node
is tried first, then stages, then several nodes.

MODEL is the name of a preset (phi-4-mini), a .gguf file, or a directory with
config.json and safetensors files. Only headers are read. It may also be a .yaml
file with one or more of kind Model: each is taken as it is written there, and
flags that are given take precedence.

Without --gpu or --cluster it is a list of common devices, in up to 4 nodes of 8.
With --cluster it is the groups of that cluster, all of them free, and the whole
nodes that a replica takes where models have nodes to themselves.`,
		Example: `  berth estimate phi-4
  berth estimate ./models/qwen2.5-7b --gpu L4 --context 32768
  berth estimate llama.gguf --gpu my-card=24Gi
  berth estimate llama-3.3-70b --cluster cluster/ --kv-bits 8
  berth estimate examples/models/chat.yaml --cluster examples/models`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("berth estimate takes one model, not %d", len(args))
			}
			return paths(1, "a model: a preset's name, a .gguf file or a directory")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.check(); err != nil {
				return err
			}
			if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
				q.given = c.Flags().Changed
				return p.estimateManifest(args[0], &q)
			}
			v, err := p.answer(args[0], &q)
			if err != nil {
				return err
			}
			return p.writeEstimates(&q, v, v)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&q.gpus, "gpu", nil, "a device: PRODUCT, or PRODUCT=MEMORY as in my-card=24Gi; may be repeated")
	f.StringArrayVar(&q.cluster, "cluster", nil, "a file or directory that describes a cluster; may be repeated")
	f.IntVar(&q.form.Context, "context", 0, "tokens of one sequence (default: as many as the model can)")
	f.IntVar(&q.form.Sequences, "sequences", 1, "sequences that are held at once, each of that many tokens")
	f.IntVar(&q.form.KVBits, "kv-bits", 16, "bits of a cached number: 16, 8 or 4")
	f.IntVar(&q.form.Tensor, "tp", 0, "tensor parallelism (default: what fits on fewest devices)")
	f.IntVar(&q.form.Pipeline, "pp", 0, "stages of the pipeline (default: what fits on fewest devices)")
	f.StringVar(&q.backend, "backend", "", "vllm, sglang, mindie, voxbox, llamacpp or custom (default: by the model)")
	f.StringVarP(&q.output, "output", "o", "table", "table, json or yaml")
	choices(c, "output", "table", "json", "yaml")
	choices(c, "backend", backendNames()...)
	return c
}

func backendNames() []string {
	var out []string
	for _, b := range backend.All() {
		out = append(out, b.Name)
	}
	return out
}

func (q *question) check() error {
	f := q.form
	for _, n := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{"context", f.Context, 0, 100_000_000}, {"sequences", f.Sequences, 1, 1_000_000},
		{"tp", f.Tensor, 0, 1024}, {"pp", f.Pipeline, 0, 1024},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("--%s %d is not between %d and %d", n.flag, n.value, max(1, n.least), n.most)
		}
	}
	if !slices.Contains([]int{4, 8, 16}, f.KVBits) {
		return fmt.Errorf("--kv-bits %d: there is 16, 8 and 4", f.KVBits)
	}
	if len(q.gpus) > 0 && len(q.cluster) > 0 {
		return fmt.Errorf("--gpu and --cluster are two questions; ask one of them")
	}
	return oneOf("--output", q.output, "table", "json", "yaml")
}

// answer works it out for a model by name.
func (p *program) answer(name string, q *question) (*estimateView, error) {
	m, err := library.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := q.serves(m)
	if err != nil {
		return nil, err
	}
	rows, err := p.rows(q)
	if err != nil {
		return nil, err
	}
	v, err := newEstimateView(m, b, q.form, fit.Terms{})
	if err != nil {
		return nil, err
	}
	return v, rows(v)
}

// rows are the kinds of device that are asked about, to be worked out for a model.
func (p *program) rows(q *question) (func(*estimateView) error, error) {
	if len(q.cluster) > 0 {
		groups, err := p.groups(q.cluster)
		return func(v *estimateView) error {
			for _, g := range groups {
				if err := v.addGroup(g); err != nil {
					return err
				}
			}
			return nil
		}, err
	}
	var devices []instance.Device
	for _, g := range q.gpus {
		d, err := device(g)
		if err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	if len(devices) == 0 {
		devices = instance.Devices()
	}
	return func(v *estimateView) error {
		for _, d := range devices {
			if err := v.add(d.Product, fit.Pool{Memory: d.Memory, PerNode: usualPerNode, Nodes: usualNodes}); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// serves is the backend that was named, or the usual one for such a model.
func (q *question) serves(m *estimate.Model) (*backend.Backend, error) {
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
	return b, err
}

// groups are those of a cluster, taken as if all of it were free.
func (p *program) groups(paths []string) ([]*cluster.Group, error) {
	b, err := p.load(paths, "")
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

var memoryForm = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,6})?)(Mi|MiB|Gi|GiB)$`)

// device reads PRODUCT or PRODUCT=MEMORY.
func device(text string) (instance.Device, error) {
	product, memory, given := strings.Cut(text, "=")
	if product == "" {
		return instance.Device{}, fmt.Errorf("--gpu %q: want PRODUCT, or PRODUCT=MEMORY as in my-card=24Gi", text)
	}
	if !given {
		d, err := instance.FindDevice(product)
		if err != nil {
			return d, fmt.Errorf("--gpu: %w; with its memory any will do, as in %s=24Gi", err, product)
		}
		return d, nil
	}
	m := memoryForm.FindStringSubmatch(memory)
	if m == nil {
		return instance.Device{}, fmt.Errorf("--gpu %q: %q is no memory; write it as in %s=24Gi or %s=23028Mi", text, memory, product, product)
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
	return instance.Device{Product: product, Memory: bytes}, nil
}
