package command

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/timeline"
	"github.com/spf13/pflag"
)

// courseOptions make a simulation one over time.
type courseOptions struct {
	given        bool
	cycles       int
	every, grace time.Duration
}

func (o *courseOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.cycles, "cycles", 0, fmt.Sprintf("show the course over time: at most so many sessions, up to %d; jobs created after --now arrive later", timeline.MaxCycles))
	f.DurationVar(&o.every, "every", time.Minute, "how far the clock goes from cycle to cycle")
	f.DurationVar(&o.grace, "grace", 0, "how long evicted tasks take to leave; by the next cycle at the earliest")
}

// check reports what makes no sense before anything is read.
func (o *courseOptions) check(f *pflag.FlagSet) error {
	o.given = f.Changed("cycles")
	if !o.given {
		for _, name := range []string{"every", "grace"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s is about a course over time; say how many --cycles it has", name)
			}
		}
		return nil
	}
	if f.Changed("explain") {
		return fmt.Errorf("--explain is about one moment; leave --cycles out, or --explain")
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

func (p *program) runTimeline(e *engine.Engine, state *cluster.State, args []string, o simulateOptions, now int64, awaits explain.Awaits) error {
	options := o.course.options(now)
	options.Awaits = awaits
	if o.check {
		options.Search = engine.Twin
	}
	course, err := timeline.Run(e, state, options)
	if err != nil {
		return err
	}
	if o.events != "" {
		if err := p.writeEvents(o.events, args, happened(course)); err != nil {
			return err
		}
	}
	if o.events != "-" {
		if err := p.writeCourse(course, awaits, o.output); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(state) > 0 {
		return errNo
	}
	return nil
}

func (p *program) writeCourse(course *timeline.Course, awaits explain.Awaits, output string) error {
	switch output {
	case "json":
		return writeJSON(p.stdout, course.Result())
	case "yaml":
		return writeYAML(p.stdout, course.Result())
	}
	t := table{w: p.stdout, wide: output == "wide", style: explain.Style{Color: p.terminal, Width: columns()}}
	course.Picture(t.w, t.style, t.wide)
	fmt.Fprintln(t.w)
	course.Story(t.w, t.style, t.wide)
	if len(course.Refusals) > 0 {
		results := explain.Results{Phrases: course.Phrases, State: course.State, Awaits: awaits}
		t.refusals(results.Of(&engine.Outcome{Refusals: course.Refusals}, false))
		fmt.Fprintln(t.w)
	}
	course.Summary().Text(t.w)
	return nil
}

// happened are the events of a course.
func happened(course *timeline.Course) iter.Seq[event] {
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
	workloads := func(kind string, ids []string) {
		for _, id := range ids {
			out = append(out, event{Kind: kind, Workload: id})
		}
	}
	tasks := func(kind string, ids []string) {
		for _, id := range ids {
			i := strings.LastIndexByte(id, '/')
			out = append(out, event{Kind: kind, Workload: id[:i], Task: id[i+1:]})
		}
	}
	workloads(ended, f.Ends)
	tasks(left, f.Left)
	workloads(arrived, f.Arrivals)
	tasks(string(engine.Withdrawn), f.Withdrawn)
	kinds := map[string]engine.EventKind{string(engine.Bind): engine.BoundTo, string(engine.Nominate): engine.NominatedTo, string(engine.EvictTask): engine.Evicted}
	for _, d := range f.Decisions {
		out = append(out, event{Kind: string(kinds[d.Action]), Workload: d.Workload, Task: d.Task, Node: d.Node, For: d.For, Landing: d.Landing, Reason: d.Reason, Message: makesRoom(d.For)})
	}
	for _, r := range f.Refusals {
		out = append(out, event{Kind: string(engine.Refused), Workload: r.Workload, Reason: r.Reason, Permanent: &r.Permanent, Cure: r.Cure, Awaits: r.Awaits, Message: r.Message})
	}
	return out
}
