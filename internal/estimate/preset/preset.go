// Package preset holds data about models that are known by name: the size of their
// weights, what a token takes in the cache, and their architecture.
package preset

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/internal/table"
	"github.com/berth-project/berth/internal/nearest"
)

// Preset is a model that is known by name.
type Preset struct {
	Name       string
	Aliases    []string
	Repository string // on Hugging Face; the preset can be found by it
	Weights    cluster.Bytes
	// Loaded is the part of Weights that a server loads if the files hold the weights more
	// than once; 0: all of it.
	Loaded    cluster.Bytes
	Quantised string
	Block     int // see estimate.Weights
	// BytesPerToken is the size of the keys and values of one token if no layer has a window.
	BytesPerToken int64
	MaxTokens     int
	// Requested is the memory of all devices that KAITO's preset requests; 0: it requests no
	// amount. It is for information only.
	Requested    cluster.Bytes
	Parameters   int64
	Architecture estimate.Architecture
	// Assumed lists assumptions behind the figures, as whole sentences.
	Assumed []string
}

//go:embed presets.yaml
var file []byte

type document struct {
	Presets []entry `yaml:"presets"`
}

type entry struct {
	Name          string       `yaml:"name"`
	Aliases       []string     `yaml:"aliases"`
	Repository    string       `yaml:"repository"`
	Weights       table.GiB    `yaml:"weights"`
	Loaded        int64        `yaml:"loaded"`
	Quantised     string       `yaml:"quantised"`
	Block         int          `yaml:"block"`
	BytesPerToken int64        `yaml:"bytesPerToken"`
	MaxTokens     int          `yaml:"maxTokens"`
	Asked         table.GiB    `yaml:"asked"`
	Parameters    int64        `yaml:"parameters"`
	Assumed       []string     `yaml:"assumed"`
	Architecture  architecture `yaml:"architecture"`
}

type architecture struct {
	Name         string `yaml:"name"`
	Layers       int    `yaml:"layers"`
	Hidden       int    `yaml:"hidden"`
	Intermediate int    `yaml:"intermediate"`
	Expert       int    `yaml:"expert"`
	Heads        int    `yaml:"heads"`
	KVHeads      int    `yaml:"kvHeads"`
	HeadDim      int    `yaml:"headDim"`
	ValueDim     int    `yaml:"valueDim"`
	Latent       *struct {
		Rank int `yaml:"rank"`
		Rope int `yaml:"rope"`
	} `yaml:"latent"`
	Window *struct {
		Tokens    int `yaml:"tokens"`
		FullEvery int `yaml:"fullEvery"`
	} `yaml:"window"`
	Vocab   int  `yaml:"vocab"`
	Experts int  `yaml:"experts"`
	Active  int  `yaml:"active"`
	Tied    bool `yaml:"tied"`
	Fused   bool `yaml:"fused"`
	Vision  *struct {
		Layers       int `yaml:"layers"`
		Heads        int `yaml:"heads"`
		Hidden       int `yaml:"hidden"`
		Intermediate int `yaml:"intermediate"`
		Patches      int `yaml:"patches"`
		PerToken     int `yaml:"perToken"`
	} `yaml:"vision"`
}

var presets = sync.OnceValue(func() []Preset {
	entries := table.Read[document]("presets.yaml", file).Presets
	out := make([]Preset, len(entries))
	for i, e := range entries {
		out[i] = Preset{
			Name: e.Name, Aliases: e.Aliases, Repository: e.Repository, Weights: e.Weights.Bytes, Loaded: cluster.Bytes(e.Loaded), Quantised: e.Quantised, Block: e.Block,
			BytesPerToken: e.BytesPerToken, MaxTokens: e.MaxTokens, Requested: e.Asked.Bytes, Parameters: e.Parameters,
			Architecture: e.Architecture.toEstimate(e.MaxTokens), Assumed: e.Assumed,
		}
	}
	return out
})

func (a architecture) toEstimate(context int) estimate.Architecture {
	out := estimate.Architecture{
		Name: a.Name, Layers: a.Layers, Hidden: a.Hidden, Intermediate: a.Intermediate,
		Heads: a.Heads, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.ValueDim,
		Vocab: a.Vocab, MaxContext: context, Experts: a.Experts, Active: a.Active, Tied: a.Tied, FusedMLP: a.Fused,
	}
	if v := a.Vision; v != nil {
		out.Vision = &estimate.Vision{Layers: v.Layers, Heads: v.Heads, Hidden: v.Hidden, Intermediate: v.Intermediate, Patches: v.Patches, PerToken: v.PerToken}
	}
	if out.Width = a.Expert; a.Experts == 0 {
		out.Width = a.Intermediate
	}
	if a.Latent != nil {
		out.Latent = &estimate.Latent{Rank: a.Latent.Rank, Rope: a.Latent.Rope}
	}
	if a.Window != nil {
		windows := make([]int, a.Layers)
		for i := range windows {
			if (i+1)%a.Window.FullEvery != 0 {
				windows[i] = a.Window.Tokens
			}
		}
		out.Caches = out.WithWindows(windows)
	}
	return out
}

// All returns the presets in the order of the file.
func All() []*Preset {
	known := presets()
	out := make([]*Preset, len(known))
	for i := range known {
		p := known[i] // a copy, which the caller may change
		out[i] = &p
	}
	return out
}

// Find returns the preset with this name, alias or repository, ignoring case.
func Find(name string) (*Preset, error) {
	var names []string
	for _, p := range All() {
		own := append([]string{p.Name, p.Repository}, p.Aliases...)
		if slices.ContainsFunc(own, func(n string) bool { return strings.EqualFold(n, name) }) {
			return p, nil
		}
		names = append(names, own...)
	}
	return nil, fmt.Errorf("no preset is called %q%s", name, nearest.Hint(name, names))
}

// Model returns the preset as a model.
func (p *Preset) Model() *estimate.Model {
	a := p.Architecture
	a.Caches = slices.Clone(a.Caches)
	const number = 2 // bytes: embeddings have 16 bits even if the layers are quantised
	w := estimate.Weights{
		Embedding:  cluster.Bytes(a.Vocab) * cluster.Bytes(a.Hidden) * number,
		Quantised:  p.Quantised,
		Block:      p.Block,
		Parameters: p.Parameters,
	}
	if !a.Tied {
		w.Head = w.Embedding
	}
	loaded, files := p.Weights, cluster.Bytes(0)
	if p.Loaded > 0 {
		loaded, files = p.Loaded, p.Weights
	}
	w.Layers = loaded - w.Embedding - w.Head
	if p.Quantised == "" {
		w.Plain = loaded
	}
	if p.Parameters > 0 {
		w.Bits = int(cluster.MulDiv(int64(loaded), 800, p.Parameters))
	}
	return &estimate.Model{
		Name: p.Name, Format: "preset", Weights: w, Files: files, Architecture: &a,
		Assumed: append([]string{"All weights except the embeddings are divided evenly among the devices, because a preset does not list the tensors of the model."}, p.Assumed...),
	}
}
