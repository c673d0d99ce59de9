package scheduler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/history"
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
	kept := history.New()
	s := &Scheduler{
		options: Options{Feed: feed.Options{SchedulerNames: []string{"berth"}}, Held: func() bool { return false }, Log: slog.New(slog.DiscardHandler)}, engine: e,
		leader:  live.NewLeader(live.Options{State: cluster.NewState(), Engine: e, Log: kept}),
		objects: newObjects(feed.Options{SchedulerNames: []string{"berth"}}, intree.NewStore()),
	}
	s.sessions = Sessions{kept, s.leader, e, s.objects.store, s.phrases, nil}
	s.metrics = metrics.New(metrics.Sources{Pending: func() metrics.Pending { return pending(s.leader.Follower()) }, Reports: func() int { return 0 }})
	s.dryRun = dryRun{leader: s.leader, objects: s.objects, metrics: s.metrics, log: s.options.Log, hold: time.Minute}
	return s
}

// TestMayRecover checks that a reservation of an earlier leader is used only if no filter that looks
// at other pods matters for the pod.
func TestMayRecover(t *testing.T) {
	terms := []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}
	for name, tc := range map[string]struct {
		edit func(*corev1.PodSpec)
		want bool
	}{
		"plain":       {func(*corev1.PodSpec) {}, true},
		"a host port": {func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, false},
		"affinity": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}, false},
		"anti-affinity": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}, false},
		"spread": {func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		}, false},
		"a preference": {func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}, true},
		"a claim": {func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}, Status: corev1.PodStatus{NominatedNodeName: "a"}}
		tc.edit(&pod.Spec)
		if got := mayRecover(pod, &reservation{Node: "a", At: time.Now().UnixNano() - 1}, time.Minute, intree.NewStore()); got != tc.want {
			t.Errorf("%s: the reservation is recovered: %t, want %t", name, got, tc.want)
		}
	}
}
