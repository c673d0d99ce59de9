package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/manifest"
	"github.com/berth-project/berth/nearest"
	"github.com/berth-project/berth/scenario"
)

// load reads the paths, "-" being standard input, and the configuration file if one is given.
func (p *program) load(paths []string, config string) (*manifest.Bundle, error) {
	b := &manifest.Bundle{}
	files := slices.DeleteFunc(slices.Clone(paths), func(s string) bool { return s == "-" })
	if len(files) > 0 {
		var err error
		if b, err = manifest.Load(files); err != nil {
			return nil, err
		}
	}
	if len(files) < len(paths) {
		data, err := io.ReadAll(p.stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		in, err := manifest.Parse("<stdin>", data)
		if err != nil {
			return nil, err
		}
		b.Merge(in)
	}
	if config != "" {
		c, err := manifest.Load([]string{config})
		if err != nil {
			return nil, err
		}
		if c.Configuration() == nil {
			return nil, fmt.Errorf("%s: there is no SchedulerConfiguration in it", config)
		}
		b.Merge(c)
	}
	if b.Empty() {
		return nil, fmt.Errorf("%s: there is nothing in it", strings.Join(paths, ", "))
	}
	return b, b.Validate()
}

// prepare makes the engine and fresh books, and tells what a person should know of how the input was read.
func (p *program) prepare(b *manifest.Bundle) (*engine.Engine, *cluster.State, error) {
	e, err := scenario.Engine(p.registry, b)
	if err != nil {
		return nil, nil, err
	}
	state, err := b.State()
	if err != nil {
		return nil, nil, err
	}
	for _, note := range b.Notes {
		fmt.Fprintln(p.stderr, "note: "+note)
	}
	return e, state, nil
}

// workload finds the ID that somebody means: in full, or as far as it takes to
// tell it from all others.
func workload(state *cluster.State, name string) (string, error) {
	if state.Job(name) != nil {
		return name, nil
	}
	kind, last := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		kind, last = name[:i], name[i+1:]
	}
	var ids, matches, short []string
	for _, j := range state.Jobs() {
		ids = append(ids, j.ID)
		i := strings.LastIndexByte(j.ID, '/')
		short = append(short, j.ID[i+1:])
		parts := strings.Split(j.ID[:i], "/")
		if j.ID[i+1:] == last && (kind == "" || slices.Contains(parts, kind)) {
			matches = append(matches, j.ID)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("%q may be %s; say which", name, strings.Join(matches, " or "))
	case len(ids) == 0:
		return "", fmt.Errorf("no workload %q: there is none at all", name)
	}
	if near, ok := nearest.Of(name, ids); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, near)
	}
	if near, ok := nearest.Of(last, short); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, ids[slices.Index(short, near)])
	}
	return "", fmt.Errorf("no workload %q%s", name, nearest.Hint(name, ids))
}
