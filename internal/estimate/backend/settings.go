package backend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/internal/table"
)

// Accelerator is the properties of a device on which the settings of a backend depend. The zero
// Accelerator is one of which nothing is known.
type Accelerator struct {
	Product, Type string
	Memory        cluster.Bytes // as the driver and the node's labels report it
	Unusable      cluster.Bytes // how much of it no program can allocate
}

// setting is values that a backend takes unless they are configured, and the conditions
// under which it takes them. An entry of backends.yaml without a condition applies always.
type setting struct {
	// Conditions.
	Versions    string    `yaml:"versions"`    // a range; without it, all versions
	Explicit    bool      `yaml:"explicit"`    // only if the version is given
	Types       []string  `yaml:"types"`       // types of device; without it, all types
	LeastMemory table.GiB `yaml:"leastMemory"` // of the device
	Except      []string  `yaml:"except"`      // words of the product; a device with one of them is excepted
	LeastTensor int       `yaml:"leastTensor"`
	// Architectures are beginnings of the names of architectures; without it, all models.
	Architectures []string `yaml:"architectures"`

	// Values; 0: the entry does not set it.
	BatchTokens int           `yaml:"batchTokens"`
	Prompt      int           `yaml:"prompt"`
	Rows        int           `yaml:"rows"`
	LogitBytes  int           `yaml:"logitBytes"`
	Overhead    table.GiB     `yaml:"overhead"`
	Graph       table.GiB     `yaml:"graph"`
	Fraction    cluster.Milli `yaml:"fraction"`
	Keep        *keep         `yaml:"keep"`
	WindowFloor cluster.Milli `yaml:"windowFloor"`
	WindowSteps int           `yaml:"windowSteps"`
	Page        int           `yaml:"page"`
	Groups      int           `yaml:"groups"`
	StateRatio  cluster.Milli `yaml:"stateRatio"`
	States      int           `yaml:"states"`
	Latents     int           `yaml:"latentTokens"`
	// FileCache is set if the KV cache has the size for which the files have scales.
	FileCache bool `yaml:"fileCache"`
	// ExtraWeights is how much more weights in a format take than in the files, in
	// thousandths.
	ExtraWeights map[string]cluster.Milli `yaml:"extraWeights"`
	WholeChunks  bool                     `yaml:"wholeChunks"`
	// PlainLoad is set if weights that are quantised to 8 bits are first loaded with 16 bits.
	PlainLoad bool `yaml:"plainLoad"`

	versions bounds
}

// keep is how much of each device a backend does not claim, in MiB: a fixed amount, an
// amount for each token of a step, for each row of logits and for each device of a replica,
// and the least of all these together.
type keep struct {
	Fixed     int64   `yaml:"fixed"`
	PerToken  float64 `yaml:"perToken"`
	PerRow    int64   `yaml:"perRow"`
	PerDevice int64   `yaml:"perDevice"`
	AtLeast   int64   `yaml:"atLeast"`
}

// bytes returns how much of each device is not claimed.
func (k *keep) bytes(s estimate.Serving) cluster.Bytes {
	mib := k.Fixed + int64(k.PerToken*float64(s.BatchTokens)) + k.PerRow*int64(s.Rows) + k.PerDevice*int64(max(1, s.Tensor)*max(1, s.Pipeline))
	return cluster.Bytes(max(mib, k.AtLeast)) << 20
}

// applies reports whether the conditions hold. The version has been checked before.
func (e *setting) applies(m *estimate.Model, tensor int, d Accelerator) bool {
	if len(e.Architectures) > 0 {
		a := m.Architecture
		if a == nil || !slices.ContainsFunc(e.Architectures, func(name string) bool { return strings.HasPrefix(a.Name, name) }) {
			return false
		}
	}
	return max(1, tensor) >= e.LeastTensor && d.Memory >= e.LeastMemory.Bytes &&
		(len(e.Types) == 0 || slices.Contains(e.Types, cmp.Or(d.Type, "cuda"))) &&
		(len(e.Except) == 0 || !e.excepts(d.Product))
}

// HasSettings reports whether some backend has settings for architectures with this name.
func HasSettings(architecture string) bool {
	for _, b := range backends() {
		for i := range b.allSettings {
			if slices.ContainsFunc(b.allSettings[i].Architectures, func(name string) bool { return strings.HasPrefix(architecture, name) }) {
				return true
			}
		}
	}
	return false
}

// excepts reports whether the product contains one of the words of Except, ignoring case.
func (e *setting) excepts(product string) bool {
	product = strings.ToLower(product)
	return slices.ContainsFunc(e.Except, func(word string) bool { return strings.Contains(product, strings.ToLower(word)) })
}

// override sets the values of e that o sets.
func (e *setting) override(o *setting) {
	e.BatchTokens, e.Prompt = cmp.Or(o.BatchTokens, e.BatchTokens), cmp.Or(o.Prompt, e.Prompt)
	e.Rows, e.LogitBytes = cmp.Or(o.Rows, e.Rows), cmp.Or(o.LogitBytes, e.LogitBytes)
	e.Overhead.Bytes, e.Graph.Bytes = cmp.Or(o.Overhead.Bytes, e.Overhead.Bytes), cmp.Or(o.Graph.Bytes, e.Graph.Bytes)
	e.Fraction, e.Keep = cmp.Or(o.Fraction, e.Fraction), cmp.Or(o.Keep, e.Keep)
	e.WindowFloor, e.WindowSteps = cmp.Or(o.WindowFloor, e.WindowFloor), cmp.Or(o.WindowSteps, e.WindowSteps)
	e.Page, e.Groups, e.WholeChunks = cmp.Or(o.Page, e.Page), cmp.Or(o.Groups, e.Groups), o.WholeChunks || e.WholeChunks
	e.StateRatio, e.States, e.FileCache = cmp.Or(o.StateRatio, e.StateRatio), cmp.Or(o.States, e.States), o.FileCache || e.FileCache
	e.Latents, e.PlainLoad = cmp.Or(o.Latents, e.Latents), o.PlainLoad || e.PlainLoad
	if o.ExtraWeights != nil {
		e.ExtraWeights = o.ExtraWeights
	}
}

