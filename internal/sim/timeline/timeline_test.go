package timeline_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim/timeline"
	"github.com/berth-project/berth/plugins/noderesourcefilter"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
	"github.com/google/go-cmp/cmp"
)

const minute = int64(time.Minute)

// pusher evicts all tasks of jobs of lower priority for a job. If one is set, it
// stops as soon as the job can be placed.
type pusher struct{ one bool }

func (pusher) Name() string { return "Pusher" }
func (p pusher) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddAdapter(func(stmt *engine.Statement, j *cluster.Job, r *engine.Refusal) *engine.Refusal {
		for _, o := range s.View.Jobs() {
			for _, t := range o.Tasks() {
				if o.Priority < j.Priority && t.Runs() {
					if err := stmt.Evict(t, j.ID, "Pushed"); err != nil {
						return r
					}
					if left := s.Place(stmt, j); left == nil && p.one {
						return nil
					}
				}
			}
		}
		if j.HasMinimum() {
			return nil
		}
		return s.Place(stmt, j)
	})
}

func newEngine(t *testing.T, more ...engine.Plugin) *engine.Engine {
	t.Helper()
	filter, err := noderesourcefilter.New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	fit, err := noderesourcesfit.New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Engine(append([]engine.Plugin{filter, fit}, more...)...)
}

func node() enginetest.Part { return enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "L4", "24Gi") }

func run(t *testing.T, e *engine.Engine, o timeline.Options, parts ...enginetest.Part) *timeline.Timeline {
	t.Helper()
	o.Search = engine.Twin
	if o.Every == 0 {
		o.Every = minute
	}
	c, err := timeline.Run(e, enginetest.State(append(parts, node())...), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// marks returns the marks of each job, one character for each cycle.
func marks(c *timeline.Timeline) map[string]string {
	out := map[string]string{}
	for _, h := range c.Histories {
		for cycle := 1; cycle <= c.Cycle; cycle++ {
			out[h.Job.ID] += string(h.Mark(cycle))
		}
	}
	return out
}

func TestRun(t *testing.T) {
	low := func() *enginetest.JobBuilder {
		return enginetest.Job("low").Devices(2).Preemptible().RunFor(3 * minute)
	}
	high := func() *enginetest.JobBuilder {
		return enginetest.Job("high").Priority(1).Devices(2).Created(2 * minute).RunFor(2 * minute)
	}
	for name, c := range map[string]struct {
		options timeline.Options
		plugins []engine.Plugin
		parts   []enginetest.Part
		want    map[string]string
		settled bool
	}{
		"nothing at all": {
			options: timeline.Options{Cycles: 9},
			want:    map[string]string{}, settled: true,
		},
		"a job without a run time": {
			options: timeline.Options{Cycles: 9},
			parts:   []enginetest.Part{enginetest.Job("j").Devices(1)},
			want:    map[string]string{"job/j": "██"}, settled: true,
		},
		"the next starts when the first has ended": {
			options: timeline.Options{Cycles: 9},
			parts:   []enginetest.Part{enginetest.Job("a").Devices(2).RunFor(2 * minute), enginetest.Job("b").Devices(2).RunFor(1)},
			want:    map[string]string{"job/a": "██✓✓", "job/b": "··█✓"}, settled: true,
		},
		"the cycles end before the job": {
			options: timeline.Options{Cycles: 2},
			parts:   []enginetest.Part{enginetest.Job("a").Devices(2).RunFor(2 * minute)},
			want:    map[string]string{"job/a": "██"},
		},
		"a job that is created later arrives later": {
			options: timeline.Options{Cycles: 9, Start: 10 * minute},
			parts:   []enginetest.Part{enginetest.Job("a").Created(11*minute + 1).Devices(1), enginetest.Job("b").Created(10 * minute).Devices(1), enginetest.Job("c").Created(99 * minute).Devices(1)},
			want:    map[string]string{"job/a": "  ███████", "job/b": "█████████", "job/c": "         "},
		},
		"a running job is present whenever it was created": {
			options: timeline.Options{Cycles: 9, Start: minute},
			parts:   []enginetest.Part{enginetest.Job("a").Created(5 * minute).Devices(1).On("a")},
			want:    map[string]string{"job/a": "█"}, settled: true,
		},
		"an evicted job starts again": {
			options: timeline.Options{Cycles: 20},
			plugins: []engine.Plugin{pusher{}},
			parts:   []enginetest.Part{low(), high()},
			want:    map[string]string{"job/low": "██~··███✓", "job/high": "  ○██✓✓✓✓"}, settled: true,
		},
		"an evicted job stops after the grace period": {
			options: timeline.Options{Cycles: 20, Grace: 2*minute + 1},
			plugins: []engine.Plugin{pusher{}},
			parts:   []enginetest.Part{low(), high()},
			want:    map[string]string{"job/low": "██~~~··███✓", "job/high": "  ○○○██✓✓✓✓"}, settled: true,
		},
		"a gang that lost one of its tasks starts again": {
			options: timeline.Options{Cycles: 20},
			plugins: []engine.Plugin{pusher{one: true}},
			parts:   []enginetest.Part{enginetest.Job("low").Gang(2).Devices(1).Preemptible().RunFor(3 * minute), enginetest.Job("high").Priority(1).Devices(1).Created(2 * minute).RunFor(minute)},
			want:    map[string]string{"job/low": "██~▄███✓", "job/high": "  ○█✓✓✓✓"}, settled: true,
		},
		"a job that keeps its minimum continues": {
			options: timeline.Options{Cycles: 20},
			plugins: []engine.Plugin{pusher{one: true}},
			parts:   []enginetest.Part{enginetest.Job("low").Gang(2).Min(1).Devices(1).Preemptible().RunFor(5 * minute), enginetest.Job("high").Priority(1).Devices(1).Created(2 * minute).RunFor(minute)},
			want:    map[string]string{"job/low": "██~▄█✓", "job/high": "  ○█✓✓"}, settled: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, newEngine(t, c.plugins...), c.options, c.parts...)
			if diff := cmp.Diff(c.want, marks(got)); diff != "" {
				t.Error(diff)
			}
			if got.Settled != c.settled {
				t.Errorf("settled: %v", got.Settled)
			}
		})
	}
}

