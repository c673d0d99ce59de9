package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/replay"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/plugins/fgd"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

// replayer replays traces. It holds the flags that all kinds of replay have.
type replayer struct {
	program      *program
	policies     []string
	config       string
	seeds        string
	output, plot string
	check        int
	copies       int
	nodes, tasks string
	replayPauses
	log    logFlag
	known  bool
	memory *collector
}

func replayCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "replay",
		Short: "Run a trace of a cluster through the engine and measure the result",
		Long: `Runs a trace through the engine on a virtual clock: jobs arrive, are placed or
wait, and end. It measures how much of the devices is allocated, how long jobs
wait, and how long decisions take. docs/replay.md describes traces and results.`,
		RunE: func(c *cobra.Command, args []string) error {
			return fmt.Errorf("berth replay needs a kind of trace: openb, trace, synth or log\nUsage: berth replay KIND [flags]")
		},
	}
	c.AddCommand(replayOpenb(p), replayTrace(p), replaySynth(p), replayLog(p))
	return c
}

func (o *replayer) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.policies, "policy", nil, "how tasks are packed; several are compared: "+strings.Join(standard.Policies(), ", ")+" (default: that of the configuration)")
	f.StringVar(&o.config, "config", "", "file with a SchedulerConfiguration")
	f.StringVarP(&o.output, "output", "o", "table", "format of the result: table or json")
	f.StringVar(&o.plot, "plot", "", "write diagrams to this SVG file")
	f.BoolVar(&o.known, "known-run-times", false, "let the engine know how long jobs run, as if they stated it")
	f.IntVar(&o.check, "check-every", 0, "compare each decision of this number with a scan of all nodes, and fail if they differ; 0: none")
	completeValues(c, "output", "table", "json")
	completeValues(c, "policy", standard.Policies()...)
}

func (o *replayer) addSeeds(c *cobra.Command, value string) {
	c.Flags().StringVar(&o.seeds, "seeds", value, "seeds of the random numbers, such as 42..51 or 1,2,3; each is one run")
}

func replayOpenb(p *program) *cobra.Command {
	o := replayer{program: p}
	var shuffle bool
	c := &cobra.Command{
		Use:   "openb --nodes FILE --tasks FILE",
		Short: "Fill a cluster as in the publication of FGD (USENIX ATC'23)",
		Long: `Replays a list of tasks of Alibaba's GPU cluster trace of 2023 with the protocol
of "Beware of Fragmentation" (USENIX ATC'23). For each seed, the tasks arrive one
at a time in random order; then tasks that are drawn from the list follow, until
130 % of the devices of the cluster have arrived. No task ends, and a task that
does not fit is not tried again. The result is the share of the devices that is
allocated at the end.

The policy fgd knows the requests of the list from the beginning, as in the
publication.`,
		Example: "  berth replay openb --nodes openb_node_list_gpu_node.csv --tasks openb_pod_list_default.csv --policy best-fit,fgd --shuffle-names --plot default.svg",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c, replay.LayoutOpenb, func(t *replay.Trace, seed int64) *replay.Trace {
				return t.Openb(seed, shuffle)
			}, replay.Options{Drop: true})
		},
	}
	o.addFlags(c)
	o.addFiles(c)
	o.addSeeds(c, "42..51")
	c.Flags().BoolVar(&shuffle, "shuffle-names", false, "exchange the names of nodes at random, so that the result does not depend on their order")
	o.replayPauses.addFlags(c)
	c.Flags().IntVar(&o.copies, "copies", 1, "replay this number of copies of the cluster and of the tasks as one cluster")
	return c
}

func (o *replayer) addFiles(c *cobra.Command) {
	c.Flags().StringVar(&o.nodes, "nodes", "", "file with the nodes")
	c.Flags().StringVar(&o.tasks, "tasks", "", "file with the tasks")
}

