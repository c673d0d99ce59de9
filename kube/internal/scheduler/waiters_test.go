package scheduler

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestWaiters checks that pods are due in their order, once each, and not before their time.
func TestWaiters(t *testing.T) {
	var w waiters
	begin := time.Now()
	w.add("a", begin)
	w.add("b", begin.Add(patience/2))
	for _, step := range []struct {
		after time.Duration
		want  []types.UID
	}{{patience - 1, nil}, {patience, []types.UID{"a"}}, {patience, nil}, {2 * patience, []types.UID{"b"}}, {3 * patience, nil}} {
		if got := w.due(begin.Add(step.after)); !slices.Equal(got, step.want) {
			t.Errorf("after %s, %v are due, want %v", step.after, got, step.want)
		}
	}
}