// TestSummary compares with sums that were computed by hand. low runs on 2 devices
// for 2 cycles, which are lost, waits for 3 and runs for 3. high waits for 1 cycle
// and runs for 2.
func TestSummary(t *testing.T) {
	c := run(t, newEngine(t, pusher{}), timeline.Options{Cycles: 20, Every: 60 * minute},
		enginetest.Job("low").Devices(2).Preemptible().RunFor(180*minute),
		enginetest.Job("high").Priority(1).Devices(2).Created(120*minute).RunFor(120*minute))
	want := timeline.Summary{
		Arrived: 2, Ended: 2, Makespan: "8h", MeanWait: "2h", MaxWait: "3h", Longest: "job/low",
		DeviceHours: 14, Offered: 16, Utilization: 0.875, Evictions: 1, Lost: 4,
	}
	if diff := cmp.Diff(want, c.Summary()); diff != "" {
		t.Error(diff)
	}
	var story bytes.Buffer
	c.Story(&story, explain.Style{}, false)
	for _, line := range []string{"02:00  job/low is evicted for job/high (Pushed)\n", "02:00  job/high is nominated to a\n", "03:00  job/high starts on a\n", "08:00  job/low ends\n"} {
		if !strings.Contains(story.String(), line) {
			t.Errorf("no line %q in\n%s", line, story.String())
		}
	}
}

// TestLostWorkOfGang evicts one of two tasks of a gang after two cycles. The work of
// the other task is lost as well, although it is not evicted.
func TestLostWorkOfGang(t *testing.T) {
	c := run(t, newEngine(t, pusher{one: true}), timeline.Options{Cycles: 20, Every: 60 * minute},
		enginetest.Job("low").Gang(2).Devices(1).Preemptible().RunFor(180*minute),
		enginetest.Job("high").Priority(1).Devices(1).Created(120*minute).RunFor(60*minute))
	if got := c.Summary().Lost; got != 4 {
		t.Errorf("%v device-hours lost, want 2 tasks × 1 device × 2 hours", got)
	}
}

// TestReleasingAtStart checks that a task that is already releasing when the clock
// starts is not placed again.
func TestReleasingAtStart(t *testing.T) {
	s := enginetest.State(node(), enginetest.Job("old").Devices(2).On("a"), enginetest.Job("new").Devices(2))
	old := s.Job("job/old").Tasks()[0]
	if err := s.Apply(cluster.TaskSeen{Task: old.Ref(), Node: "a", Releasing: true}); err != nil {
		t.Fatal(err)
	}
	c, err := timeline.Run(newEngine(t), s, timeline.Options{Cycles: 9, Every: minute})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"job/old": "~✓✓", "job/new": "○██"}, marks(c)); diff != "" {
		t.Error(diff)
	}
}

// TestNotSettledWhileProtected checks that a simulation with pending jobs does not settle
// while a minimum run time may protect a task: the pending jobs may be placed later.
func TestNotSettledWhileProtected(t *testing.T) {
	s := enginetest.State(node(), enginetest.Job("a").Devices(2), enginetest.Job("b").Devices(2))
	if err := s.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: "protected", MinRunBeforeReclaim: 5 * minute}}); err != nil {
		t.Fatal(err)
	}
	c, err := timeline.Run(newEngine(t), s, timeline.Options{Cycles: 99, Every: minute})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Settled || c.Cycle != 6 || c.LastActiveCycle() != 1 {
		t.Errorf("settled %v in cycle %d, last active cycle %d", c.Settled, c.Cycle, c.LastActiveCycle())
	}
}

