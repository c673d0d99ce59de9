package command

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/explain"
	"github.com/berth-project/berth/timeline"
	"github.com/spf13/pflag"
)

// clockOptions make a simulation one over time.
type clockOptions struct {
	given, started bool
	cycles         int
	start          string
	every, grace   time.Duration
	from           int64
}

func (o *clockOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.cycles, "cycles", 0, fmt.Sprintf("show the course over time: at most so many sessions, up to %d", timeline.MaxCycles))
	f.StringVar(&o.start, "start", "", "when the clock starts, such as 2026-01-02T15:04:05Z; jobs created later arrive later (default: the newest time in the input)")
	f.DurationVar(&o.every, "every", time.Minute, "how far the clock goes from cycle to cycle")
	f.DurationVar(&o.grace, "grace", 0, "how long evicted tasks take to leave; by the next cycle at the earliest")
}

// check reports what makes no sense before anything is read.
func (o *clockOptions) check(f *pflag.FlagSet) error {
	o.given, o.started = f.Changed("cycles"), f.Changed("start")
	if !o.given {
		for _, name := range []string{"start", "every", "grace"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s is about a course over time; say how many --cycles it has", name)
			}
		}
		return nil
	}
	if f.Changed("explain") {
		return fmt.Errorf("--explain is about one moment; leave --cycles out, or --explain")
	}
	if o.started {
		t, err := time.Parse(time.RFC3339Nano, o.start)
		if err != nil {
			return fmt.Errorf("--start %q: want a time such as 2026-01-02T15:04:05Z", o.start)
		}
		if t.Year() < 1970 || t.Year() >= 2200 {
			return fmt.Errorf("--start %s: want a time from 1970 to 2200", o.start)
		}
		o.from = t.UnixNano()
	}
	options := o.options(nil)
	if err := options.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// options start the clock at the newest time of the books unless told otherwise.
func (o *clockOptions) options(state *cluster.State) timeline.Options {
	if state != nil && !o.started {
		o.from = timeline.Newest(state)
	}
	return timeline.Options{Cycles: o.cycles, Start: o.from, Every: int64(o.every), Grace: int64(o.grace)}
}

func (p *program) runTimeline(e *engine.Engine, state *cluster.State, args []string, o simulateOptions) error {
	options := o.clock.options(state)
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
		if err := p.writeCourse(course, o.output); err != nil {
			return err
		}
	}
	if o.fail && pendingTasks(state) > 0 {
		return errNo
	}
	return nil
}

func (p *program) writeCourse(course *timeline.Course, output string) error {
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
		last := explain.Simulation{State: course.State, Refusals: course.Refusals}
		t.refusals(last.Result(false))
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
	workloads("Ended", f.Ends)
	tasks("Left", f.Left)
	workloads("Arrived", f.Arrivals)
	tasks(string(engine.Withdrawn), f.Withdrawn)
	kinds := map[string]engine.EventKind{string(engine.Bind): engine.BoundTo, string(engine.Nominate): engine.NominatedTo, string(engine.EvictIt): engine.Evicted}
	for _, d := range f.Decisions {
		out = append(out, event{Kind: string(kinds[d.Action]), Workload: d.Workload, Task: d.Task, Node: d.Node, Reason: d.Reason, Message: makesRoom(d.For)})
	}
	for _, r := range f.Refusals {
		out = append(out, event{Kind: string(engine.Refused), Workload: r.Workload, Reason: r.Reason, Message: r.Message})
	}
	return out
}
