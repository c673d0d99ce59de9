package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/whatif"
	fairshareplugin "github.com/berth-project/berth/plugins/fairshare"
	"github.com/spf13/cobra"
)

// Answers writes what the commands of berth answer, for a program that reads its cluster
// from elsewhere than files. The words and the formats are those of berth.
type Answers struct {
	p       *program
	command string // what a user types to run the program
}

// Cluster is a cluster that a program has read.
type Cluster struct {
	Engine *engine.Engine
	State  *cluster.State // answers change it
	Now    int64          // the time of the sessions, in nanoseconds since 1970
	// Rekey sets the Key of a shape that was edited; see whatif.Question. It may be nil.
	Rekey func(role string, shape *cluster.Shape)
	// Models are the models of which replicas are jobs of the State; nil if there are none.
	Models *Models
	// Session is the session of a scheduler that Simulate runs; nil: sessions are run until
	// nothing is decided any more.
	Session *OneSession
}

// OneSession is a session that is run by itself.
type OneSession struct {
	Hold    int64                 // see engine.Options
	Tried   []string              // the workloads that had a turn in it, in this order
	Decided func(*engine.Outcome) // is called with what was decided
}

// Run runs the command line that build returns, and returns the exit code as Main does. The
// name is what a user types to run the program; messages begin with it.
func Run(name string, args []string, stdin io.Reader, stdout, stderr io.Writer, build func(*Answers) *cobra.Command) (code int) {
	colors := isColorTerminal(stdout)
	buffer := bufio.NewWriterSize(stdout, 1<<16)
	stderr = &textWriter{w: stderr}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "%s: this is a bug, please report it with the input that caused it: %v\n\n%s", name, p, debug.Stack())
			code = exitBug
		}
	}()
	a := &Answers{&program{stdin: stdin, stdout: &textWriter{w: buffer, color: colors}, stderr: stderr, terminal: colors}, name}
	root := build(a)
	root.SilenceErrors, root.SilenceUsage, root.PersistentPreRunE = true, true, rejectEmptyFlags
	root.SetIn(stdin)
	root.SetOut(a.p.stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(safeArgs(args))
	err := root.Execute()
	if flushErr := buffer.Flush(); flushErr != nil && (err == nil || errors.Is(err, errNo)) {
		err = fmt.Errorf("the output could not be written: %w", flushErr)
	}
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE): // the reader, such as head, closed the pipe
		return exitOK
	case errors.Is(err, errNo):
		return exitNo
	}
	var inputErrors manifest.Errors
	if errors.As(err, &inputErrors) {
		fmt.Fprintln(stderr, err)
	} else {
		fmt.Fprintln(stderr, name+": "+inOneLine(strings.TrimSpace(err.Error()), args))
	}
	return exitInput
}

// Stdout returns the writer of answers. It replaces control characters.
func (a *Answers) Stdout() io.Writer { return a.p.stdout }

// Stderr returns the writer of notes. It replaces control characters.
func (a *Answers) Stderr() io.Writer { return a.p.stderr }

// Style returns how pictures are drawn on standard output.
func (a *Answers) Style() explain.Style {
	return explain.Style{Color: a.p.terminal, Width: columns()}
}

// Grid writes rows in aligned columns.
func (a *Answers) Grid(rows [][]string) { grid(a.p.stdout, rows) }

// JSON writes the value as JSON.
func (a *Answers) JSON(v any) error { return writeJSON(a.p.stdout, v) }

// OutputFlag adds the flag -o with the values that the command writes. The first value is the
// default.
func OutputFlag(c *cobra.Command, output *string, values ...string) {
	c.Flags().StringVarP(output, "output", "o", values[0], "format of the answer: "+strings.Join(values[:len(values)-1], ", ")+" or "+values[len(values)-1])
	completeValues(c, "output", values...)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := oneOf("--output", *output, values...); err != nil {
			return err
		}
		return run(c, args)
	}
}

// MinArgs requires at least n arguments. The error for fewer says what the command needs.
func MinArgs(n int, what string) cobra.PositionalArgs { return minArgs(n, what) }

// Why writes why the workload is placed where it is, or why it is pending and what would help.
func (a *Answers) Why(c Cluster, workload, output string) error {
	q := whatif.Question{Engine: c.Engine, State: c.State, Workload: workload, Now: c.Now, Rekey: c.Rekey}
	if c.Models != nil {
		q.Knobs = knobs(c.Models.Plans, c.Models.Fleet, c.Models.Adopt)
	}
	report, err := whatif.Why(q)
	if err != nil {
		return err
	}
	provision := c.provision(&report.Report)
	if output == "json" {
		return a.JSON(whyResult{Report: &report.Report, Provision: provision})
	}
	report.Text(a.p.stdout)
	writeProvision(a.p.stdout, provision)
	return nil
}

