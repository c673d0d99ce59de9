package scheduler

import (
	"log/slog"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/feed"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/metrics"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/berth-project/berth/plugins/standard"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGone checks that an update which the watch delivers after a read has shown that the pod is
// gone does not bring the pod back, and that nothing is kept after the deletion was delivered.
func TestGone(t *testing.T) {
	s := newTestScheduler(t)
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: "u1", ResourceVersion: version},
			Spec:       corev1.PodSpec{SchedulerName: "berth", Containers: []corev1.Container{{Name: "main"}}},
		}
	}
	take := func(e watch.Event) {
		t.Helper()
		if err := s.take(e); err != nil {
			t.Fatal(err)
		}
	}
	take(watch.Event{Object: pod("1")})
	if s.leader.State().Job("pod/ml/p") == nil {
		t.Fatal("the pod is no job")
	}
	if err := s.takeRead(&bind.Result{Pod: bind.Pod{Namespace: "ml", Name: "p", UID: "u1"}, Gone: true}); err != nil {
		t.Fatal(err)
	}
	take(watch.Event{Object: pod("2")})
	if len(s.objects.pods) > 0 || s.leader.State().Job("pod/ml/p") != nil {
		t.Error("an update has brought the pod back")
	}
	take(watch.Event{Object: pod("3"), Deleted: true})
	if x := s.objects; len(x.gone)+len(x.pods)+len(x.names)+len(x.tasks)+len(x.notes) > 0 {
		t.Errorf("%d pods are kept after the deletion", len(x.gone)+len(x.pods))
	}
}

// newTestScheduler returns a Scheduler without clients. Only what applies objects to the State may
// be called.
func newTestScheduler(t *testing.T) *Scheduler {
	t.Helper()
	registry := standard.Registry()
	e, err := engine.New(registry, standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	s := &Scheduler{
		options: Options{Held: func() bool { return false }, Log: slog.New(slog.DiscardHandler)}, engine: e,
		leader:  live.NewLeader(live.Options{State: cluster.NewState(), Engine: e}),
		objects: newObjects(feed.Options{SchedulerNames: []string{"berth"}}, intree.NewStore()),
	}
	s.metrics = metrics.New(metrics.Sources{Pending: s.pending, Reports: func() int { return 0 }})
	return s
}
