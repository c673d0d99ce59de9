package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/sim/timeline"
)

// runTimeline is Run for a scenario with cycles, which simulates a period of time.
func runTimeline(r *engine.Registry, b *manifest.Bundle, thorough bool) ([]Mismatch, error) {
	search := engine.Twin
	if !thorough {
		search = engine.Indexed
	}
	out, result, err := runSearch(r, b, search)
	if err != nil || !thorough {
		return out, err
	}
	_, slow, err := runSearch(r, b, engine.Scan)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(result, slow) {
		return nil, fmt.Errorf("the index and the scan have different results: %s", firstDifference(result, slow))
	}
	return out, nil
}

// runSearch runs the simulation with one kind of search. It compares each expected moment
// with the State after the session of its cycle. A moment after the simulation has settled
// is compared with the last cycle, because nothing changes after it. The second result is
// the timeline as JSON.
func runSearch(r *engine.Registry, b *manifest.Bundle, search engine.Search) ([]Mismatch, []byte, error) {
	e, err := Engine(r, b)
	if err != nil {
		return nil, nil, err
	}
	state, err := b.State()
	if err != nil {
		return nil, nil, err
	}
	s := b.Scenario()
	options := timeline.Options{Cycles: *s.Cycles, Start: b.Now(), Every: int64(time.Minute), Search: search}
	if s.Every != nil {
		options.Every = int64(s.Every.Duration)
	}
	if s.Grace != nil {
		options.Grace = int64(s.Grace.Duration)
	}
	moments := make([][]Mismatch, len(s.Expect.Timeline))
	options.Watch = func(c *timeline.Timeline) {
		for i := range s.Expect.Timeline {
			m := &s.Expect.Timeline[i]
			if at := cycleOf(m, options.Every); at == c.Cycle || c.Settled && at > c.Cycle {
				moments[i] = checkMoment(m, at, c)
			}
		}
	}
	recorded, err := timeline.Run(e, state, options)
	if err != nil {
		return nil, nil, err
	}
	var out []Mismatch
	for _, list := range moments {
		out = append(out, list...)
	}
	out = append(out, checkEnd(&s.Expect, recorded)...)
	result, err := json.MarshalIndent(recorded.Result(), "", " ")
	return out, result, err
}

func cycleOf(m *v1alpha1.ExpectedMoment, every int64) int {
	if m.Cycle != nil {
		return *m.Cycle
	}
	return int(int64(m.At.Duration)/every) + 1
}

// timelineChecker returns a checker with all jobs of a timeline, including those that
// have ended or have not arrived.
func timelineChecker(c *timeline.Timeline) *checker {
	k := newChecker(&sim.Simulation{State: c.State, Outcome: engine.Outcome{Refusals: c.Refusals}}, explain.Results{Phrases: c.Phrases, State: c.State})
	k.timeline = c
	for _, h := range c.Histories {
		k.addJob(h.Job)
	}
	return k
}

func checkMoment(m *v1alpha1.ExpectedMoment, cycle int, c *timeline.Timeline) []Mismatch {
	k := timelineChecker(c)
	each(m.Placements, k.placement)
	for _, id := range m.Pending {
		k.pending(id)
	}
	for _, id := range m.Ended {
		if j := k.job(id); j != nil && c.History(j.ID).Ended == 0 {
			k.mismatch("workload "+id, "ended", "it has not ended")
		}
	}
	each(m.Queues, k.queue)
	for i := range k.out {
		k.out[i].What = "in cycle " + strconv.Itoa(cycle) + ", " + k.out[i].What
	}
	return k.out
}

func checkEnd(e *v1alpha1.Expectation, c *timeline.Timeline) []Mismatch {
	k := timelineChecker(c)
	k.expectation(e)
	if e.Settled != nil && *e.Settled != c.Settled {
		k.mismatch("settled after "+strconv.Itoa(c.Cycle)+" cycles", strconv.FormatBool(*e.Settled), strconv.FormatBool(c.Settled))
	}
	return k.out
}

// queue compares the number of devices that a queue uses, under all resource names of
// devices together.
func (c *checker) queue(name string, want float64) {
	q := c.sim.State.Queue(name)
	if q == nil {
		c.mismatch("queue "+name, "to exist", "no such queue")
		return
	}
	got := int64(0)
	for _, n := range timeline.Resources(c.sim.State) {
		got += q.Used.Of(n)
	}
	if number(float64(got)/1000) != number(want) {
		c.mismatch("devices of queue "+name, number(want), number(float64(got)/1000))
	}
}

// absentStatus returns the status of a workload that is not in State.
func (c *checker) absentStatus(id string) string {
	if h := c.timeline.History(id); h.Ended > 0 {
		return "ended"
	}
	return "still to come"
}

// evictedInTimeline returns the IDs of the tasks that were evicted in a simulation over
// time; nil for a single session.
func (c *checker) evictedInTimeline() []string {
	if c.timeline == nil {
		return nil
	}
	var out []string
	for _, f := range c.timeline.Frames {
		for _, d := range f.Decisions {
			if d.Action == string(engine.EvictTask) {
				out = append(out, d.Workload+"/"+d.Task)
			}
		}
	}
	return out
}