func replayTrace(p *program) *cobra.Command {
	o := replayer{program: p}
	var layout string
	var warmUp time.Duration
	var drop bool
	c := &cobra.Command{
		Use:   "trace --nodes FILE --tasks FILE",
		Short: "Replay a trace with its arrivals and run times",
		Long: `Replays a trace: each job arrives at its time, waits until it is placed, runs for
its run time, and ends. The files have the format of Berth, which is CSV, or that
of a public trace. docs/replay.md describes both.`,
		Example: "  berth replay trace --nodes nodes.csv --tasks jobs.csv --policy fill-value\n  berth replay trace --layout helios --nodes nodes.csv --tasks cluster_log.csv",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("--layout", layout, replay.Layouts()...); err != nil {
				return err
			}
			if warmUp < 0 {
				return fmt.Errorf("--warm-up: want 0 or more, such as 24h, have %s", warmUp)
			}
			o.seeds = "0"
			return o.run(c, replay.Layout(layout), func(t *replay.Trace, _ int64) *replay.Trace { return t }, replay.Options{Drop: drop, WarmUp: int64(warmUp)})
		},
	}
	o.addFlags(c)
	o.addFiles(c)
	c.Flags().StringVar(&layout, "layout", string(replay.LayoutBerth), "layout of the files: "+strings.Join(replay.Layouts(), ", "))
	o.log.addFlag(c)
	c.Flags().DurationVar(&warmUp, "warm-up", 0, "time at the beginning of the trace that is not measured")
	c.Flags().BoolVar(&drop, "drop", false, "remove a job that cannot be placed when it arrives, instead of letting it wait")
	completeValues(c, "layout", replay.Layouts()...)
	return c
}

func replaySynth(p *program) *cobra.Command {
	o := replayer{program: p}
	s := replay.Synth{}
	var machines, devices int
	var cores, memory int64
	var product, layout string
	var days, warmUp float64
	c := &cobra.Command{
		Use:   "synth",
		Short: "Replay random arrivals and run times on a cluster in a steady state",
		Long: `Replays a synthetic trace: jobs arrive at random (a Poisson process), each
requests what a job of a list requests, and runs for a log-normal time. A job that
does not fit waits. The result has the mean share of the devices that is allocated,
and how long jobs wait.

Nodes and requests are those of the files, or else equal machines and a mix of
requests that is frequent in public traces.`,
		Example: "  berth replay synth --machines 100 --load 0.95 --days 10 --policy best-fit,fill-value\n  berth replay synth --layout openb --nodes openb_node_list_gpu_node.csv --tasks openb_pod_list_default.csv --load 0.98",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("--layout", layout, replay.Layouts()...); err != nil {
				return err
			}
			switch {
			case (o.nodes == "") != (o.tasks == ""):
				return errors.New("--nodes and --tasks are given together, or none of them")
			case machines < 1 || devices < 1 || cores < 1 || memory < 1:
				return errors.New("--machines, --devices, --cores and --memory-gib must be at least 1")
			case !(days > 0 && days <= 10_000) || !(warmUp >= 0 && warmUp <= 10_000):
				return errors.New("--days: want more than 0 and at most 10000; --warm-up-days: want from 0 to 10000")
			}
			day := float64(24 * time.Hour)
			s.Length = time.Duration((days + warmUp) * day)
			if o.nodes == "" {
				s.Nodes, s.Jobs = replay.Machines(machines, devices, product, cores, memory), replay.DefaultRequests(devices)
				if err := s.Check(); err != nil {
					return err
				}
			}
			return o.run(c, replay.Layout(layout), func(t *replay.Trace, seed int64) *replay.Trace {
				drawn := s
				drawn.Nodes, drawn.Jobs = t.Nodes, t.Jobs
				return drawn.Trace(seed)
			}, replay.Options{WarmUp: int64(warmUp * day), Until: int64(s.Length)}, &s)
		},
	}
	o.addFlags(c)
	o.addFiles(c)
	o.addSeeds(c, "1..10")
	o.log.addFlag(c)
	f := c.Flags()
	f.StringVar(&layout, "layout", string(replay.LayoutBerth), "layout of the files: "+strings.Join(replay.Layouts(), ", "))
	f.IntVar(&machines, "machines", 100, "number of nodes, if no files are given")
	f.IntVar(&devices, "devices", 8, "devices of each node")
	f.StringVar(&product, "product", "NVIDIA-H100-80GB-HBM3", "product of the devices")
	f.Int64Var(&cores, "cores", 128, "cores of each node")
	f.Int64Var(&memory, "memory-gib", 1024, "memory of each node, in GiB")
	f.Float64Var(&s.Load, "load", 0.95, "offered load: the mean demand for devices divided by the devices of the cluster")
	f.DurationVar(&s.Mean, "mean-run-time", 4*time.Hour, "mean of the run times")
	f.Float64Var(&s.Sigma, "sigma", 1.2, "standard deviation of the logarithm of run times")
	f.Float64Var(&days, "days", 10, "simulated days that are measured")
	f.Float64Var(&warmUp, "warm-up-days", 1, "simulated days before them that are not measured")
	completeValues(c, "layout", replay.Layouts()...)
	return c
}

