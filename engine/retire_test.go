package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// keep gives jobs of higher priority a higher score.
func keep() *policy {
	return &policy{name: "Keep", open: func(s *engine.Session) {
		s.Hooks.AddInstanceScore(func(j *cluster.Job) float64 { return float64(j.Priority) })
	}}
}

// fate is a job of a ranking, its score, and whether it was retired.
type fate struct {
	Job     string
	Points  int64
	Retired bool
}

func fates(r engine.RetirementOrder) []fate {
	var out []fate
	for _, x := range r.Jobs {
		out = append(out, fate{x.Job, x.Score.Total, x.Retired})
	}
	return out
}

func TestSetsShrink(t *testing.T) {
	four := func(desired int) []enginetest.Part {
		return []enginetest.Part{
			enginetest.Job("m-0").Set("m", desired).Priority(5).Devices(1).On("a"),
			enginetest.Job("m-1").Set("m", desired).Priority(1).Devices(1).On("a"),
			enginetest.Job("m-2").Set("m", desired).Priority(1).Created(9).Devices(1).On("b"),
			enginetest.Job("m-3").Set("m", desired).Priority(3).Devices(9),
		}
	}
	tests := map[string]struct {
		desired int
		want    []fate
		gone    []string
	}{
		"enough":        {4, nil, nil},
		"fewer":         {5, nil, nil},
		"the newest":    {3, []fate{{"job/m-0", 5000, false}, {"job/m-3", 3000, false}, {"job/m-1", 1000, false}, {"job/m-2", 1000, true}}, []string{"job/m-2/worker-0"}},
		"one that ran":  {1, []fate{{"job/m-0", 5000, false}, {"job/m-3", 3000, true}, {"job/m-1", 1000, true}, {"job/m-2", 1000, true}}, []string{"job/m-2/worker-0", "job/m-1/worker-0"}},
		"none are left": {0, []fate{{"job/m-0", 5000, true}, {"job/m-3", 3000, true}, {"job/m-1", 1000, true}, {"job/m-2", 1000, true}}, []string{"job/m-2/worker-0", "job/m-1/worker-0", "job/m-0/worker-0"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(twoNodes(), four(tt.desired)...)
			e := enginetest.Engine(fit(), keep())
			out := run(t, e, s)
			var got []fate
			if len(out.RetirementOrders) > 0 {
				got = fates(out.RetirementOrders[0])
				if r := out.RetirementOrders[0]; r.Set != "m" || r.Desired != tt.desired {
					t.Errorf("%+v", r)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			var gone []string
			for _, d := range out.Decisions {
				if d.Action != engine.EvictTask || d.Reason != engine.ScaledDown || d.For != "" || len(d.Score.Parts) != 1 {
					t.Errorf("%+v", d)
				}
				gone = append(gone, d.Task.ID())
			}
			if diff := cmp.Diff(tt.gone, gone); diff != "" {
				t.Error(diff)
			}
			scores := map[string]int64{}
			for _, ev := range out.Events {
				if ev.Kind == engine.Retired {
					scores[ev.Job] = ev.Score.Total
				}
			}
			for _, f := range tt.want {
				if points, ok := scores[f.Job]; ok != f.Retired || ok && points != f.Points {
					t.Errorf("%s: the event has score %d, %v", f.Job, points, ok)
				}
			}
			// Retired jobs are not placed again, and no further job is retired.
			for _, j := range s.Jobs() {
				for _, task := range j.Tasks() {
					if task.Status == cluster.Releasing {
						apply(t, s, left(task))
					}
				}
			}
			if again := run(t, e, s); len(again.Decisions)+len(again.RetirementOrders) != 0 {
				t.Errorf("%+v", again)
			}
			if n := len(s.View().Sets().Jobs("m")); n != min(4, tt.desired) {
				t.Errorf("%d are left", n)
			}
		})
	}
}

// TestEqualJobsAreRetiredByPlace gives equal jobs other names: the same places are emptied.
func TestEqualJobsAreRetiredByPlace(t *testing.T) {
	for _, names := range [][4]string{{"m-0", "m-1", "m-2", "m-3"}, {"m-3", "m-2", "m-1", "m-0"}, {"m-1", "m-3", "m-0", "m-2"}} {
		var parts []enginetest.Part
		for i, node := range []string{"a", "a", "b", "b"} {
			parts = append(parts, enginetest.Job(names[i]).Set("m", 2).Devices(1).On(node))
		}
		out := run(t, enginetest.Engine(fit(), keep()), with(twoNodes(), parts...))
		var gone []string
		for _, d := range out.Decisions {
			gone = append(gone, d.Task.Job)
		}
		want := []string{"job/" + names[0], "job/" + names[1]} // both are on node a
		if diff := cmp.Diff(want, gone); diff != "" {
			t.Errorf("%v:\n%s", names, diff)
		}
	}
}

func TestRetiredJobsLoseReservations(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("x").Preemptible().Devices(2).On("a"), enginetest.Job("y").Devices(2).On("b"),
		enginetest.Job("m-0").Set("m", 1).Devices(2))
	e := enginetest.Engine(fit(), keep())
	apply(t, s, evicts(s, "job/x"))
	if out := run(t, e, s); len(out.Decisions) != 1 || out.Decisions[0].Action != engine.Nominate {
		t.Fatalf("%+v", out.Decisions)
	}
	m := s.Job("job/m-0")
	apply(t, s, cluster.SetScaled{Set: "m"}, left(s.Job("job/x").Tasks()[0])) // its room is free: it would start if it were not retired
	out := run(t, e, s)
	if !m.Retired || m.Placed() != 0 || len(s.View().Nominated()) != 0 || m.Tasks()[0].Node != nil {
		t.Errorf("%v, %+v", m.Retired, out)
	}
	if got := where(out); got["job/m-0/worker-0"] != "" || got["job/x/worker-0"] != "a" {
		t.Errorf("%v", got)
	}
}

func TestJobsRetiredEarlierAreEvicted(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("m-0").Set("m", 1).Priority(7).Devices(1).On("a"))
	apply(t, s, cluster.Decided{Changes: []cluster.Change{cluster.Retire{Job: "job/m-0"}}})
	out := run(t, enginetest.Engine(fit(), keep()), s)
	if len(out.Decisions) != 1 || out.Decisions[0].Reason != engine.ScaledDown || out.Decisions[0].Score.Total != 7000 || len(out.RetirementOrders) != 0 {
		t.Errorf("%+v", out)
	}
}

