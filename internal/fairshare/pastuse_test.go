package fairshare

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"pgregory.net/rapid"
)

// plainUse computes the past use of the resource directly, interval by interval.
func plainUse(d *Decay, q *Queue, resource string) sum {
	var all sum
	for _, u := range q.Queue.Past {
		if to := min(u.To, d.Now); u.From < to {
			all = all.plus(times(u.Resources.Of(resource), d.halved(d.Now-to)-d.halved(d.Now-u.From)))
		}
	}
	if len(q.Queue.Past) == 0 {
		for _, c := range q.Children {
			all = all.plus(plainUse(d, c, resource))
		}
	}
	return all
}

// The cached computation equals the direct one, whatever intervals have in common and
// whatever was computed before.
func TestPastUseIsTheDirectSum(t *testing.T) {
	names := []string{cluster.CPU, cluster.Memory, gpu, "example.com/npu"}
	rapid.Check(t, func(t *rapid.T) {
		interval := func() cluster.Usage {
			from := rapid.Int64Range(0, 9).Draw(t, "from")
			u := cluster.Usage{From: from, To: from + rapid.Int64Range(0, 4).Draw(t, "long")}
			for _, name := range names {
				if rapid.Bool().Draw(t, name) {
					value := rapid.SampledFrom([]int64{0, 1, 1000, 1 << 62}).Draw(t, "value")
					u.Resources = u.Resources.With(name, value)
				}
			}
			return u
		}
		s := cluster.NewState()
		for _, name := range []string{"a", "b", "c", "d"} {
			q := cluster.Queue{Name: name}
			if name > "b" {
				q.Parent = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "parent")
			}
			for range rapid.IntRange(0, 6).Draw(t, "intervals") {
				q.Past = append(q.Past, interval())
			}
			apply(t, s, cluster.QueuePut{Queue: q})
		}
		divided := map[string]bool{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "divided") {
				divided[name] = true
			}
		}
		tree := newTree(s.View())
		tree.pastUse = newPastUse(divided)
		for _, now := range rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 4).Draw(t, "sessions at") {
			tree.decay = Decay{HalfLife: 3, Weight: 1000, Now: now}
			tree.addUpPastUse(s.View())
			for name := range divided {
				for _, q := range tree.BySlot {
					want := plainUse(&tree.decay, q, name)
					if got := q.past[tree.pastUse.positions[name]]; got != want {
						t.Fatalf("at %d queue %s used %v of %s, want %v", now, q.Name, got, name, want)
					}
				}
			}
		}
	})
}

func apply(t *rapid.T, s *cluster.State, c cluster.Change) {
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
}