// run replays the traces that draw returns for each seed, once for each policy. A synth has the
// nodes and requests unless files are named.
func (o *replayer) run(c *cobra.Command, layout replay.Layout, draw func(*replay.Trace, int64) *replay.Trace, options replay.Options, synth ...*replay.Synth) error {
	if err := oneOf("--output", o.output, "table", "json"); err != nil {
		return err
	}
	seeds, err := parseSeeds(o.seeds)
	if err != nil {
		return err
	}
	if o.check < 0 || o.copies < 0 {
		return errors.New("--check-every and --copies must not be negative")
	}
	if o.replayPauses.given() {
		if err := o.replayPauses.check(max(1, len(o.policies)) * len(seeds)); err != nil {
			return err
		}
	}
	if o.log.path != "" && max(1, len(o.policies))*len(seeds) != 1 {
		return errors.New("--log: several replays would write the file; give one policy and one seed, such as --policy best-fit --seeds 1")
	}
	base, err := o.profile()
	if err != nil {
		return err
	}
	var t *replay.Trace
	if o.nodes == "" && len(synth) > 0 {
		t = &replay.Trace{Name: "synth", Nodes: synth[0].Nodes, Jobs: synth[0].Jobs}
	} else if t, err = o.readTrace(layout); err != nil {
		return err
	}
	if len(synth) > 0 {
		synth[0].Nodes, synth[0].Jobs = t.Nodes, t.Jobs
		if err := synth[0].Check(); err != nil {
			return err
		}
	}
	options.CheckEvery, options.KnownRunTimes = o.check, o.known
	if o.plot != "" {
		options.Points = plotPoints
	}
	policies := o.policies
	if len(policies) == 0 {
		policies = []string{""}
	}
	o.memory = newCollector()
	defer o.memory.restore()
	var results []*replay.Result
	for _, policy := range policies {
		r, err := o.replay(c, t, base, policy, seeds, draw, options)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return o.report(results, o.nodes, o.tasks)
}

// plotPoints is how many points of the course a plot has.
const plotPoints = 400

// report writes the plot and prints the results.
func (o *replayer) report(results []*replay.Result, inputs ...string) error {
	if o.plot != "" {
		if err := writeFile("--plot", o.plot, inputs, func(w io.Writer) error { return replay.Plot(w, results) }); err != nil {
			return err
		}
	}
	if o.output == "json" {
		if len(results) == 1 {
			return writeJSON(o.program.stdout, results[0])
		}
		return writeJSON(o.program.stdout, results)
	}
	printReplays(o.program.stdout, results)
	return nil
}

// readTrace reads the files that the flags name.
func (o *replayer) readTrace(layout replay.Layout) (*replay.Trace, error) {
	if o.nodes == "" || o.tasks == "" {
		return nil, errors.New("--nodes and --tasks name the files of the trace; both are needed")
	}
	nodes, err := os.Open(o.nodes)
	if err != nil {
		return nil, err
	}
	defer nodes.Close()
	tasks, err := os.Open(o.tasks)
	if err != nil {
		return nil, err
	}
	defer tasks.Close()
	t, leftOut, err := replay.Read(layout, replay.File{Name: o.nodes, Reader: nodes}, replay.File{Name: o.tasks, Reader: tasks})
	if err != nil {
		return nil, err
	}
	if len(t.Nodes) == 0 || len(t.Jobs) == 0 {
		return nil, fmt.Errorf("the trace has %d nodes and %d jobs; want at least one of each", len(t.Nodes), len(t.Jobs))
	}
	if leftOut > 0 {
		o.program.note("%d jobs of %s did not run and are left out", leftOut, o.tasks)
	}
	return t, nil
}

// profile returns the profile of the configuration.
func (o *replayer) profile() (engine.Profile, error) {
	if o.config == "" {
		return standard.Profile(), nil
	}
	b, err := manifest.Load([]string{o.config})
	if err != nil {
		return nil, err
	}
	if b.Configuration() == nil {
		return nil, fmt.Errorf("%s: the file has no SchedulerConfiguration", o.config)
	}
	return scenario.Profile(b)
}

// replay replays the trace once for each seed.
func (o *replayer) replay(c *cobra.Command, t *replay.Trace, base engine.Profile, policy string, seeds []int64, draw func(*replay.Trace, int64) *replay.Trace, options replay.Options) (*replay.Result, error) {
	name := policyName(policy)
	profile, err := packed(base, policy)
	if err != nil {
		return nil, err
	}
	if options.Drop { // the protocol of the publication
		for i := range profile {
			if profile[i].Name == fgd.Name && profile[i].Arguments == nil {
				profile[i].Arguments = t.FGDArguments()
			}
		}
	}
	movers := profile
	if options.Preemptible = o.replayPauses.given(); options.Preemptible {
		profile = withoutEvictions(profile)
	}
	var defrags []defragDone
	shown := o.program.screen.start()
	defer shown.end()
	var runs []*replay.Run
	var traces []*replay.Trace
	for i, seed := range seeds {
		e, err := engine.New(o.program.registry, profile)
		if err != nil {
			return nil, err
		}
		drawn := draw(t, seed)
		if o.copies > 1 {
			drawn = drawn.Times(o.copies)
		}
		if options.Pauses, err = o.pauses(o.program, []string{o.nodes, o.tasks}, movers, &defrags); err != nil {
			return nil, err
		}
		begin := time.Now()
		options.Engine = e
		options.Clock = func() time.Duration { return time.Since(begin) }
		options.Progress = func(arrived int) {
			o.memory.adjust()
			done := float64(arrived) / float64(max(1, drawn.Len()))
			shown.set("%s, seed %d (%d of %d) %s %3.0f %%, %d of %d jobs", name, seed, i+1, len(seeds), bar(done, 20), 100*done, arrived, drawn.Len())
		}
		var run *replay.Run
		err = o.log.write([]string{o.nodes, o.tasks}, func(log func(cluster.Change) error) (err error) {
			options.Log = log
			run, err = replay.Replay(c.Context(), drawn, options)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s, seed %d: %w", name, seed, err)
		}
		run.State = nil // the memory is needed by the next run
		runs, traces = append(runs, run), append(traces, drawn)
	}
	for i, d := range defrags {
		o.program.note("%s, seed %d: %d of %d tasks were moved when %d %% of the devices had arrived", name, seeds[i], d.moves, d.tasks, o.defragAt)
	}
	return replay.Summarize(traces[0], name, seeds, runs, traces, !options.Drop), nil
}

// bar returns a bar of the width that is filled to the share.
func bar(share float64, width int) string {
	full := int(share * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// parseSeeds reads seeds such as "42..51" or "1,2,7..9".
func parseSeeds(text string) ([]int64, error) {
	var out []int64
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "..")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 64)
		b, err2 := strconv.ParseInt(to, 10, 64)
		if err := errors.Join(err1, err2); err != nil || b < a || b-a >= maxSeeds || len(out) >= maxSeeds {
			return nil, fmt.Errorf("--seeds %q: want at most %d seeds such as 42..51 or 1,2,3", text, maxSeeds)
		}
		for s := a; s <= b; s++ {
			out = append(out, s)
		}
	}
	return out, nil
}

const maxSeeds = 1000

// printReplays prints one line for each policy.
func printReplays(w io.Writer, results []*replay.Result) {
	first := results[0]
	fmt.Fprintf(w, "%s: %s, %s, %s, %s with the first\n\n", first.Trace, counted(first.Nodes, "node"), counted(first.Devices, "device"), counted(len(first.Seeds), "seed"), counted(first.Arrivals[0], "job"))
	header := []string{"POLICY", "ALLOCATED", "FROM", "TO", "FAILED", "DECISIONS/S", "P50", "P99", "P99.9", "MAX"}
	waits := slices.ContainsFunc(results, func(r *replay.Result) bool { return r.Waiting != nil })
	if waits {
		header = append(header, "WAIT P50", "WAIT P99", "WHOLE NODE MEAN", "WHOLE NODE P99")
	}
	evictions := slices.ContainsFunc(results, func(r *replay.Result) bool { return r.Evicted > 0 })
	if evictions {
		header = append(header, "EVICTED")
	}
	rows := [][]string{header}
	for _, r := range results {
		row := []string{
			r.Policy, fmt.Sprintf("%.2f %%", r.Allocation.Mean), fmt.Sprintf("%.2f", slices.Min(r.Allocation.PerSeed)), fmt.Sprintf("%.2f", slices.Max(r.Allocation.PerSeed)),
			fmt.Sprintf("%.1f", r.Failed.Mean), fmt.Sprintf("%.0f", r.Decisions.PerSecond),
			micros(r.Decisions.P50), micros(r.Decisions.P99), micros(r.Decisions.P999), micros(r.Decisions.Max),
		}
		if len(r.Durations) == 0 { // the decisions of a log were not timed
			for i := 5; i < len(row); i++ {
				row[i] = "–"
			}
		}
		if waits {
			all, large := &r.Waiting.All, &r.Waiting.WholeNode
			row = append(row, seconds(all.P50), seconds(all.P99), seconds(large.Mean), seconds(large.P99))
		}
		if evictions {
			row = append(row, english.Thousands(r.Evicted))
		}
		rows = append(rows, row)
	}
	grid(w, rows)
}

func counted(n int, noun string) string { return english.Thousands(n) + " " + english.Noun(n, noun) }

func micros(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.1f ms", v/1000)
	}
	return fmt.Sprintf("%.0f µs", v)
}

func seconds(v float64) string {
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}