func TestScoresOfInstancesAreChecked(t *testing.T) {
	wild := &policy{name: "Wild", open: func(s *engine.Session) {
		s.Hooks.AddInstanceScore(func(*cluster.Job) float64 { return 101 })
	}}
	s := with(twoNodes(), enginetest.Job("m-0").Set("m", 0).Devices(1).On("a"))
	if _, err := enginetest.Engine(fit(), wild).Open(s, engine.Options{}).Run(); err == nil {
		t.Error("a score of 101 was accepted")
	}
	if j := s.Job("job/m-0"); j.Retired || !j.Running() {
		t.Error("the job was retired")
	}
}

// TestJobsAreRankedAgain checks that jobs are scored again after each retirement, since a score may
// depend on the other jobs of the set.
func TestJobsAreRankedAgain(t *testing.T) {
	apart := &policy{name: "Apart", open: func(s *engine.Session) {
		s.Hooks.AddInstanceScore(func(j *cluster.Job) float64 {
			score := 100.0
			for _, o := range s.View.Sets().Jobs("m") {
				if o != j && o.Tasks()[0].Node == j.Tasks()[0].Node {
					score -= 10
				}
			}
			return score
		})
	}}
	parts := []enginetest.Part{}
	for i, n := range []string{"b", "b", "a", "a"} {
		parts = append(parts, enginetest.Job(fmt.Sprint("m-", i)).Set("m", 2).Created(int64(i)).Devices(1).On(n))
	}
	s := with(twoNodes(), parts...)
	out := run(t, enginetest.Engine(fit(), apart), s)
	want := []fate{{"job/m-2", 100_000, false}, {"job/m-0", 90_000, false}, {"job/m-1", 90_000, true}, {"job/m-3", 90_000, true}}
	if diff := cmp.Diff(want, fates(out.RetirementOrders[0])); diff != "" {
		t.Error(diff)
	}
}
