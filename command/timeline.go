package command

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim/timeline"
	"github.com/spf13/pflag"
)

// courseOptions are the flags of a simulation over time, which is called a course.
type courseOptions struct {
	given        bool // --cycles is set
	cycles       int
	every, grace time.Duration
}

func (o *courseOptions) addFlags(f *pflag.FlagSet) {
	f.IntVar(&o.cycles, "cycles", 0, fmt.Sprintf("simulate a period of time that starts at --now, with at most this number of sessions (up to %d)", timeline.MaxCycles))
	f.DurationVar(&o.every, "every", time.Minute, "time between two cycles on the virtual clock")
	f.DurationVar(&o.grace, "grace", 0, "time that an evicted task takes to stop; it has stopped in the next cycle at the earliest")
}

// check returns an error for flags that cannot be combined or are out of range. It
// is called before any input is read.
func (o *courseOptions) check(f *pflag.FlagSet) error {
	o.given = f.Changed("cycles")
	if !o.given {
		for _, name := range []string{"every", "grace"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s applies only to a simulation over time; add --cycles", name)
			}
		}
		return nil
	}
	if f.Changed("explain") {
		return fmt.Errorf("--explain applies only to a single session; omit --cycles or --explain")
	}
	options := o.options(0)
	if err := options.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func (o *courseOptions) options(now int64) timeline.Options {
	return timeline.Options{Cycles: o.cycles, Start: now, Every: int64(o.every), Grace: int64(o.grace)}
}

func (p *program) runTimeline(in *input, args []string, o simulateOptions) error {
	options := o.course.options(in.now)
	options.AwaitedNodes = model.NodesToCreate(model.Provisions(in.bundle.NodeRequests(), in.state))
	if o.check {
		options.Search = engine.Twin
	}
	course, err := timeline.Run(in.engine, in.state, options)
	if err != nil {
		return err
	}
	if o.events != "" {
		if err := p.writeEvents(o.events, args, courseEvents(course)); err != nil {
			return err
		}
	}
	if o.events != "-" {
		if err := p.writeCourse(course, options.AwaitedNodes, o.output); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(in.state) > 0 {
		return errNo
	}
	return nil
}

func (p *program) writeCourse(course *timeline.Timeline, awaited explain.AwaitedNodes, output string) error {
	if output == "json" || output == "yaml" {
		return p.writeData(output, course.Result())
	}
	t := table{w: p.stdout, wide: output == "wide", style: explain.Style{Color: p.terminal, Width: columns()}}
	course.Picture(t.w, t.style, t.wide)
	fmt.Fprintln(t.w)
	course.Story(t.w, t.style, t.wide)
	if len(course.Refusals) > 0 {
		results := explain.Results{Phrases: course.Phrases, State: course.State, AwaitedNodes: awaited}
		t.refusals(results.Of(&engine.Outcome{Refusals: course.Refusals}, false))
		fmt.Fprintln(t.w)
	}
	course.Summary().Text(t.w)
	return nil
}

// courseEvents returns the events of a simulation over time.
func courseEvents(course *timeline.Timeline) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, f := range course.Frames {
			for _, line := range frameEvents(f) {
				line.Time = f.Time
				if !yield(line) {
					return
				}
			}
		}
	}
}

func frameEvents(f *timeline.Frame) []event {
	var out []event
	addWorkloads := func(kind string, ids []string) {
		for _, id := range ids {
			out = append(out, event{Kind: kind, Workload: id})
		}
	}
	addTasks := func(kind string, ids []string) {
		for _, id := range ids {
			i := strings.LastIndexByte(id, '/')
			out = append(out, event{Kind: kind, Workload: id[:i], Task: id[i+1:]})
		}
	}
	addWorkloads(ended, f.Ends)
	addTasks(left, f.Stopped)
	addWorkloads(arrived, f.Arrivals)
	addTasks(string(engine.Withdrawn), f.Withdrawn)
	kinds := map[string]engine.EventKind{string(engine.Bind): engine.BoundTo, string(engine.Nominate): engine.NominatedTo, string(engine.EvictTask): engine.Evicted}
	for _, d := range f.Decisions {
		out = append(out, event{Kind: string(kinds[d.Action]), Workload: d.Workload, Task: d.Task, Node: d.Node, For: d.For, Landing: d.Landing, Reason: d.Reason, Message: makesRoom(d.For)})
	}
	for _, r := range f.Refusals {
		out = append(out, event{Kind: string(engine.Refused), Workload: r.Workload, Reason: r.Reason, Permanent: &r.Permanent, Cure: r.Cure, AwaitedNodes: r.AwaitedNodes, Message: r.Message})
	}
	return out
}
