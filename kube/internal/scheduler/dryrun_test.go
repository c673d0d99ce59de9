package scheduler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDryRun checks that a dry run compares its decisions with the bindings of another scheduler,
// and that its State follows the cluster: a pod is where the other scheduler has bound it, and is
// pending again if none does.
func TestDryRun(t *testing.T) {
	s := newTestScheduler(t)
	s.options.DryRun, s.options.Held = true, func() bool { return true }
	take := func(o any) {
		t.Helper()
		if err := s.take(watch.Event{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		take(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	version := 10
	pod := func(name, node string) *corev1.Pod {
		version++
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version)},
			Spec: corev1.PodSpec{SchedulerName: "berth", NodeName: node, Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}}},
		}
	}
	task := func(name string) *cluster.Task {
		t.Helper()
		return s.leader.State().Task(cluster.TaskRef{Job: "pod/ml/" + name, Name: "0"})
	}
	for _, name := range []string{"same", "other", "never"} {
		take(pod(name, ""))
	}
	if err := s.decide(); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"a": "b", "b": "a"}
	chosen := task("other").Node.Name
	take(pod("same", task("same").Node.Name))
	take(pod("other", other[chosen]))
	take(pod("later", ""))
	take(pod("later", "a"))
	page := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, result := range []string{"same", "other", "later"} {
		if line := fmt.Sprintf("berth_dry_run_compared_total{result=%q} 1\n", result); !strings.Contains(page.Body.String(), line) {
			t.Errorf("no line %s in the metrics", line)
		}
	}
	if got := task("other"); got.Status != cluster.Bound || got.Node.Name != other[chosen] {
		t.Errorf("pod other is %s on %s, want Bound on %s", got.Status, got.Node.Name, other[chosen])
	}
	if err := s.apply(s.dryRun.due(time.Now())); err != nil || task("never").Status != cluster.Assumed {
		t.Errorf("pod never is %s before its time (%v)", task("never").Status, err)
	}
	if err := s.apply(s.dryRun.due(time.Now().Add(2 * time.Minute))); err != nil || task("never").Status != cluster.Pending {
		t.Errorf("pod never is %s, want Pending (%v)", task("never").Status, err)
	}
	if n := len(s.dryRun.bound); n > 0 {
		t.Errorf("%d bindings are kept", n)
	}
}
