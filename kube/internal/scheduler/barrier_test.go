package scheduler

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestBarrier checks that the barrier is passed after all pods and claims were read, and that
// objects which the watch does not deliver are read again and reported as deleted if they are gone.
func TestBarrier(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7"}
	}
	var pods atomic.Pointer[corev1.PodList]
	pods.Store(&corev1.PodList{Items: []corev1.Pod{{ObjectMeta: meta("a")}, {ObjectMeta: meta("b")}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list runtime.Object
		switch r.URL.Path {
		case "/api/v1/pods":
			list = pods.Load()
		case "/apis/resource.k8s.io/v1/resourceclaims":
			list = &resourcev1.ResourceClaimList{Items: []resourcev1.ResourceClaim{{ObjectMeta: meta("c")}}}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 1)
	b := &barrier{client: client, log: slog.New(slog.DiscardHandler), wake: func() { ended <- struct{}{} }}
	defer b.reset()
	now := time.Unix(1000, 0)
	describe := func(list []watch.Event) (out []string) {
		for _, e := range list {
			text := e.Object.(metav1.Object).GetName()
			if e.Deleted {
				text += " is deleted"
			}
			out = append(out, text)
		}
		return out
	}
	if _, passed := b.pass(now); passed {
		t.Fatal("the barrier is passed before the objects were read")
	}
	<-ended
	list, passed := b.pass(now)
	if got := describe(list); !passed || !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Fatalf("passed %t, and %v were read", passed, got)
	}
	for _, e := range list {
		b.expect(e)
	}
	b.confirm(list[0])
	if list, passed := b.pass(now.Add(confirmTime - 1)); len(list) > 0 || !passed {
		t.Errorf("passed %t, and %v were read too early", passed, describe(list))
	}
	pods.Store(&corev1.PodList{Items: []corev1.Pod{{ObjectMeta: meta("b")}}})
	now = now.Add(confirmTime)
	if list, passed := b.pass(now); len(list) > 0 || !passed {
		t.Errorf("passed %t, and %v were read; decisions must go on", passed, describe(list))
	}
	<-ended
	list, _ = b.pass(now)
	if got := describe(list); !slices.Equal(got, []string{"a is deleted", "c", "b"}) {
		t.Errorf("%v, want that pod a is deleted", got)
	}
	b.confirm(watch.Event{Object: &corev1.Pod{ObjectMeta: meta("b")}})
	if len(b.unconfirmed) > 0 {
		t.Errorf("%d objects are expected after all were delivered", len(b.unconfirmed))
	}
	b.reset()
	if _, passed := b.pass(now); passed {
		t.Error("the next leadership does not begin with a read")
	}
}

// TestLateRead checks that what the barrier has read is ignored if the watch has delivered
// something newer meanwhile.
func TestLateRead(t *testing.T) {
	s := newTestScheduler(t)
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: "u1", ResourceVersion: version}, Spec: corev1.PodSpec{SchedulerName: "berth", Containers: []corev1.Container{{Name: "main"}}}}
	}
	claim := func(version string) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "c", UID: "u2", ResourceVersion: version}}
	}
	take := func(e watch.Event) {
		t.Helper()
		if err := s.take(e); err != nil {
			t.Fatal(err)
		}
	}
	take(watch.Event{Object: pod("5")})
	take(watch.Event{Object: claim("6")})
	take(watch.Event{Object: pod("3")})
	take(watch.Event{Object: claim("3")})
	if got := s.objects.pods["u1"].ResourceVersion; got != "5" || s.objects.claims["u2"] != 6 {
		t.Errorf("the pod has version %s and the claim %d, want 5 and 6", got, s.objects.claims["u2"])
	}
	take(watch.Event{Object: pod("7"), Deleted: true})
	take(watch.Event{Object: claim("8"), Deleted: true})
	take(watch.Event{Object: pod("5")})
	take(watch.Event{Object: claim("6")})
	if x := s.objects; len(x.pods)+len(x.names)+len(x.tasks)+len(x.claims) > 0 || s.leader.State().Job("pod/ml/p") != nil {
		t.Errorf("%d pods and %d claims are known after their deletion", len(x.pods), len(x.claims))
	}
}
