package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// asked counts how often a PreFilter is called for each job.
func asked(counts map[string]int) *policy {
	return &policy{name: "Asked", open: func(s *engine.Session) {
		s.Hooks.AddPreFilter(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
			counts[j.ID]++
			return nil
		})
	}}
}

// TestAlikeJobsShareARefusal: a job is not tried if an interchangeable one was refused and
// nothing was decided since. Its refusal names its own tasks.
func TestAlikeJobsShareARefusal(t *testing.T) {
	replicas := func(change func(i int, b *enginetest.JobBuilder)) []enginetest.Part {
		var parts []enginetest.Part
		for i := range 3 {
			b := enginetest.Job(fmt.Sprint("m-", i)).Set("m", 3).Devices(1)
			if change != nil {
				change(i, b)
			}
			parts = append(parts, b)
		}
		return append(parts, enginetest.Job("x").Devices(2).On("a"), enginetest.Job("y").Devices(2).On("b"))
	}
	tests := map[string]struct {
		parts []enginetest.Part
		tried []string
	}{
		"all alike":      {replicas(nil), []string{"job/m-0"}},
		"no set":         {replicas(func(_ int, b *enginetest.JobBuilder) { b.Set("", 0) }), []string{"job/m-0"}},
		"sets of one":    {replicas(func(i int, b *enginetest.JobBuilder) { b.Set(fmt.Sprint("m", i), 3) }), []string{"job/m-0", "job/m-1", "job/m-2"}},
		"another shape":  {replicas(func(i int, b *enginetest.JobBuilder) { b.Devices(1 + i%2) }), []string{"job/m-0", "job/m-1"}},
		"other priority": {replicas(func(i int, b *enginetest.JobBuilder) { b.Priority(int32(i % 2)) }), []string{"job/m-0", "job/m-1"}},
		"other labels":   {replicas(func(i int, b *enginetest.JobBuilder) { b.Label("app", fmt.Sprint(i)) }), []string{"job/m-0", "job/m-1", "job/m-2"}},
		"decided since":  {append(replicas(nil), enginetest.Job("m-00").CPU(1000, "1Gi")), []string{"job/m-0", "job/m-00", "job/m-1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			counts := map[string]int{}
			s := with(twoNodes(), tt.parts...)
			session := enginetest.Engine(fit(), asked(counts)).Open(s, engine.Options{}) // a Twin session would try every job
			defer session.Close()
			out, err := session.Run()
			if err != nil {
				t.Fatal(err)
			}
			var tried []string
			for _, j := range s.Jobs() {
				if counts[j.ID] > 0 {
					tried = append(tried, j.ID)
				}
			}
			if diff := cmp.Diff(tt.tried, tried); diff != "" {
				t.Error(diff)
			}
			if len(out.Refusals) != 3 {
				t.Fatalf("%d refusals", len(out.Refusals))
			}
			for _, r := range out.Refusals {
				if a := r.Attempts[0]; a.Task.Job != r.Job || r.Reason != out.Refusals[0].Reason || a.Nodes != 2 {
					t.Errorf("%s: %+v", r.Job, r)
				}
			}
		})
	}
}

// TestSharedRefusalIsChecked: a Twin session fails if a filter depends on the name of the job,
// unless the filter says so.
func TestSharedRefusalIsChecked(t *testing.T) {
	for _, tt := range []struct {
		search      engine.Search
		own         bool
		fails       bool
		refusals    int
		description string
	}{
		{engine.Indexed, false, false, 2, "job b shares the refusal of job a"},
		{engine.Twin, false, true, 1, "the difference is found"},
		{engine.Indexed, true, false, 1, "job b is tried"},
		{engine.Twin, true, false, 1, "job b is tried, which is allowed"},
	} {
		byName := &policy{name: "ByName", open: func(s *engine.Session) {
			s.Hooks.AddPreFilter(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
				if j.ID == "job/b" {
					return nil
				}
				return &engine.Rejection{Reason: "Name", Own: tt.own}
			})
		}}
		s := enginetest.Engine(fit(), byName).Open(enginetest.State(enginetest.Node("n").CPU(8, "32Gi"), enginetest.Job("a"), enginetest.Job("b")), engine.Options{Search: tt.search})
		out, err := s.Run()
		if closed := s.Close(); (err != nil) != tt.fails || closed != nil || len(out.Refusals) != tt.refusals {
			t.Errorf("%s: %d refusals, %v, %v", tt.description, len(out.Refusals), err, closed)
		}
	}
}
