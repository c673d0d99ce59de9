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
	"github.com/berth-project/berth/internal/sim/timeline"
)

// checker compares a result with an expectation. Its maps have the result by ID.
type checker struct {
	sim       *sim.Simulation
	results   explain.Results
	timeline  *timeline.Timeline // nil if the scenario has no cycles
	jobs      map[string]*cluster.Job
	tasks     map[string]*cluster.Task
	decisions map[string]*engine.Decision // by task; of several decisions, the one with scores
	refusals  map[string]*engine.Refusal
	requests  []model.NodeRequest
	out       []Mismatch
}

func check(s *v1alpha1.Scenario, simulation *sim.Simulation, results explain.Results, requests []model.NodeRequest) []Mismatch {
	results.AwaitedNodes = model.NodesToCreate(model.Provisions(requests, simulation.State))
	c := newChecker(simulation, results)
	c.requests = requests
	for _, j := range simulation.State.Jobs() {
		c.addJob(j)
	}
	c.expectation(&s.Expect)
	return c.out
}

func newChecker(simulation *sim.Simulation, results explain.Results) *checker {
	return &checker{sim: simulation, results: results, jobs: map[string]*cluster.Job{}, tasks: map[string]*cluster.Task{}, decisions: map[string]*engine.Decision{}, refusals: map[string]*engine.Refusal{}}
}

func (c *checker) addJob(j *cluster.Job) {
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
	each(e.Layers, c.layers)
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

// each visits a map in the order of its keys, so that equal results give equal output.
func each[V any](m map[string]V, visit func(string, V)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		visit(k, m[k])
	}
}

func (c *checker) mismatch(what, want, got string) {
	c.out = append(c.out, Mismatch{what, want, got})
}

// job returns the workload with the ID. The prefix "job/" may be omitted.
func (c *checker) job(id string) *cluster.Job {
	for _, try := range []string{id, "job/" + id} {
		if j := c.jobs[try]; j != nil {
			return j
		}
	}
	c.mismatch("workload "+id, "to exist", "no such workload"+nearest.Hint(id, slices.Sorted(maps.Keys(c.jobs))))
	return nil
}

// task returns the task with the ID. The prefix "job/" may be omitted, and so may the
// name of the task if the workload has only one.
func (c *checker) task(id string) *cluster.Task {
	for _, try := range []string{id, "job/" + id} {
		if t := c.tasks[try]; t != nil {
			return t
		}
		if j := c.jobs[try]; j != nil && len(j.Tasks()) == 1 {
			return j.Tasks()[0]
		}
	}
	c.mismatch("task "+id, "to exist", "no such task"+nearest.Hint(id, slices.Sorted(maps.Keys(c.tasks))))
	return nil
}

func (c *checker) placement(id, want string) {
	if t := c.task(id); t != nil {
		if got := c.nodeOf(t); got != want {
			c.mismatch("placement of "+id, want, got)
		}
	}
}

func (c *checker) nodeOf(t *cluster.Task) string {
	switch {
	case t.Node != nil:
		return t.Node.Name
	case c.sim.State.Job(t.Job.ID) == nil:
		return c.absentStatus(t.Job.ID)
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
		c.mismatch("devices of "+id, fmt.Sprint(sorted), fmt.Sprint(got))
	}
}

func (c *checker) layers(id string, want []int) {
	t := c.task(id)
	if t == nil {
		return
	}
	got := []int{}
	for _, x := range t.Claims {
		got = append(got, x.Layers)
	}
	if !slices.Equal(want, got) {
		c.mismatch("layers of "+id, fmt.Sprint(want), fmt.Sprint(got))
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
			if isGroupName(want, k) {
				continue
			}
			got = k.String()
		}
		c.mismatch("group of "+id, want, got)
		return
	}
}

func (c *checker) pending(id string) {
	j := c.job(id)
	if j == nil {
		return
	}
	if c.sim.State.Job(j.ID) == nil {
		c.mismatch("workload "+id, "pending", c.absentStatus(j.ID))
		return
	}
	for _, t := range j.Tasks() {
		if t.Node != nil {
			c.mismatch("workload "+id, "pending", fmt.Sprintf("%s on %s", t.Name, t.Node.Name))
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
			got = "none: it is " + c.absentStatus(j.ID)
		}
		c.mismatch("refusal of "+want.Workload, orAny(want.Reason), got)
		return
	}
	if want.Reason != "" && want.Reason != string(r.Reason) {
		c.mismatch("refusal of "+want.Workload, want.Reason, string(r.Reason))
	}
	got := c.results.Refusal(r, false)
	if p := want.Permanent; p != nil && *p != got.Permanent {
		c.mismatch("refusal of "+want.Workload+", permanent", strconv.FormatBool(*p), strconv.FormatBool(got.Permanent))
	}
	if !strings.Contains(got.Message, want.Message) {
		c.mismatch("message for "+want.Workload, strconv.Quote(want.Message), strconv.Quote(got.Message))
	}
	if want.Counts == nil {
		return
	}
	counts := map[string]int{}
	for _, x := range c.results.Of(&c.sim.Outcome, false).Refusals {
		if x.Workload == j.ID {
			counts = x.Counts
		}
	}
	if !maps.Equal(want.Counts, counts) {
		c.mismatch("nodes by reason for "+want.Workload, fmt.Sprint(want.Counts), fmt.Sprint(counts))
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

// evictions compares the tasks that were evicted. A nil list expects nothing. An
// empty list expects that no task was evicted.
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
	got = append(got, c.evictedInTimeline()...)
	slices.Sort(ids)
	slices.Sort(got)
	if !slices.Equal(ids, got) {
		c.mismatch("evictions", orNone(ids), orNone(got))
	}
}
