package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestPast: the past of a queue is the reported use, followed by what it held from session
// to session. A queue with queues below it has no past of its own.
func TestPast(t *testing.T) {
	s := enginetest.State(
		enginetest.Node("n").CPU(8, "16Gi"), enginetest.Queue("up"), enginetest.Queue("q").Parent("up").Past(1, 5, cluster.CPU, 7000),
		enginetest.Job("a").Queue("q").CPU(1000, "0").On("n"), enginetest.Job("b").Queue("q").CPU(2000, "0"),
	)
	apply := func(changes ...cluster.Change) {
		t.Helper()
		for _, c := range changes {
			if err := s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func(now int64) { apply(cluster.SessionOpened{Now: now}) }
	cpu := func(from, to, v int64) cluster.Usage {
		return cluster.Usage{From: from, To: to, Resources: cluster.Resources{{Name: cluster.CPU, Value: v}}}
	}
	check := func(want ...cluster.Usage) {
		t.Helper()
		if d := cmp.Diff(want, s.View().Past(s.Queue("q"))); d != "" {
			t.Errorf("past at %d (-want +got):\n%s", s.Now(), d)
		}
		if past := s.View().Past(s.Queue("up")); len(past) != 0 {
			t.Errorf("the parent has a past of its own: %v", past)
		}
	}
	open(10)
	check(cpu(1, 5, 7000)) // the use before the first session is not known
	open(20)
	open(30)
	check(cpu(1, 5, 7000), cpu(10, 30, 1000))
	apply(cluster.SeenOn(task(s, "b", 0), s.Node("n"), nil, 30))
	open(40)
	open(35) // the clock does not go back
	check(cpu(1, 5, 7000), cpu(10, 30, 1000), cpu(30, 40, 3000))
	for i := range int64(200) { // many changes: the oldest intervals are merged
		apply(cluster.TaskSeen{Task: task(s, "b", 0).Ref()})
		open(41 + 2*i)
		apply(cluster.SeenOn(task(s, "b", 0), s.Node("n"), nil, 30))
		open(42 + 2*i)
	}
	past := s.View().Past(s.Queue("q"))
	if len(past) > 65 || past[0].From != 1 || past[len(past)-1].To != s.Now() {
		t.Errorf("%d intervals, from %d to %d", len(past), past[0].From, past[len(past)-1].To)
	}
}
