package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestReplaced checks that an object that replaced another of the same name, while no watch was
// connected, is delivered after the deletion of the other.
func TestReplaced(t *testing.T) {
	pod := func(uid, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: types.UID(uid), ResourceVersion: version}}
	}
	w := &Watch{signal: make(chan struct{}, 1)}
	w.update(pod("u1", "1"), pod("u1", "2"))
	w.update(pod("u1", "2"), pod("u2", "9"))
	want := []Event{{Object: pod("u1", "2")}, {Object: pod("u1", "2"), Deleted: true}, {Object: pod("u2", "9")}}
	if d := cmp.Diff(want, w.Take()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
