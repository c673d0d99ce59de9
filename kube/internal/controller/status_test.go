package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-project/berth/internal/feed"
)

// TestReplicaCreated: the status has the time by which the scheduler orders replicas, so that a
// simulation of the objects retires the same ones, whenever the pods were created.
func TestReplicaCreated(t *testing.T) {
	model := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(annotation string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "chat-1", CreationTimestamp: metav1.NewTime(model.Add(time.Second)), Annotations: map[string]string{feed.AnnotationModelTask: annotation},
		}}
	}
	for _, tt := range []struct {
		annotation string
		want       time.Time
	}{
		{`{"model": "chat", "created": "2026-01-01T12:00:00Z"}`, model},
		{`{"model": "chat"}`, model.Add(time.Second)},
		{`{"model": `, model.Add(time.Second)},
		{"", model.Add(time.Second)},
	} {
		r := (&plan{}).oneReplica(&replica{pods: []*corev1.Pod{pod(tt.annotation)}})
		if r.Created == nil || !r.Created.Time.Equal(tt.want) {
			t.Errorf("annotation %s: created %v, want %v", tt.annotation, r.Created, tt.want)
		}
	}
}
