package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

func TestFork(t *testing.T) {
	s := cluster.NewState()
	for _, q := range []cluster.Queue{
		{Name: "a"}, {Name: "a-1", Parent: "a"}, {Name: "a-1-x", Parent: "a-1"}, {Name: "a-2", Parent: "a"}, {Name: "b"}, {Name: "b-1", Parent: "b"},
	} {
		if err := s.SetQueue(&q); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ left, right, a, b string }{
		"siblings":                    {"a-1", "a-2", "a-1", "a-2"},
		"roots":                       {"a", "b", "a", "b"},
		"one is deeper":               {"a-1-x", "a-2", "a-1", "a-2"},
		"one is deeper, on the right": {"a-2", "a-1-x", "a-2", "a-1"},
		"two trees":                   {"b-1", "a-1-x", "b", "a"},
		"one above the other":         {"a", "a-1-x", "", ""},
		"one below the other":         {"a-1-x", "a", "", ""},
		"the same queue":              {"a-1", "a-1", "", ""},
		"an unknown queue":            {"a-1", "c", "", ""},
	}
	name := func(q *cluster.Queue) string {
		if q == nil {
			return ""
		}
		return q.Name
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			left, right := s.Queue(tt.left), s.Queue(tt.right)
			if a, b := s.View().Fork(left, right); name(a) != tt.a || name(b) != tt.b {
				t.Errorf("got %q and %q, want %q and %q", name(a), name(b), tt.a, tt.b)
			}
			if got := testing.AllocsPerRun(10, func() { s.View().Fork(left, right) }); got != 0 {
				t.Errorf("%v allocations, want none", got)
			}
		})
	}
}