// WhatIf writes in what the decisions about two clusters differ.
func (a *Answers) WhatIf(before, after Cluster, output string) error {
	was, err := sim.Simulate(before.Engine, before.State, sim.Options{Now: before.Now})
	if err != nil {
		return err
	}
	now, err := sim.Simulate(after.Engine, after.State, sim.Options{Now: after.Now})
	if err != nil {
		return err
	}
	d := whatif.Compare(explain.PhrasesOf(after.Engine), was, now)
	if output == "json" {
		return a.JSON(d)
	}
	explain.WriteDifference(a.p.stdout, d)
	return nil
}

// RemoveNode removes a node that --remove names.
func RemoveNode(state *cluster.State, name string) error { return removeNode(state, name) }

// AddNodes adds the nodes that the values of --add-nodes describe.
func AddNodes(state *cluster.State, specs []string) error { return addNodes(state, specs) }

// Shares returns the tree of queues with the fair shares that the profile computes.
func Shares(c Cluster, profile engine.Profile) (*fairshare.Tree, error) {
	settings, err := settingsOf(profile)
	if err != nil {
		return nil, err
	}
	settings.Decay.Now = c.Now
	return viewQueues(c.State, settings).tree, nil
}

// Queues writes the quota, use and fair share of each queue.
func (a *Answers) Queues(c Cluster, profile engine.Profile, output string) error {
	settings, err := settingsOf(profile)
	if err != nil {
		return err
	}
	settings.Decay.Now = c.Now
	v := viewQueues(c.State, settings)
	if output == "json" {
		return a.JSON(v.result())
	}
	v.table(a.p, output == "wide")
	return nil
}

// settingsOf returns the settings with which the profile computes fair shares.
func settingsOf(profile engine.Profile) (fairshare.Settings, error) {
	for _, p := range profile {
		if p.Name == fairshareplugin.Name && p.Arguments != nil {
			return fairshareplugin.ReadSettings(p.Arguments)
		}
	}
	return fairshare.Settings{}, nil
}

// SimulateOptions are the flags of simulate.
type SimulateOptions struct {
	Output                 string // table, wide, json or yaml
	Explain, FailOnPending bool
}

// Simulate writes on which nodes and devices the pending jobs would be placed.
func (a *Answers) Simulate(c Cluster, o SimulateOptions) error {
	if o.Explain {
		if err := checkExplainSize(c.State); err != nil {
			return err
		}
	}
	options := sim.Options{Explain: o.Explain, Now: c.Now}
	if c.Session != nil {
		options.Once = &sim.OneSession{Hold: c.Session.Hold, Tried: c.Session.Tried}
	}
	s, err := sim.Simulate(c.Engine, c.State, options)
	if err != nil {
		return err
	}
	if c.Session != nil {
		c.Session.Decided(&s.Outcome)
	}
	results := explain.Results{Phrases: explain.PhrasesOf(c.Engine), State: c.State}
	switch o.Output {
	case "json":
		err = writeJSON(a.p.stdout, simulateResult{Result: results.Of(&s.Outcome, o.Explain)})
	case "yaml":
		err = writeYAML(a.p.stdout, simulateResult{Result: results.Of(&s.Outcome, o.Explain)})
	default:
		a.simulation(s, results, o.Output == "wide")
	}
	if err == nil && o.FailOnPending && pendingTasks(c.State) > 0 {
		return errNo
	}
	return err
}

// simulation writes the result of simulate as text.
func (a *Answers) simulation(s *sim.Simulation, results explain.Results, wide bool) {
	t := table{w: a.p.stdout, wide: wide, style: a.Style()}
	t.style.Wide = wide
	result := results.Of(&s.Outcome, false)
	t.decisions(result)
	t.rankings(result)
	if len(s.State.Nodes()) > 0 {
		explain.Picture(t.w, s.State, t.style)
		fmt.Fprintln(t.w)
	}
	t.refusals(result)
	if len(result.Refusals) > 0 {
		fmt.Fprintf(t.w, "  What would help: %s why %s\n\n", a.command, result.Refusals[0].Workload)
	}
	placed := map[string]bool{}
	for _, d := range result.Decisions {
		if d.Action != "Evict" {
			placed[d.Workload+"/"+d.Task] = true
		}
	}
	fmt.Fprintln(t.w, explain.TotalsText(len(placed), pendingTasks(s.State)))
}
