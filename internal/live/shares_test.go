package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/google/go-cmp/cmp"
)

const gpu = cluster.DefaultDeviceResource

func amounts(name string, value int64) cluster.Resources {
	return cluster.Resources{{Name: name, Value: value}}
}

// sharesOf returns what the follower reports about a queue.
func sharesOf(t *testing.T, l *Leader, queue string) QueueShare {
	t.Helper()
	all, err := l.Follower().QueueShares(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all.Queues {
		if q.Name == queue {
			return q
		}
	}
	t.Fatalf("there is no queue %s", queue)
	return QueueShare{}
}

func TestQueueShares(t *testing.T) {
	l := NewLeader(Options{State: cluster.NewState(), Engine: testEngine(t)})
	apply := func(c cluster.Change) {
		t.Helper()
		if err := l.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	put := func(q cluster.Queue, revision uint64) { apply(cluster.QueuePut{Queue: q, Revision: revision}) }
	job := func(name, queue string, devices int) {
		apply(cluster.JobPut{Job: *enginetest.Job(name).Queue(queue).CPU(1000, "1Gi").Devices(devices).Preemptible().Build()})
	}
	put(cluster.Queue{Name: "org"}, 1)
	put(cluster.Queue{Name: "a", Parent: "org", Quota: amounts(gpu, 2000)}, 2)
	put(cluster.Queue{Name: "b", Parent: "org", Quota: amounts(gpu, 1000)}, 3)
	put(cluster.Queue{Name: "lost", Parent: "nowhere"}, 4)

	job("a1", "a", 4)
	if got := sharesOf(t, l, "a"); got.Pending.Of(gpu) != 4000 || got.Share.Of(gpu) != 0 {
		t.Errorf("without nodes: pending %v and a share of %v", got.Pending, got.Share)
	}
	apply(cluster.NodePut{Node: *enginetest.Node("n").CPU(32, "256Gi").GPUs(4, "L4", "24Gi").Build()})
	if _, err := l.Run(engine.Options{Now: 1}); err != nil {
		t.Fatal(err)
	}
	job("b1", "b", 2)
	job("b2", "b", 2)
	put(cluster.Queue{Name: "b", Parent: "org", Quota: amounts(gpu, 1000)}, 9)

	all := cluster.Resources{{Name: cluster.CPU, Value: 2000}, {Name: cluster.Memory, Value: 2 << 30}, {Name: gpu, Value: 4000}}
	used := cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: 1 << 30}, {Name: gpu, Value: 4000}}
	for _, want := range []QueueShare{
		{Name: "org", Revision: 1, Quota: amounts(gpu, 3000), Share: amounts(gpu, 4000), Used: used, Pending: all, PendingJobs: 2},
		{Name: "a", Parent: "org", Revision: 2, Quota: amounts(gpu, 2000), Share: amounts(gpu, 2500), Used: used},
		{Name: "b", Parent: "org", Revision: 9, Quota: amounts(gpu, 1000), Share: amounts(gpu, 1500), Pending: all, PendingJobs: 2},
		{Name: "lost", Parent: "nowhere", Revision: 4, Loose: true},
	} {
		if diff := cmp.Diff(want, sharesOf(t, l, want.Name)); diff != "" {
			t.Errorf("queue %s (-want +got):\n%s", want.Name, diff)
		}
	}
}

// The shares that are kept up to date equal those that are computed from the replayed log.
func TestQueueSharesStepByStep(t *testing.T) {
	w := newWorld(t, 5, 0)
	pending := 0
	for range 150 {
		w.step()
		got, err := w.leader.Follower().QueueShares(w.now)
		if err != nil {
			t.Fatal(err)
		}
		if got.Position != w.leader.Position() {
			t.Fatalf("position %d, and the leader is at %d", got.Position, w.leader.Position())
		}
		s, _ := w.replay(got.Position)
		tree := fairshare.Shares(s.View(), fairshare.Offered(s.View()), fairshare.Settings{})
		for _, q := range got.Queues {
			var want cluster.Resources
			for _, sh := range tree.ByName[q.Name].Shares {
				want = append(want, cluster.Amount{Name: sh.Resource, Value: sh.Share()})
			}
			if diff := cmp.Diff(want, q.Share); diff != "" {
				t.Fatalf("position %d: the share of %s (-replayed +seen)\n%s", got.Position, q.Name, diff)
			}
			jobs, cores := 0, int64(0)
			for _, j := range s.View().Pending() {
				if j.Queue != q.Name {
					continue
				}
				jobs++
				for _, task := range j.Tasks() {
					if task.Status == cluster.Pending {
						cores += task.Shape.Resources.Of(cluster.CPU)
					}
				}
			}
			if q.PendingJobs != jobs || q.Pending.Of(cluster.CPU) != cores || q.Used.Of(gpu) != s.Queue(q.Name).Used.Of(gpu) {
				t.Fatalf("position %d: %s has %d pending jobs that request %d: %+v", got.Position, q.Name, jobs, cores, q)
			}
			pending += jobs
		}
	}
	if pending == 0 {
		t.Error("no job was ever pending")
	}
}

// panicking is a plugin with a hook that panics while it is set.
type panicking struct{ panics bool }

func (*panicking) Name() string { return "Panicking" }

func (p *panicking) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddStanding(func(*cluster.Queue) []engine.Standing {
		if p.panics {
			panic(errors.New("no shares"))
		}
		return nil
	})
}

// A hook that panics is an error of one answer. The next answer is correct.
func TestQueueSharesOfAPanickingHook(t *testing.T) {
	p := &panicking{panics: true}
	l := NewLeader(Options{State: cluster.NewState(), Engine: enginetest.Engine(p)})
	if err := l.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	l.follower.newEngine = func() (*engine.Engine, error) { return enginetest.Engine(p), nil }
	if _, err := l.Follower().QueueShares(0); err == nil || !strings.HasSuffix(err.Error(), "at position 1 cannot be computed: panic: no shares") {
		t.Errorf("the error is %v", err)
	}
	p.panics = false
	if got := sharesOf(t, l, "a"); got.Name != "a" || len(got.Share) > 0 {
		t.Errorf("after the panic: %+v", got)
	}
}
