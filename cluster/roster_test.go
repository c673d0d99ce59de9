package cluster_test

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestFindTask checks that each task is found by its name, whether or not its number is its place
// in the list.
func TestFindTask(t *testing.T) {
	role := func(name string, from, to int) (out []*cluster.Task) {
		for i := from; i < to; i++ {
			out = append(out, &cluster.Task{Name: fmt.Sprintf("%s-%d", name, i), Role: name, Index: i})
		}
		return out
	}
	named := func(names ...string) (out []*cluster.Task) {
		for _, n := range names {
			out = append(out, &cluster.Task{Name: n})
		}
		return out
	}
	for name, tasks := range map[string][]*cluster.Task{
		"none":            nil,
		"one role":        role("w", 0, 20),
		"three roles":     append(append(role("a", 0, 7), role("b", 0, 5)...), role("c", 0, 9)...),
		"some are gone":   append(role("a", 3, 7), role("b", 2, 4)...),
		"without numbers": named("leader", "", "worker"),
		"odd numbers":     named("a-1", "a-0", "1", "0", "a-00", "a-99999999999999999999", "-1", "a-999999999"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range tasks {
				if got := cluster.FindTask(tasks, want.Name); got != want {
					t.Errorf("%q: %+v", want.Name, got)
				}
			}
			for _, unknown := range []string{"x", "w-20", "a-5000", "0-", "a-2147483648"} {
				if got := cluster.FindTask(tasks, unknown); got != nil {
					t.Errorf("%q is %q", unknown, got.Name)
				}
			}
		})
	}
}
