package cures

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/wire"
)

// Report counts what was checked.
type Report struct {
	Refusals int // workloads that were refused
	Cures    int // changes that berth why said would help
	// Curable is how many of the refused workloads have a single change that helps, as far as
	// berth why or brute force found one.
	Curable  int
	Missed   []Finding // curable workloads for which berth why lists no change that helps
	Problems []Finding // changes that are not true, and failures
}

// Finding is something that is wrong in an answer of berth.
type Finding struct {
	Workload string
	Text     string
	Input    Input
}

// Add adds the counts and findings of another report.
func (r *Report) Add(o Report) {
	r.Refusals += o.Refusals
	r.Cures += o.Cures
	r.Curable += o.Curable
	r.Missed = append(r.Missed, o.Missed...)
	r.Problems = append(r.Problems, o.Problems...)
}

// Check asks berth why about each workload that is refused, at most most, and checks the answers.
func Check(in Input, most int) Report {
	var out Report
	c := &checker{in: in, report: &out}
	base, err := in.simulate()
	if err != nil {
		c.problem("", "%v", err)
		return out
	}
	c.base = base
	for i := range base.Refusals {
		if out.Refusals == most {
			break
		}
		out.Refusals++
		c.check(&base.Refusals[i])
	}
	return out
}

type checker struct {
	in     Input
	base   *wire.Result
	report *Report
}

func (c *checker) problem(workload, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Finding{workload, fmt.Sprintf(format, args...), c.in})
}

func (c *checker) check(refused *wire.Refusal) {
	report, err := c.in.why(refused.Workload)
	if err != nil {
		c.problem(refused.Workload, "%v", err)
		return
	}
	helped := false
	for i := range report.Trials {
		if t := &report.Trials[i]; t.Fits {
			c.report.Cures++
			helped = true
			c.checkTrial(refused, t)
		}
	}
	if helped {
		c.report.Curable++
		return
	}
	for _, arguments := range c.in.changes(refused.Workload) {
		changed, err := c.in.Carry(arguments)
		if err != nil {
			continue
		}
		if after, err := changed.simulate(); err == nil && c.fits(refused, after) { // an invalid change is no cure
			c.report.Curable++
			c.report.Missed = append(c.report.Missed, Finding{refused.Workload, strings.Join(arguments, " "), c.in})
			return
		}
	}
}

// checkTrial carries out a change that berth why says would help, on the manifests and with
// berth whatif.
func (c *checker) checkTrial(refused *wire.Refusal, t *wire.Trial) {
	if len(t.Arguments) == 0 {
		c.problem(refused.Workload, "%q has no arguments", t.Change)
		return
	}
	changed, err := c.in.Carry(t.Arguments)
	if err != nil {
		c.problem(refused.Workload, "%q: %v: %v", t.Change, t.Arguments, err)
		return
	}
	after, err := changed.simulate()
	switch {
	case err != nil:
		c.problem(refused.Workload, "%q: %v: %v", t.Change, t.Arguments, err)
		return
	case !c.fits(refused, after):
		c.problem(refused.Workload, "%q: %v does not help", t.Change, t.Arguments)
		return
	}
	d, err := c.in.whatif(t.Arguments)
	if err != nil {
		c.problem(refused.Workload, "%q: %v", t.Change, err)
		return
	}
	if !slices.ContainsFunc(d.Placed, func(m wire.Move) bool { return m.Workload == refused.Workload }) {
		c.problem(refused.Workload, "%q: berth whatif %v places no task of it", t.Change, t.Arguments)
	}
	without := victims(c.base)
	evicted := slices.DeleteFunc(victims(after), func(id string) bool { return id == refused.Workload || slices.Contains(without, id) })
	listed := slices.Sorted(slices.Values(t.Evicts))
	if !slices.Equal(evicted, listed) {
		c.problem(refused.Workload, "%q evicts %v, and %v evicts %v", t.Change, listed, t.Arguments, evicted)
	}
	for _, id := range listed {
		if !slices.ContainsFunc(d.Evicted, func(e wire.EvictedTask) bool { return e.Workload == id }) && !slices.ContainsFunc(d.Pending, func(m wire.Move) bool { return m.Workload == id }) {
			c.problem(refused.Workload, "%q evicts %s, and berth whatif %v does not", t.Change, id, t.Arguments)
		}
	}
}

// victims returns the workloads that are evicted, and not only moved, sorted.
func victims(r *wire.Result) []string {
	var out []string
	for _, d := range r.Decisions {
		if d.Action == "Evict" && d.Landing == "" && !slices.Contains(out, d.Workload) {
			out = append(out, d.Workload)
		}
	}
	slices.Sort(out)
	return out
}

// fits reports whether the refused workload is placed: its minimum or, if only surplus tasks
// were refused, all of its tasks.
func (c *checker) fits(refused *wire.Refusal, after *wire.Result) bool {
	for i := range after.Refusals {
		if r := &after.Refusals[i]; r.Workload == refused.Workload && (refused.Surplus || !r.Surplus) {
			return false
		}
	}
	// A task is placed at the end, or was evicted without the change and is not evicted with it.
	// Otherwise a change has removed the workload.
	placed := map[string]bool{}
	for _, list := range [][]wire.Decision{c.base.Decisions, after.Decisions} {
		for _, d := range list {
			if d.Workload == refused.Workload {
				placed[d.Task] = d.Action != "Evict"
			}
		}
	}
	for _, d := range c.base.Decisions {
		evicted := func(x wire.Decision) bool { return x.Workload == d.Workload && x.Task == d.Task && x.Action == "Evict" }
		if d.Workload == refused.Workload && evicted(d) && !slices.ContainsFunc(after.Decisions, evicted) {
			placed[d.Task] = true
		}
	}
	return slices.Contains(slices.Collect(maps.Values(placed)), true)
}
