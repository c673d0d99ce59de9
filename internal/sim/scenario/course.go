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

// runCourse is Run for a scenario with cycles, which simulates a period of time.
func runCourse(r *engine.Registry, b *manifest.Bundle, thorough bool) ([]Mismatch, error) {
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

// runSearch runs the course with one kind of search. It compares each expected moment
// after the session of its cycle. A moment after the course has settled is compared
// with the last cycle, because nothing changes after it.
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
	options.Watch = func(c *timeline.Course) {
		for i := range s.Expect.Timeline {
			m := &s.Expect.Timeline[i]
			if at := cycleOf(m, options.Every); at == c.Cycle || c.Settled && at > c.Cycle {
				moments[i] = checkMoment(m, at, c)
			}
		}
	}
	course, err := timeline.Run(e, state, options)
	if err != nil {
		return nil, nil, err
	}
	var out []Mismatch
	for _, list := range moments {
		out = append(out, list...)
	}
	out = append(out, checkEnd(&s.Expect, course)...)
	result, err := json.MarshalIndent(course.Result(), "", " ")
	return out, result, err
}

func cycleOf(m *v1alpha1.ExpectedMoment, every int64) int {
	if m.Cycle != nil {
		return *m.Cycle
	}
	return int(int64(m.At.Duration)/every) + 1
}

// courseChecker returns a checker with all jobs of a course, including those that
// have ended or have not arrived.
func courseChecker(c *timeline.Course) *checker {
	k := newChecker(&sim.Simulation{State: c.State, Outcome: engine.Outcome{Refusals: c.Refusals}}, explain.Results{Phrases: c.Phrases, State: c.State})
	k.course = c
	for _, l := range c.Lives {
		k.addJob(l.Job)
	}
	return k
}

func checkMoment(m *v1alpha1.ExpectedMoment, cycle int, c *timeline.Course) []Mismatch {
	k := courseChecker(c)
	each(m.Placements, k.placement)
	for _, id := range m.Pending {
		k.pending(id)
	}
	for _, id := range m.Ended {
		if j := k.job(id); j != nil && c.Life(j.ID).Ended == 0 {
			k.mismatch("workload "+id, "ended", "it has not ended")
		}
	}
	each(m.Queues, k.queue)
	for i := range k.out {
		k.out[i].What = "in cycle " + strconv.Itoa(cycle) + ", " + k.out[i].What
	}
	return k.out
}

func checkEnd(e *v1alpha1.Expectation, c *timeline.Course) []Mismatch {
	k := courseChecker(c)
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

// absent returns the status of a workload that is not in State.
func (c *checker) absent(id string) string {
	if l := c.course.Life(id); l.Ended > 0 {
		return "ended"
	}
	return "still to come"
}

// evictedInCourse returns the IDs of the tasks that were evicted in a course.
func (c *checker) evictedInCourse() []string {
	if c.course == nil {
		return nil
	}
	var out []string
	for _, f := range c.course.Frames {
		for _, d := range f.Decisions {
			if d.Action == string(engine.EvictTask) {
				out = append(out, d.Workload+"/"+d.Task)
			}
		}
	}
	return out
}
