package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/printable"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/spf13/cobra"
)

// inputFlags are the flags of all commands that run the engine on a cluster.
type inputFlags struct {
	config string
	expand bool
	clock
}

func (i *inputFlags) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&i.config, "config", "", "file with a SchedulerConfiguration")
	c.Flags().BoolVar(&i.expand, "expand", false, "make the pods of Deployments, StatefulSets, Jobs, JobSets, LeaderWorkerSets and similar kinds that have none in the input")
	i.clock.addFlag(c)
}

// input is what a command reads, and what is made of it.
type input struct {
	bundle *manifest.Bundle
	engine *engine.Engine
	state  *cluster.State
	now    int64 // the time of the sessions, in nanoseconds since 1970
}

// open reads the paths as the flags say, and makes an engine and a State of them.
func (p *program) open(paths []string, flags *inputFlags) (*input, error) {
	p.shown = p.screen.start()
	defer p.shown.end()
	b, err := p.load(paths, flags)
	if err != nil {
		return nil, err
	}
	e, state, err := p.prepare(b)
	if err != nil {
		return nil, err
	}
	now, err := flags.now(b)
	return &input{b, e, state, now}, err
}

// load reads the paths and, if the flags name one, the configuration file. The path "-" is standard
// input.
func (p *program) load(paths []string, flags *inputFlags) (*manifest.Bundle, error) {
	loader := p.loader()
	loader.Expand = flags.expand
	b, err := loader.Load(paths)
	config := flags.config
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
		return nil, fmt.Errorf("%s: the file has no SchedulerConfiguration", config)
	}
	b.Merge(c)
	return b, b.Validate()
}

// loader returns a loader that shows its progress.
func (p *program) loader() *manifest.Loader {
	return &manifest.Loader{Stdin: p.stdin, Progress: p.shown.reading}
}

// showReading shows that a file is read, until the returned function is called.
func (p *program) showReading(file string) (end func()) {
	shown := p.screen.start()
	shown.reading(file, 0)
	return shown.end
}

// note prints to standard error what a user should know about how the input was interpreted.
// Answers in JSON and YAML contain it too.
func (p *program) note(format string, args ...any) {
	note := printable.Text(fmt.Sprintf(format, args...))
	p.notes = append(p.notes, note)
	p.shown.around(func() { fmt.Fprintln(p.stderr, "note: "+note) })
}

// prepare returns an engine and a new State for the input. It notes how the input was
// interpreted.
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
		p.note("%s", note)
	}
	return e, state, nil
}

// workload returns the ID of the workload that the user names, in full or by a
// part that only one workload matches. leftOut maps the workloads that are not in
// State to the reason why they are not.
func workload(state *cluster.State, leftOut map[string]string, name string) (string, error) {
	if state.Job(name) != nil || len(state.View().Sets().Jobs(name)) > 0 {
		return name, nil
	}
	var ids, short []string
	members := map[string]string{} // the jobs of pods that are tasks of a gang
	for _, j := range state.Jobs() {
		if j.Open {
			for _, t := range j.Tasks() {
				members["pod/"+j.Namespace+"/"+t.Name] = j.ID
			}
		}
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
		slices.SortFunc(matches, explain.CompareNatural)
		if more := len(matches) - most; more > 0 {
			matches = append(matches[:most:most], fmt.Sprintf("%d more", more))
		}
		return "", fmt.Errorf("%q matches %s; name one of them", name, strings.Join(matches, " and "))
	}
	if pods := matching(slices.SortedFunc(maps.Keys(members), explain.CompareNatural), name); len(pods) == 1 {
		return members[pods[0]], nil
	}
	if out := matching(slices.SortedFunc(maps.Keys(leftOut), explain.CompareNatural), name); len(out) > 0 {
		return "", fmt.Errorf("%s is not scheduled: %s", out[0], leftOut[out[0]])
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("no workload %q; the input has no workloads", name)
	}
	if near, ok := nearest.Find(name, ids); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, near)
	}
	if near, ok := nearest.Find(name[strings.LastIndexByte(name, '/')+1:], short); ok {
		return "", fmt.Errorf("no workload %q; did you mean %q?", name, ids[slices.Index(short, near)])
	}
	slices.SortFunc(ids, explain.CompareNatural)
	return "", fmt.Errorf("no workload %q%s", name, nearest.Hint(name, ids))
}

// matching returns the IDs that a name may mean. The last part of the ID is equal
// to that of the name. What precedes it in the name, if anything, is the kind or
// the namespace of the ID.
func matching(ids []string, name string) []string {
	prefix, last := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		prefix, last = name[:i], name[i+1:]
	}
	var out []string
	for _, id := range ids {
		i := strings.LastIndexByte(id, '/')
		if id == name || id[i+1:] == last && (prefix == "" || slices.Contains(strings.Split(id[:i], "/"), prefix)) {
			out = append(out, id)
		}
	}
	return out
}