// clock records the time of each session.
type clock struct{ seen []int64 }

func (*clock) Name() string                      { return "Clock" }
func (c *clock) OnSessionOpen(s *engine.Session) { c.seen = append(c.seen, s.Now) }

// TestSessionTimes checks the times of the sessions. A clock that starts at 0 is one
// nanosecond ahead in every cycle, so that the time between cycles is the same.
func TestSessionTimes(t *testing.T) {
	for start, want := range map[int64][]int64{0: {1, minute + 1, 2*minute + 1}, minute: {minute, 2 * minute, 3 * minute}} {
		c := &clock{}
		run(t, newEngine(t, c), timeline.Options{Cycles: 3, Start: start}, enginetest.Job("runs").Devices(1).RunFor(10*minute))
		if d := cmp.Diff(want, c.seen); d != "" {
			t.Errorf("from %d (-want +got):\n%s", start, d)
		}
	}
}

// TestStartedBeforeClock checks that the run time of a task counts from its start,
// which may be before that of the clock.
func TestStartedBeforeClock(t *testing.T) {
	s := enginetest.State(node(), enginetest.Job("j").Devices(2).RunFor(5*minute).On("a").Started(7*minute))
	c, err := timeline.Run(newEngine(t), s, timeline.Options{Cycles: 9, Start: 10 * minute, Every: minute})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"job/j": "██✓"}, marks(c)); diff != "" {
		t.Error(diff)
	}
}

// TestNoFramesForQuietCycles checks that cycles in which nothing happens are not
// recorded, so that they need no memory.
func TestNoFramesForQuietCycles(t *testing.T) {
	c := run(t, newEngine(t), timeline.Options{Cycles: 50_000}, enginetest.Job("j").Devices(1).RunFor(40_000*minute))
	if len(c.Frames) != 2 || c.Cycle != 40_001 {
		t.Errorf("%d frames for %d cycles", len(c.Frames), c.Cycle)
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		o    timeline.Options
		want string
	}{
		"no cycles":       {timeline.Options{Every: 1}, "cycles: want from 1 to 1000000, have 0"},
		"too many cycles": {timeline.Options{Cycles: 1_000_001, Every: 1}, "cycles: want from 1 to 1000000, have 1000001"},
		"every is 0":      {timeline.Options{Cycles: 1}, "every: want more than 0, such as 1m, have 0s"},
		"negative grace":  {timeline.Options{Cycles: 1, Every: 1, Grace: -minute}, "grace: want 0 or more, such as 30s, have -1m"},
		"negative start":  {timeline.Options{Cycles: 1, Every: 1, Start: -1}, "start: want a time from 1970 to 2200"},
		"end after 2200":  {timeline.Options{Cycles: 1_000_000, Every: 24 * 60 * minute}, "cycles: 1000000 cycles of 24h end after the year 2200; use fewer or shorter cycles"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := timeline.Run(newEngine(t), enginetest.State(), c.o); err == nil || err.Error() != c.want {
				t.Errorf("have %v, want %s", err, c.want)
			}
		})
	}
}

// waker requests another session until a given time.
type waker struct{ until int64 }

func (waker) Name() string { return "Waker" }
func (w waker) OnSessionOpen(s *engine.Session) {
	if s.Now < w.until {
		s.WakeAt(min(w.until, s.Now+2*minute))
	}
}

// TestNotSettledWhileWoken checks that a simulation does not settle while a plugin
// requests another session, because time alone may change a decision.
func TestNotSettledWhileWoken(t *testing.T) {
	type end struct {
		settled      bool
		cycle, quiet int
	}
	for name, c := range map[string]struct {
		until  int64
		cycles int
		want   end
	}{
		"no request":               {0, 99, end{true, 2, 0}},
		"until the plugin is done": {9 * minute, 99, end{true, 10, 0}},
		"the cycles end before":    {9 * minute, 5, end{false, 5, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, newEngine(t, waker{c.until}), timeline.Options{Cycles: c.cycles, Start: minute - minute/2}, enginetest.Job("a").Devices(2), enginetest.Job("b").Devices(2))
			if diff := cmp.Diff(c.want, end{got.Settled, got.Cycle, got.Result().Quiet}, cmp.AllowUnexported(end{})); diff != "" {
				t.Error(diff)
			}
			var picture bytes.Buffer
			got.Picture(&picture, explain.Style{}, false)
			if quiet := strings.Contains(picture.String(), "; quiet after cycle 1, at 00:00:30, and not settled: time alone may still change decisions"); quiet != (c.want.quiet > 0) {
				t.Errorf("quiet: %v\n%s", quiet, picture.String())
			}
		})
	}
}
