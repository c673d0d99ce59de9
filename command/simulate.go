package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
	"github.com/spf13/cobra"
)

type simulateOptions struct {
	inputFlags
	output               string
	events, snapshot     string // names of files to write; events may be "-"
	explain, check, fail bool
	timings              bool
	cures                cures
	course               courseOptions
}

func (p *program) simulate() *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate PATH...",
		Short: "Show on which nodes and devices the pending jobs would be placed",
		Long: `Shows on which nodes and devices the pending jobs would be placed, which tasks
would be evicted for them, and which jobs would stay pending and why.

A PATH is a file, a directory, or - for standard input.

With --cycles it simulates a period of time on a virtual clock. Each job arrives
at its creationTimestamp, runs for its runTime, and ends. An evicted task starts
from the beginning when it is placed again. The simulation ends early when
nothing can change any more.

If several workloads are pending, it also names for each of them the cheapest
change with which it would be placed: the one that removes or evicts the fewest
workloads and gives up least. Each change was tried in a simulation. If this would
take more than about two seconds, or the format is json or yaml, it is done only
with --cures. Of workloads that are alike, only the first is asked about. At most
32 are, or fewer if a simulation takes long: those that most workloads are like.
To learn more about one workload, use berth why.

With --snapshot-out it also writes its initial state to one file, a snapshot. Any
command accepts the snapshot as its only PATH, and gives the same answers.

For a snapshot of one session of berth-scheduler ("kubectl berth snapshot
--session N") it runs this session and no further one.`,
		Example: "  berth simulate examples/quickstart\n  berth simulate examples/quickstart --cycles 60 --every 1m\n  berth simulate examples/quickstart --snapshot-out now.json\n  kubectl get nodes,pods,pdb -A -o yaml | berth simulate - -o wide",
		Args:    minArgs(1, "a file or directory that describes a cluster"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.course.check(c.Flags()); err != nil {
				return err
			}
			o.cures.unwanted = c.Flags().Changed("cures") && !o.cures.wanted
			return p.runSimulate(args, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "table", "format of the result: table, wide, json or yaml")
	f.BoolVar(&o.explain, "explain", false, "list all feasible nodes and groups of each decision, and all nodes of each refusal (json and yaml only)")
	f.BoolVar(&o.fail, "fail-on-pending", false, "exit with 1 if any task is still pending")
	f.StringVar(&o.events, "events", "", "write the events to this file, one JSON object per line; - writes them to standard output instead of the result")
	f.StringVar(&o.snapshot, "snapshot-out", "", "write the initial state of the simulation to this file, as a snapshot")
	f.BoolVar(&o.check, "check", false, "compare each decision with that of a plain scan of all nodes, and fail if they differ (slow)")
	f.BoolVar(&o.cures.wanted, "cures", false, "name for each pending workload the cheapest change that would help")
	f.BoolVar(&o.timings, "timings", false, "print to standard error how long the hooks of each plugin took")
	o.inputFlags.addFlags(c)
	o.course.addFlags(f)
	completeValues(c, "output", "table", "wide", "json", "yaml")
	return c
}

func (p *program) runSimulate(args []string, o simulateOptions) error {
	if err := oneOf("--output", o.output, "table", "wide", "json", "yaml"); err != nil {
		return err
	}
	if o.snapshot == "-" || o.snapshot != "" && o.snapshot == o.events {
		return fmt.Errorf("--snapshot-out %s: a snapshot is written to a file of its own; name another file", o.snapshot)
	}
	in, err := p.open(args, &o.inputFlags)
	if err != nil {
		return err
	}
	b, e, state := in.bundle, in.engine, in.state
	if o.snapshot != "" {
		if err := p.writeSnapshot(o.snapshot, args, b.Snapshot(state, in.now, e.Parameters())); err != nil {
			return err
		}
	}
	if o.course.given {
		if o.timings {
			return errors.New("--timings measures a single session; omit --cycles")
		}
		if o.cures.wanted {
			return errors.New("--cures is about the end of one simulation; omit --cycles")
		}
		return p.runTimeline(in, args, o)
	}
	if o.explain {
		if err := checkExplainSize(state); err != nil {
			return err
		}
	}
	options := sim.Options{Explain: o.explain, Now: in.now}
	if o.check {
		options.Search = engine.Twin
	}
	if o.timings {
		start := time.Now()
		options.Timings = &engine.Timings{Clock: func() int64 { return int64(time.Since(start)) }}
	}
	if s, _ := manifest.SessionOf(b); s != nil {
		if o.cures.wanted {
			return errors.New("--cures needs a simulation to the end, and the snapshot is that of one session")
		}
		o.cures.unwanted = true
		options.Once = &sim.OneSession{Hold: s.Hold, Tried: s.Tried}
	}
	version := state.Version()
	simulation, err := sim.Simulate(e, state, options)
	if err != nil {
		return err
	}
	o.cures.base = whatif.Steps(simulation, state.Version()-version)
	p.noteUncalledHooks(e)
	if o.timings {
		p.writeTimings(options.Timings)
	}
	provisions := model.Provisions(b.NodeRequests(), state)
	results := explain.Results{Phrases: explain.PhrasesOf(e), State: state, AwaitedNodes: model.NodesToCreate(provisions)}
	if o.events != "" {
		if err := p.writeEvents(o.events, args, simulationEvents(simulation, results)); err != nil {
			return err
		}
	}
	if o.events != "-" {
		result := results.Of(&simulation.Outcome, o.explain && (o.output == "json" || o.output == "yaml"))
		o.cures.unwanted = o.cures.unwanted || !o.cures.wanted && (o.output == "json" || o.output == "yaml")
		if err := o.cures.add(in, result, p.screen); err != nil {
			return err
		}
		if err := p.writeResult(result, state, provisions, args, o); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(state) > 0 {
		return errNo
	}
	return nil
}

// checkExplainSize returns an error if --explain would list more entries than fit
// into memory. One entry, a node for a task, takes about 300 bytes.
func checkExplainSize(state *cluster.State) error {
	const most = 10_000_000
	tasks := 0
	for _, j := range state.Pending() {
		tasks += j.Missing()
	}
	if nodes := len(state.Nodes()); nodes > 0 && tasks > most/nodes {
		return fmt.Errorf("--explain would list %d nodes for each of %d tasks, which is too much; to ask about one workload use: berth why WORKLOAD PATH", nodes, tasks)
	}
	return nil
}

// simulateResult is what simulate prints as JSON and YAML.
type simulateResult struct {
	*wire.Result
	// Provisions lists the nodes that a provisioner has to create or delete for
	// models with an instance type.
	Provisions []model.Provision `json:"provisions,omitempty"`
}

func (p *program) writeResult(result *wire.Result, state *cluster.State, provisions []model.Provision, args []string, o simulateOptions) error {
	if o.output == "json" || o.output == "yaml" {
		return p.writeData(o.output, simulateResult{result, provisions})
	}
	wide := o.output == "wide"
	t := table{w: p.stdout, wide: wide, style: explain.Style{Color: p.terminal, Width: columns(), Wide: wide}}
	again := args
	if o.config != "" {
		again = append([]string{"--config", o.config}, again...)
	}
	if o.expand {
		again = append([]string{"--expand"}, again...)
	}
	t.print(result, state, provisions, shellWords(again))
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
