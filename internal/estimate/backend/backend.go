// Package backend holds data about programs that serve models, such as vLLM: the devices on
// which they run, how they divide a model, and how much memory they take in addition to the
// model.
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

// The strategies.
const (
	Device  Strategy = "device"  // one device
	Devices Strategy = "devices" // several devices of one node
	Nodes   Strategy = "nodes"   // several nodes
	Offload Strategy = "offload" // some layers on devices, the rest in the node's memory
	CPU     Strategy = "cpu"     // no device
)

// Backend is a program that serves models.
type Backend struct {
	Name       string
	Strategies []Strategy    // in the order in which they are tried
	Host       cluster.Bytes // of the node's memory, for each task
	// Static is set if the fraction is for weights and cache only. Activations, graphs and
	// overhead are claimed in addition to it.
	Static bool
	// PowersOfTwo is set if the tensor parallelism must be a power of two.
	PowersOfTwo bool
	// VocabMultiple is set if the backend pads a vocabulary to a multiple of this number
	// before it divides it; 0: it does not pad.
	VocabMultiple int
	// ExpertsOverRanks is set if the backend divides experts over all data-parallel ranks, and
	// UnevenExperts if it may put different numbers of whole experts on devices.
	ExpertsOverRanks, UnevenExperts bool
	// Formats lists the formats of models that it serves, and CacheBits the sizes that a
	// number in its KV cache may have; nil: any.
	Formats   []string
	CacheBits []int

	aliases      []string
	accelerators []accelerator
	anyType      bool
	allSettings  []setting
	settings     []setting // those of the version
	speech       bool
}

type accelerator struct {
	name     string
	versions bounds
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
	Settings    []setting  `yaml:"settings"`
	Strategies  []Strategy `yaml:"strategies"`
	Host        table.GiB  `yaml:"host"`
	PowersOfTwo bool       `yaml:"powersOfTwo"`
	Vocab       int        `yaml:"vocabularyMultiple"`
	Static      bool       `yaml:"static"`
	Speech      bool       `yaml:"speech"`
	OverRanks   bool       `yaml:"expertsOverRanks"`
	Uneven      bool       `yaml:"unevenExperts"`
	Formats     []string   `yaml:"formats"`
	CacheBits   []int      `yaml:"cacheBits"`
}

var data = sync.OnceValue(func() document { return table.Read[document]("backends.yaml", file) })

var backends = sync.OnceValue(func() []*Backend {
	var out []*Backend
	for _, e := range data().Backends {
		b := &Backend{
			Name: e.Name, Strategies: e.Strategies, Host: e.Host.Bytes, Static: e.Static, PowersOfTwo: e.PowersOfTwo, VocabMultiple: e.Vocab,
			ExpertsOverRanks: e.OverRanks, UnevenExperts: e.Uneven, Formats: e.Formats, CacheBits: e.CacheBits,
			aliases: e.Aliases, anyType: e.Any, allSettings: parseSettings(e.Name, e.Settings), speech: e.Speech,
		}
		for _, a := range e.Accelerators {
			versions, err := parseBounds(a.Versions)
			if err != nil {
				panic(fmt.Sprintf("backends.yaml: %s: %s: %v", e.Name, a.Type, err))
			}
			b.accelerators = append(b.accelerators, accelerator{a.Type, versions})
		}
		latest, err := b.At("")
		if err != nil {
			panic(fmt.Sprintf("backends.yaml: %s: %v", e.Name, err))
		}
		out = append(out, latest)
	}
	return out
})

// All returns the backends in the order of the file, with the settings of their newest
// versions. The caller may change them.
func All() []*Backend {
	known := backends()
	out := make([]*Backend, len(known))
	for i, b := range known {
		own := *b
		own.Strategies = slices.Clone(b.Strategies)
		out[i] = &own
	}
	return out
}

// Find returns the backend with this name or alias, ignoring case.
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

// AllTypes returns the known types of device, including cpu.
func AllTypes() []string { return slices.Clone(data().Types) }

// Types returns the types of device on which this version of the backend runs. An empty
// version stands for the newest one, which runs on all types that any version runs on.
func (b *Backend) Types(version string) ([]string, error) {
	v, err := b.version(version)
	if err != nil {
		return nil, err
	}
	if b.anyType {
		return AllTypes(), nil
	}
	var out []string
	for _, a := range b.accelerators {
		if version == "" || a.versions.contains(v) {
			out = append(out, a.name)
		}
	}
	return out, nil
}

// RunsOnAnyType reports whether the backend runs on every type of device.
func (b *Backend) RunsOnAnyType() bool { return b.anyType }

// RunsOn reports whether this version runs on a type of device. An unknown type is an
// error.
func (b *Backend) RunsOn(version, on string) (bool, error) {
	if !slices.Contains(data().Types, on) {
		return false, fmt.Errorf("no type of device is called %q%s", on, nearest.Hint(on, data().Types))
	}
	types, err := b.Types(version)
	return slices.Contains(types, on), err
}

// version parses the text. An empty text gives the zero version.
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
