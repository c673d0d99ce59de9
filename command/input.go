package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/scenario"
)

// load reads the paths, "-" being standard input, and the configuration file if one is given.
func (p *program) load(paths []string, config string) (*manifest.Bundle, error) {
	b, err := manifest.LoadFrom(p.stdin, paths)
	if err != nil || config == "" {
		return b, err
	}
	if config == "-" {
		return nil, fmt.Errorf("--config cannot be standard input; name a file")
	}
	c, err := manifest.Load([]string{config})
	if err != nil {
		return nil, err
	}
	if c.Configuration() == nil {
		return nil, fmt.Errorf("%s: there is no SchedulerConfiguration in it", config)
	}
	b.Merge(c)
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
	e.Resume(b.Parameters())
	for _, note := range b.Notes {
		fmt.Fprintln(p.stderr, "note: "+note)
	}
	return e, state, nil
}

// workload finds the ID that somebody means: in full, or as far as it takes to
// tell it from all others. LeftOut are those that are not in the books, and why.
func workload(state *cluster.State, leftOut map[string]string, name string) (string, error) {
	if state.Job(name) != nil || len(state.View().Sets().Jobs(name)) > 0 {
		return name, nil
	}
	var ids, short []string
	for _, j := range state.Jobs() {
		ids = append(ids, j.ID)
		short = append(short, j.ID[strings.LastIndexByte(j.ID, '/')+1:])
	}
	ids = append(ids, state.View().Sets().Names()...)
	for _, set := range state.View().Sets().Names() {
		short = append(short, set[strings.LastIndexByte(set, '/')+1:])
	}
	switch matches := matching(ids, name); {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		const most = 5
		if more := len(matches) - most; more > 0 {
			matches = append(matches[:most:most], fmt.Sprintf("one of %d more", more))
		}
		return "", fmt.Errorf("%q may be %s; say which", name, strings.Join(matches, " or "))
	}
	if out := matching(slices.Sorted(maps.Keys(leftOut)), name); len(out) > 0 {
		return "", fmt.Errorf("%s is not scheduled: %s", out[0], leftOut[out[0]])
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("no workload %q: there is none at all", name)
	}
	if near, ok := nearest.Of(name, ids); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, near)
	}
	if near, ok := nearest.Of(name[strings.LastIndexByte(name, '/')+1:], short); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, ids[slices.Index(short, near)])
	}
	return "", fmt.Errorf("no workload %q%s", name, nearest.Hint(name, ids))
}

// matching are the IDs whose last part is the name's and which have its kind or namespace.
func matching(ids []string, name string) []string {
	kind, last := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		kind, last = name[:i], name[i+1:]
	}
	var out []string
	for _, id := range ids {
		i := strings.LastIndexByte(id, '/')
		if id == name || id[i+1:] == last && (kind == "" || slices.Contains(strings.Split(id[:i], "/"), kind)) {
			out = append(out, id)
		}
	}
	return out
}
