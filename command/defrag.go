package command

import (
	"errors"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/defrag"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

// defragPacking is the policy by which tasks that move are packed.
const defragPacking = "best-fit"

type defragOptions struct {
	inputFlags
	output   string
	forJob   string
	free     string
	policy   string
	maxMoves int
}

func defragCommand(p *program) *cobra.Command {
	var o defragOptions
	c := &cobra.Command{
		Use:   "defrag PATH...",
		Short: "Plan moves of running tasks that free devices or nodes, or let pending jobs in",
		Long: `Plans moves of running tasks, and prints them in the order in which they are to be
carried out, with what each gains. It changes nothing in a cluster.

Each move is onto room that is free at that moment, so the moves can be carried
out one after the other. A task moves only if the engine would move it: its job is
preemptible, its minimum run time has passed, no disruption budget protects it, and
filters, affinity and topology accept the other node. Tasks of whole-node jobs stay.

Without --free, room is made for the pending jobs, in the order of their turns; if
no job is pending, whole nodes are freed. --free selects what is freed instead:

  devices  devices of which nothing is held
  nodes    nodes of which no device is held
  room     free room that tasks like those that arrived cannot use becomes room
           that they can use

The moves that gain most are found first. docs/defrag.md explains the output.`,
		Example: "  berth defrag cluster/\n  berth defrag cluster/ --for job/train-70b\n  berth defrag now.json --free nodes --max-moves 20",
		Args:    minArgs(1, "a file or directory that describes a cluster"),
		RunE:    func(_ *cobra.Command, args []string) error { return o.run(p, args) },
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "table", "format of the plan: table, wide, json or yaml")
	f.StringVar(&o.forJob, "for", "", "job/NAME: make room for this pending job and no other")
	f.StringVar(&o.free, "free", "", "what is freed: devices, nodes or room")
	f.StringVar(&o.policy, "policy", defragPacking, "how tasks that move are packed: a word of packing in a SchedulerConfiguration")
	f.IntVar(&o.maxMoves, "max-moves", 0, "move at most this number of tasks; 0: a tenth of the tasks that run, or 8 if that is more")
	o.inputFlags.addFlags(c)
	completeValues(c, "output", "table", "wide", "json", "yaml")
	completeValues(c, "free", "devices", "nodes", "room")
	completeValues(c, "policy", standard.Policies()...)
	completeFlag(c, "for", completePending)
	return c
}

func (o *defragOptions) run(p *program, args []string) error {
	if err := oneOf("--output", o.output, "table", "wide", "json", "yaml"); err != nil {
		return err
	}
	if o.free != "" {
		if err := oneOf("--free", o.free, "devices", "nodes", "room"); err != nil {
			return err
		}
	}
	switch {
	case o.free != "" && o.forJob != "":
		return errors.New("--for and --free are two goals; give one of them")
	case o.maxMoves < 0:
		return fmt.Errorf("--max-moves: want 0 or more, have %d", o.maxMoves)
	}
	in, err := p.open(args, &o.inputFlags)
	if err != nil {
		return err
	}
	e, err := o.engine(p, in.bundle)
	if err != nil {
		return err
	}
	options, err := o.plan(in)
	if err != nil {
		return err
	}
	noteLimits(p, in.state, options)
	shown := p.screen.start()
	options.Progress = func(moves, steps int) {
		shown.set("planning: %s found, %s tried", english.Count(moves, "move"), english.Thousands(steps))
	}
	plan, err := defrag.Make(e, in.state, options)
	shown.end()
	if err != nil {
		return err
	}
	v := defragView{engine: e, state: in.state, plan: plan, options: options}
	if result := v.result(); o.output == "json" || o.output == "yaml" {
		err = p.writeData(o.output, result)
	} else {
		v.print(p.stdout, result, o.output == "wide")
	}
	if err == nil && options.Job != "" && len(plan.Refused) > 0 {
		return errNo
	}
	return err
}

// engine returns an engine of the profiles of the input that packs tasks by the policy.
func (o *defragOptions) engine(p *program, b *manifest.Bundle) (*engine.Engine, error) {
	profiles, err := scenario.Profiles(b)
	if err != nil {
		return nil, err
	}
	for i := range profiles {
		if profiles[i].Plugins, err = standard.Pack(profiles[i].Plugins, o.policy); err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
	}
	e, err := engine.NewProfiles(p.registry, profiles)
	if err != nil {
		return nil, err
	}
	e.Resume(b.Parameters())
	return e, nil
}

// plan returns what is planned.
func (o *defragOptions) plan(in *input) (defrag.Options, error) {
	out := defrag.Options{Goal: defrag.Goal(o.free), MostMoves: o.maxMoves, Now: in.now}
	if out.MostMoves == 0 {
		out.MostMoves = max(8, runningTasks(in.state)/10)
	}
	switch {
	case o.forJob != "":
		id, err := workload(in.state, in.bundle.LeftOutWorkloads(), o.forJob)
		if err != nil {
			return out, fmt.Errorf("--for: %w", err)
		}
		j := in.state.Job(id)
		switch {
		case j == nil:
			return out, fmt.Errorf("--for %s: it has several replicas; name one of its jobs, such as %s", id, in.state.View().Sets().Jobs(id)[0].ID)
		case !in.state.View().IsPending(j):
			return out, fmt.Errorf("--for %s: the job is not pending, so it needs no room", id)
		}
		out.Goal, out.Job = defrag.Jobs, id
	case o.free == "" && len(in.state.Pending()) > 0:
		out.Goal = defrag.Jobs
	case o.free == "":
		out.Goal = defrag.Nodes
	}
	return out, nil
}

// noteLimits notes what the plan does not consider.
func noteLimits(p *program, s *cluster.State, o defrag.Options) {
	if n := len(s.Pending()); n > 0 && o.Goal != defrag.Jobs {
		p.note("%s pending and may be placed on what the moves free; without --free, room is made for pending jobs", english.Count(n, "job")+" "+isOrAre(n))
	}
	if o.Goal == defrag.Room && len(s.View().Demand().Requests) == 0 {
		p.note("no job has arrived in this input, so that it is not known which room is of use; use --free devices or --free nodes")
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
