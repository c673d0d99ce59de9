package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/timeline"
)

// checker holds what came out, by name.
type checker struct {
	sim       *sim.Simulation
	results   explain.Results
	course    *timeline.Course // nil: one moment
	jobs      map[string]*cluster.Job
	tasks     map[string]*cluster.Task
	decisions map[string]*engine.Decision // the one with the scores, by task
	refusals  map[string]*engine.Refusal
	requests  []model.NodeRequest
	out       []Mismatch
}

func check(s *v1alpha1.Scenario, simulation *sim.Simulation, results explain.Results, requests []model.NodeRequest) []Mismatch {
	results.Awaits = model.Create(model.Provisions(requests, simulation.State))
	c := newChecker(simulation, results)
	c.requests = requests
	for _, j := range simulation.State.Jobs() {
		c.know(j)
	}
	c.expectation(&s.Expect)
	return c.out
}

func newChecker(simulation *sim.Simulation, results explain.Results) *checker {
	return &checker{sim: simulation, results: results, jobs: map[string]*cluster.Job{}, tasks: map[string]*cluster.Task{}, decisions: map[string]*engine.Decision{}, refusals: map[string]*engine.Refusal{}}
}

func (c *checker) know(j *cluster.Job) {
	c.jobs[j.ID] = j
	for _, t := range j.Tasks() {
		c.tasks[t.ID] = t
	}
}

func (c *checker) expectation(e *v1alpha1.Expectation) {
	for i := range c.sim.Decisions {
		if d := &c.sim.Decisions[i]; d.Action != engine.EvictTask && (c.decisions[d.Task.ID()] == nil || len(d.Score.Parts) > 0) {
			c.decisions[d.Task.ID()] = d
		}
	}
	for _, r := range c.sim.Refusals {
		c.refusals[r.Job] = r
	}
	each(e.Placements, c.placement)
	each(e.Devices, c.devices)
	each(e.Groups, c.group)
	each(e.Forms, c.form)
	each(e.Keep, c.keep)
	each(e.Provisions, c.provision)
	for _, id := range e.Pending {
		c.pending(id)
	}
	for i := range e.Refusals {
		c.refusal(&e.Refusals[i])
	}
	each(e.Scores, c.scores)
	c.evictions(e.Evictions)
}

// each visits a map in the order of its keys, so that reports do not change from run to run.
func each[V any](m map[string]V, visit func(string, V)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		visit(k, m[k])
	}
}

func (c *checker) differ(what, want, got string) {
	c.out = append(c.out, Mismatch{what, want, got})
}

// job finds a workload by ID; a job may leave "job/" out.
func (c *checker) job(id string) *cluster.Job {
	for _, try := range []string{id, "job/" + id} {
		if j := c.jobs[try]; j != nil {
			return j
		}
	}
	c.differ("workload "+id, "to be there", "no such workload"+nearest.Hint(id, slices.Sorted(maps.Keys(c.jobs))))
	return nil
}

// task finds a task by ID; "job/" may be left out, and the only task of a workload too.
func (c *checker) task(id string) *cluster.Task {
	for _, try := range []string{id, "job/" + id} {
		if t := c.tasks[try]; t != nil {
			return t
		}
		if j := c.jobs[try]; j != nil && len(j.Tasks()) == 1 {
			return j.Tasks()[0]
		}
	}
	c.differ("task "+id, "to be there", "no such task"+nearest.Hint(id, slices.Sorted(maps.Keys(c.tasks))))
	return nil
}

func (c *checker) placement(id, want string) {
	if t := c.task(id); t != nil {
		if got := c.nodeOf(t); got != want {
			c.differ("placement of "+id, want, got)
		}
	}
}

func (c *checker) nodeOf(t *cluster.Task) string {
	switch {
	case t.Node != nil:
		return t.Node.Name
	case c.sim.State.Job(t.Job.ID) == nil:
		return c.absent(t.Job.ID)
	}
	return "pending"
}

func (c *checker) devices(id string, want []int) {
	t := c.task(id)
	if t == nil {
		return
	}
	got := []int{}
	for _, x := range t.Claims {
		got = append(got, x.Device)
	}
	if sorted := slices.Sorted(slices.Values(want)); !slices.Equal(sorted, got) {
		c.differ("devices of "+id, fmt.Sprint(sorted), fmt.Sprint(got))
	}
}

func (c *checker) group(id, want string) {
	j := c.job(id)
	if j == nil {
		return
	}
	for _, t := range j.Tasks() {
		got := c.nodeOf(t)
		if t.Node != nil && t.Node.Group() != nil {
			k := t.Node.Group().Key
			if names(want, k) {
				continue
			}
			got = k.String()
		}
		c.differ("group of "+id, want, got)
		return
	}
}

func (c *checker) pending(id string) {
	j := c.job(id)
	if j == nil {
		return
	}
	if c.sim.State.Job(j.ID) == nil {
		c.differ("workload "+id, "pending", c.absent(j.ID))
		return
	}
	for _, t := range j.Tasks() {
		if t.Node != nil {
			c.differ("workload "+id, "pending", fmt.Sprintf("%s on %s", t.Name, t.Node.Name))
			return
		}
	}
}

func (c *checker) refusal(want *v1alpha1.ExpectedRefusal) {
	j := c.job(want.Workload)
	if j == nil {
		return
	}
	r := c.refusals[j.ID]
	if r == nil {
		got := "none: it is placed"
		if c.sim.State.Job(j.ID) == nil {
			got = "none: it is " + c.absent(j.ID)
		}
		c.differ("refusal of "+want.Workload, orAny(want.Reason), got)
		return
	}
	if want.Reason != "" && want.Reason != string(r.Reason) {
		c.differ("refusal of "+want.Workload, want.Reason, string(r.Reason))
	}
	said := c.results.Refusal(r, false)
	if p := want.Permanent; p != nil && *p != said.Permanent {
		c.differ("refusal of "+want.Workload+", permanent", strconv.FormatBool(*p), strconv.FormatBool(said.Permanent))
	}
	if !strings.Contains(said.Message, want.Message) {
		c.differ("message for "+want.Workload, strconv.Quote(want.Message), strconv.Quote(said.Message))
	}
	if want.Counts == nil {
		return
	}
	got := map[string]int{}
	for _, x := range c.results.Of(&c.sim.Outcome, false).Refusals {
		if x.Workload == j.ID {
			got = x.Counts
		}
	}
	if !maps.Equal(want.Counts, got) {
		c.differ("nodes by reason for "+want.Workload, fmt.Sprint(want.Counts), fmt.Sprint(got))
	}
}

func orAny(reason string) string {
	if reason == "" {
		return "a refusal"
	}
	return reason
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// evictions, where named, are all there are; an empty list says that there are none.
func (c *checker) evictions(want []string) {
	if want == nil {
		return
	}
	var ids, got []string
	for _, id := range want {
		if t := c.task(id); t != nil {
			ids = append(ids, t.ID)
		}
	}
	for i := range c.sim.Decisions {
		if d := &c.sim.Decisions[i]; d.Action == engine.EvictTask {
			got = append(got, d.Task.ID())
		}
	}
	got = append(got, c.evictedInTime()...)
	slices.Sort(ids)
	slices.Sort(got)
	if !slices.Equal(ids, got) {
		c.differ("evictions", orNone(ids), orNone(got))
	}
}