// At returns the backend with the settings of this version. An empty version stands for
// the newest one that is known.
func (b *Backend) At(version string) (*Backend, error) {
	v, err := b.version(version)
	if err != nil {
		return nil, err
	}
	if version == "" {
		v = newest
	}
	own := *b
	own.settings = slices.DeleteFunc(slices.Clone(b.allSettings), func(e setting) bool {
		return e.Explicit && version == "" || !e.versions.contains(v)
	})
	return &own, nil
}

// newest is above every version.
var newest = version{numbers: [4]int{1 << 30}}

// on returns the settings for a model at this tensor parallelism on a device: those of all
// entries that apply, where later entries take precedence.
func (b *Backend) on(m *estimate.Model, tensor int, d Accelerator) setting {
	var out setting
	for i := range b.settings {
		if e := &b.settings[i]; e.applies(m, tensor, d) {
			out.override(e)
		}
	}
	return out
}

// WithDefaults returns s with the defaults of the backend in place of zero fields. The
// defaults depend on the device and on the tensor parallelism.
func (b *Backend) WithDefaults(m *estimate.Model, s estimate.Serving, d Accelerator) estimate.Serving {
	s = b.WithExperts(s)
	e := b.on(m, s.Tensor, d)
	if s.BatchTokens == 0 {
		s.BatchTokens, s.Prompt = e.BatchTokens, e.Prompt
	}
	if s.Rows == 0 {
		s.Rows = e.Rows
	}
	s.LogitBytes = cmp.Or(s.LogitBytes, e.LogitBytes)
	s.WindowFloor, s.WindowSteps = cmp.Or(s.WindowFloor, e.WindowFloor), cmp.Or(s.WindowSteps, e.WindowSteps)
	s.VocabMultiple, s.Page, s.Groups = cmp.Or(s.VocabMultiple, b.VocabMultiple), cmp.Or(s.Page, e.Page), cmp.Or(s.Groups, e.Groups)
	s.WholeChunks, s.StateRatio = s.WholeChunks || e.WholeChunks, cmp.Or(s.StateRatio, e.StateRatio)
	switch {
	case s.KVBits == 0 && s.WeightBits == 32:
		s.KVBits = 32
	case s.KVBits == 0 && e.FileCache:
		s.KVBits = m.KVBits
	}
	s.LatentTokens, s.PlainLoad = cmp.Or(s.LatentTokens, e.Latents), s.PlainLoad || e.PlainLoad
	s.States, s.ExtraWeights = cmp.Or(s.States, e.States), cmp.Or(s.ExtraWeights, e.ExtraWeights[m.Weights.Quantised])
	s.Overhead = cmp.Or(s.Overhead, e.Overhead.Bytes)
	if s.Graph = cmp.Or(s.Graph, e.Graph.Bytes); s.Eager {
		s.Graph = 0
	}
	return s
}

// WithExperts returns s with how the backend divides experts.
func (b *Backend) WithExperts(s estimate.Serving) estimate.Serving {
	s.ExpertsOverRanks, s.UnevenExperts = b.ExpertsOverRanks, b.UnevenExperts
	return s
}

// Fraction returns the share of each device that the backend claims for a model that is
// served with s; 0: it claims as many bytes as it needs. Some backends keep an amount of
// memory free, so that the share depends on the memory of the device.
func (b *Backend) Fraction(m *estimate.Model, s estimate.Serving, d Accelerator) cluster.Milli {
	if m.Architecture != nil && m.Architecture.Encoder {
		return 0 // there is no cache to fill a share with
	}
	e := b.on(m, s.Tensor, d)
	out := e.Fraction
	if e.Keep != nil && d.Memory > 0 {
		left := max(1<<20, d.Memory-e.Keep.bytes(b.WithDefaults(m, s, d)))
		out = max(1, cluster.Milli(cluster.MulDiv(int64(left), int64(cluster.Whole), int64(d.Memory))))
	}
	if a := m.Architecture; e.Keep != nil && a != nil && a.Vision != nil {
		out = cluster.Milli(cluster.MulDiv(int64(out), visionFraction(a.Vision), int64(cluster.Whole)))
	}
	return out
}

// visionFraction returns the part of its share that SGLang claims for a model with a vision
// encoder, in thousandths: 950 for an encoder of 24 layers that are 1,024 wide, and less for
// larger ones, down to 760.
func visionFraction(v *estimate.Vision) int64 {
	size := cluster.MulDiv(int64(v.Layers)*int64(v.Hidden), int64(v.Hidden)*1000, 24*1024*1024)
	return cluster.MulDiv(950, min(1050, max(800, 1100-size/10)), 1000)
}

// ClaimsShare reports whether the backend claims shares of devices and not bytes.
func (b *Backend) ClaimsShare() bool {
	return slices.ContainsFunc(b.settings, func(e setting) bool { return e.Fraction > 0 })
}

// parseSettings checks the entries of a backend in backends.yaml.
func parseSettings(name string, entries []setting) []setting {
	out := slices.Clone(entries)
	for i := range out {
		versions, err := parseBounds(out[i].Versions)
		if err != nil {
			panic(fmt.Sprintf("backends.yaml: %s: %v", name, err))
		}
		out[i].versions = versions
	}
	return out
}
