package standard_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// Patient sessions that find the next job by election decide the same as sessions that give
// every parked job its turn, also with evictions.
func TestElections(test *testing.T) {
	rapid.Check(test, func(t *rapid.T) {
		elects, walks := enginetest.State(a100("a", 8), a100("b", 4)), enginetest.State(a100("a", 8), a100("b", 4))
		put := func(changes ...cluster.Change) {
			for _, s := range []*cluster.State{elects, walks} {
				for _, c := range changes {
					if err := s.Apply(c); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		queues := rapid.IntRange(2, 7).Draw(t, "queues")
		for i := range queues {
			q := cluster.Queue{Name: fmt.Sprintf("q%d", i), Priority: int32(rapid.IntRange(0, 1).Draw(t, "queue priority"))}
			if rapid.Bool().Draw(t, "has a quota") {
				q.Quota = cluster.Resources{{Name: gpu, Value: 1000 * int64(rapid.IntRange(0, 6).Draw(t, "quota"))}}
			}
			put(cluster.QueuePut{Queue: q})
		}
		byElection, byTurns := profile(test), profile(test)
		arrived := 0
		for round := range rapid.IntRange(2, 8).Draw(t, "rounds") {
			for range rapid.IntRange(0, 12).Draw(t, "jobs") {
				j := enginetest.Job(fmt.Sprintf("j%02d", arrived)).Queue(fmt.Sprintf("q%d", rapid.IntRange(0, queues-1).Draw(t, "queue"))).
					Devices(rapid.SampledFrom([]int{1, 1, 2, 4, 8}).Draw(t, "devices")).Created(int64(arrived)).
					Priority(int32(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "priority")))
				if rapid.Bool().Draw(t, "preemptible") {
					j.Preemptible()
				}
				arrived++
				put(cluster.JobPut{Job: *j.Build()})
			}
			for _, j := range elects.Jobs() {
				if j.Running() && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					put(cluster.JobGone{Job: j.ID})
				}
			}
			now := int64(round+1) * 10_000_000
			got := decisions(t, byElection, elects, engine.Options{Now: now, Patient: true})
			want := decisions(t, byTurns, walks, engine.Options{Now: now, Patient: true, Search: engine.Twin})
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("an election decides otherwise (-turns +election):\n%s", d)
			}
			for _, task := range elects.View().Releasing() {
				put(cluster.JobGone{Job: task.Job.ID})
			}
		}
	})
}

// decisions runs a session and returns its decisions as text.
func decisions(t rapid.TB, e *engine.Engine, s *cluster.State, options engine.Options) (out []string) {
	ssn := e.Open(s, options)
	defer ssn.Close()
	outcome, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range outcome.Decisions {
		out = append(out, fmt.Sprintf("%v %s on %s", d.Action, d.Task.ID(), d.Node))
	}
	return out
}
