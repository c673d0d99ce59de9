package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/spf13/cobra"
)

type simulateOptions struct {
	config, output       string
	events, snapshot     string // files to write
	explain, check, fail bool
	timings              bool
	clock
	course courseOptions
}

func (p *program) simulate() *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate PATH...",
		Short: "Decide what would run where, and what would have to wait",
		Long: `Decides what would run where, and what would have to wait and why.

A PATH is a file, a directory, or - for standard input.

With --cycles it shows the course over time, on a virtual clock: jobs arrive at
their creationTimestamp, run for their runTime and end, and what is evicted
starts over. It ends early once nothing can change any more.

With --snapshot-out it also writes what it starts from as one file. That file can
be given as PATH, alone, wherever manifests can, and gives the same answers.`,
		Example: "  berth simulate examples/quickstart\n  berth simulate examples/quickstart --cycles 60 --every 1m\n  berth simulate examples/quickstart --snapshot-out now.json\n  kubectl get nodes,pods,pdb -A -o yaml | berth simulate - -o wide",
		Args:    paths(1, "a file or directory that describes a cluster"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.course.check(c.Flags()); err != nil {
				return err
			}
			return p.runSimulate(args, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "file with a SchedulerConfiguration")
	f.StringVarP(&o.output, "output", "o", "table", "table, wide, json or yaml")
	f.BoolVar(&o.explain, "explain", false, "list every candidate of every decision, nodes and groups, and every node of every refusal (json, yaml)")
	f.BoolVar(&o.fail, "fail-on-pending", false, "exit with 1 if anything is left pending")
	f.StringVar(&o.events, "events", "", "write the events as JSON lines to this file; - for standard output, instead of the result")
	f.StringVar(&o.snapshot, "snapshot-out", "", "write what the simulation starts from to this file, as a snapshot")
	f.BoolVar(&o.check, "check", false, "check every decision against a plain scan of all nodes: slow")
	f.BoolVar(&o.timings, "timings", false, "print to standard error how long the hooks of each plugin took")
	o.clock.flag(c)
	o.course.flags(f)
	choices(c, "output", "table", "wide", "json", "yaml")
	return c
}

func (p *program) runSimulate(args []string, o simulateOptions) error {
	if err := oneOf("--output", o.output, "table", "wide", "json", "yaml"); err != nil {
		return err
	}
	if o.snapshot == "-" || o.snapshot != "" && o.snapshot == o.events {
		return fmt.Errorf("--snapshot-out %s: a snapshot needs a file of its own; name one", o.snapshot)
	}
	b, err := p.load(args, o.config)
	if err != nil {
		return err
	}
	e, state, err := p.prepare(b)
	if err != nil {
		return err
	}
	now, err := o.clock.read(b)
	if err != nil {
		return err
	}
	if o.snapshot != "" {
		if err := p.writeSnapshot(o.snapshot, args, b.Snapshot(state, now, e.Parameters())); err != nil {
			return err
		}
	}
	if o.course.given {
		if o.timings {
			return errors.New("--timings measures one simulation; leave out --cycles")
		}
		return p.runTimeline(e, state, args, o, now, model.Create(model.Provisions(b.NodeRequests(), state)))
	}
	if o.explain {
		if err := explainable(state); err != nil {
			return err
		}
	}
	options := sim.Options{Explain: o.explain, Now: now}
	if o.check {
		options.Search = engine.Twin
	}
	if o.timings {
		start := time.Now()
		options.Timings = &engine.Timings{Clock: func() int64 { return int64(time.Since(start)) }}
	}
	simulation, err := sim.Simulate(e, state, options)
	if err != nil {
		return err
	}
	p.noteUnasked(e)
	if o.timings {
		p.writeTimings(options.Timings)
	}
	provisions := model.Provisions(b.NodeRequests(), state)
	results := explain.Results{Phrases: explain.PhrasesOf(e), State: state, Awaits: model.Create(provisions)}
	if o.events != "" {
		if err := p.writeEvents(o.events, args, simulated(simulation, results)); err != nil {
			return err
		}
	}
	if o.events != "-" {
		if err := p.writeResult(simulation, results, provisions, args, o); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(state) > 0 {
		return errNo
	}
	return nil
}

// explainable refuses to list more than fits into memory, at some 300 bytes each.
func explainable(state *cluster.State) error {
	const most = 10_000_000
	tasks := 0
	for _, j := range state.Pending() {
		tasks += j.Missing()
	}
	if nodes := len(state.Nodes()); nodes > 0 && tasks > most/nodes {
		return fmt.Errorf("--explain would list %d nodes for each of %d tasks, which is too much; ask about one workload: berth why WORKLOAD PATH", nodes, tasks)
	}
	return nil
}

// outcome is what simulate prints as JSON and YAML.
type outcome struct {
	*wire.Result
	// Provisions are what a provisioner is to do for models with an instance type.
	Provisions []model.Provision `json:"provisions,omitempty"`
}

func (p *program) writeResult(s *sim.Simulation, results explain.Results, provisions []model.Provision, args []string, o simulateOptions) error {
	switch o.output {
	case "json":
		return writeJSON(p.stdout, outcome{results.Of(&s.Outcome, o.explain), provisions})
	case "yaml":
		return writeYAML(p.stdout, outcome{results.Of(&s.Outcome, o.explain), provisions})
	}
	t := table{w: p.stdout, wide: o.output == "wide", style: explain.Style{Color: p.terminal, Width: columns()}}
	t.print(results.Of(&s.Outcome, false), s.State, provisions, shellWords(args))
	return nil
}

func pendingTasks(state *cluster.State) int {
	n := 0
	for _, j := range state.Pending() {
		for _, t := range j.Tasks() {
			if t.Node == nil {
				n++
			}
		}
	}
	return n
}
