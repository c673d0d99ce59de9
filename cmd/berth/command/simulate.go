package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/explain"
	"github.com/spf13/cobra"
)

type simulateOptions struct {
	config, output, events string
	explain, check, fail   bool
}

func (p *program) simulate() *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate PATH...",
		Short: "Decide what would run where, and what would have to wait",
		Long: `Decides what would run where, and what would have to wait and why.

A PATH is a file, a directory, or - for standard input.`,
		Example: "  berth simulate examples/quickstart\n  kubectl get nodes,pods -A -o yaml | berth simulate - -o wide",
		Args:    paths(1, "a file or directory that describes a cluster"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runSimulate(args, o) },
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "file with a SchedulerConfiguration")
	f.StringVarP(&o.output, "output", "o", "table", "table, wide, json or yaml")
	f.BoolVar(&o.explain, "explain", false, "list every candidate of every decision and every node of every refusal (json, yaml)")
	f.BoolVar(&o.fail, "fail-on-pending", false, "exit with 1 if anything is left pending")
	f.StringVar(&o.events, "events", "", "write the events as JSON lines to this file; - for standard output, instead of the result")
	f.BoolVar(&o.check, "check", false, "check every decision against a plain scan of all nodes: slow")
	return c
}

func (p *program) runSimulate(args []string, o simulateOptions) error {
	if err := oneOf("--output", o.output, "table", "wide", "json", "yaml"); err != nil {
		return err
	}
	b, err := p.load(args, o.config)
	if err != nil {
		return err
	}
	e, state, err := p.prepare(b)
	if err != nil {
		return err
	}
	options := explain.Options{Explain: o.explain}
	if o.check {
		options.Search = engine.Twin
	}
	sim, err := explain.Simulate(e, state, options)
	if err != nil {
		return err
	}
	if o.events != "" {
		if err := p.writeEvents(o.events, sim); err != nil {
			return err
		}
	}
	if o.events != "-" {
		if err := p.writeResult(sim, args, o); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(sim) > 0 {
		return errNo
	}
	return nil
}

func (p *program) writeResult(sim *explain.Simulation, args []string, o simulateOptions) error {
	switch o.output {
	case "json":
		return writeJSON(p.stdout, sim.Result(o.explain))
	case "yaml":
		return writeYAML(p.stdout, sim.Result(o.explain))
	}
	t := table{w: p.stdout, wide: o.output == "wide", style: explain.Style{Color: p.colors(), Width: columns()}}
	t.print(sim, strings.Join(args, " "))
	return nil
}

func pendingTasks(sim *explain.Simulation) int {
	n := 0
	for _, j := range sim.State.Pending() {
		for _, t := range j.Tasks() {
			if t.Node == nil {
				n++
			}
		}
	}
	return n
}

// event is one line of the event stream. It is API.
type event struct {
	Seq      int    `json:"seq"`
	Kind     string `json:"kind"`
	Workload string `json:"workload"`
	Task     string `json:"task,omitempty"`
	Node     string `json:"node,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

func (p *program) writeEvents(to string, sim *explain.Simulation) (err error) {
	var w io.Writer = p.stdout
	if to != "-" {
		f, err := os.Create(to)
		if err != nil {
			return fmt.Errorf("--events: %w", err)
		}
		defer func() {
			if failed := f.Close(); err == nil {
				err = failed
			}
		}()
		w = f
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, ev := range sim.Events {
		out := event{Seq: i + 1, Kind: string(ev.Kind), Workload: ev.Job.ID}
		if ev.Task != nil {
			out.Task = ev.Task.Name
		}
		if d := ev.Decision; d != nil {
			out.Node, out.Reason = d.Node, string(d.Reason)
			if d.For != "" {
				out.Message = "makes room for " + d.For
			}
		}
		if r := ev.Refusal; r != nil {
			out.Reason, out.Message = string(r.Reason), explain.Message(r)
		}
		if err := enc.Encode(out); err != nil {
			return err
		}
	}
	return nil
}
