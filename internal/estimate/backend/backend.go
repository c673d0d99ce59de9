// Package backend holds, as data, what serves models: on which devices, in which
// ways, and what it takes beside the model. It decides nothing.
package backend

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/internal/table"
	"github.com/berth-project/berth/internal/nearest"
)

// Strategy is a way to place a replica.
type Strategy string

const (
	Device  Strategy = "device"  // one device
	Devices Strategy = "devices" // several devices of one node
	Nodes   Strategy = "nodes"   // several nodes
	Offload Strategy = "offload" // some layers on devices, the rest in the node's memory
	CPU     Strategy = "cpu"     // no device
)

// Backend is one that serves models.
type Backend struct {
	Name       string
	Strategies []Strategy // in the order in which they are tried
	// Overhead and Graph are of each device, Host is of the node's memory for each task.
	Overhead, Graph, Host cluster.Bytes
	BatchTokens           int
	// Static is set where the fraction is for weights and cache alone, and the rest
	// of what it needs comes on top.
	Static bool
	// PowersOfTwo are the only sizes of tensor parallelism that it takes.
	PowersOfTwo bool
	// VocabMultiple is what it fills a vocabulary up to before it divides it; 0: it does not.
	VocabMultiple int
	// Rows of logits that it makes room for, however few sequences there are.
	Rows int
	// WindowFloor is the share of the context that it keeps even in layers with a
	// window; 0: it keeps the window alone.
	WindowFloor cluster.Milli
	// Formats of models that it serves, and CacheBits that an element of its KV
	// cache may have; nil: any.
	Formats   []string
	CacheBits []int

	aliases      []string
	accelerators []accelerator
	any          bool
	steps        []step
	speech       bool
}

type accelerator struct {
	name     string
	versions bounds
}

type step struct {
	UpTo  int           `yaml:"upTo"` // 0: any size
	Share cluster.Milli `yaml:"share"`
}

//go:embed backends.yaml
var file []byte

type document struct {
	Types    []string `yaml:"types"`
	Backends []entry  `yaml:"backends"`
}

type entry struct {
	Name         string   `yaml:"name"`
	Aliases      []string `yaml:"aliases"`
	Accelerators []struct {
		Type     string `yaml:"type"`
		Versions string `yaml:"versions"`
	} `yaml:"accelerators"`
	Any         bool       `yaml:"any"`
	Fractions   []step     `yaml:"fractions"`
	Strategies  []Strategy `yaml:"strategies"`
	Overhead    table.GiB  `yaml:"overhead"`
	Graph       table.GiB  `yaml:"graph"`
	Host        table.GiB  `yaml:"host"`
	BatchTokens int        `yaml:"batchTokens"`
	PowersOfTwo bool       `yaml:"powersOfTwo"`
	Vocab       int        `yaml:"vocabularyMultiple"`
	Rows        int        `yaml:"rows"`
	WindowFloor int64      `yaml:"windowFloor"`
	Static      bool       `yaml:"static"`
	Speech      bool       `yaml:"speech"`
	Formats     []string   `yaml:"formats"`
	CacheBits   []int      `yaml:"cacheBits"`
}

var data = sync.OnceValue(func() document { return table.Read[document]("backends.yaml", file) })

var read = sync.OnceValue(func() []*Backend {
	var out []*Backend
	for _, e := range data().Backends {
		b := &Backend{
			Name: e.Name, Strategies: e.Strategies, Overhead: e.Overhead.Bytes, Graph: e.Graph.Bytes, Host: e.Host.Bytes,
			BatchTokens: e.BatchTokens, Static: e.Static, PowersOfTwo: e.PowersOfTwo, VocabMultiple: e.Vocab,
			Rows: e.Rows, WindowFloor: cluster.Milli(e.WindowFloor),
			Formats: e.Formats, CacheBits: e.CacheBits,
			aliases: e.Aliases, any: e.Any, steps: e.Fractions, speech: e.Speech,
		}
		for _, a := range e.Accelerators {
			versions, err := parseBounds(a.Versions)
			if err != nil {
				panic(fmt.Sprintf("backends.yaml: %s: %s: %v", e.Name, a.Type, err))
			}
			b.accelerators = append(b.accelerators, accelerator{a.Type, versions})
		}
		out = append(out, b)
	}
	return out
})

// All are the backends in the order of the file.
func All() []*Backend {
	known := read()
	out := make([]*Backend, len(known))
	for i, b := range known {
		own := *b
		own.Strategies = slices.Clone(b.Strategies)
		out[i] = &own
	}
	return out
}

// Find returns the backend of that name. Case does not count.
func Find(name string) (*Backend, error) {
	var names []string
	for _, b := range All() {
		own := append([]string{b.Name}, b.aliases...)
		if slices.ContainsFunc(own, func(n string) bool { return strings.EqualFold(n, name) }) {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return nil, fmt.Errorf("no backend is called %q%s", name, nearest.Hint(name, names))
}

// AllTypes are the types of device that are known, cpu among them.
func AllTypes() []string { return slices.Clone(data().Types) }

// Types are the types of device that a version of it runs on; an empty version
// is the newest.
func (b *Backend) Types(version string) ([]string, error) {
	v, err := b.version(version)
	if err != nil {
		return nil, err
	}
	if b.any {
		return AllTypes(), nil
	}
	var out []string
	for _, a := range b.accelerators {
		if version == "" || a.versions.contain(v) {
			out = append(out, a.name)
		}
	}
	return out, nil
}

// Anything reports whether it runs on whatever there is.
func (b *Backend) Anything() bool { return b.any }

// Runs says whether a version of it runs on a type of device. What is not a type
// at all is an error, never a no.
func (b *Backend) Runs(version, on string) (bool, error) {
	if !slices.Contains(data().Types, on) {
		return false, fmt.Errorf("no type of device is called %q%s", on, nearest.Hint(on, data().Types))
	}
	types, err := b.Types(version)
	return slices.Contains(types, on), err
}

func (b *Backend) version(text string) (version, error) {
	if text == "" {
		return version{}, nil
	}
	v, err := parseVersion(text)
	if err != nil {
		return v, fmt.Errorf("%s: %w", b.Name, err)
	}
	return v, nil
}

// Fraction is the share of each device that it claims at that size of tensor
// parallelism; 0: it claims bytes, as many as it needs.
func (b *Backend) Fraction(tensor int) cluster.Milli {
	for _, s := range b.steps {
		if s.UpTo == 0 || tensor <= s.UpTo {
			return s.Share
		}
	}
	return 0
}
