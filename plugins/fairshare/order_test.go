package fairshare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/fairshare"
	"pgregory.net/rapid"
)

// TestKeysAreUpToDate checks that the cached keys and the kept highest ratios are correct after
// any changes and undone changes of a session.
func TestKeysAreUpToDate(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		parts := []enginetest.Part{
			enginetest.Node("n").CPU(100, "0").GPUs(100, "A100", "80Gi"),
			enginetest.Queue("top").Quota(gpu, 3000), enginetest.Queue("a").Parent("top").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), enginetest.Queue("b").Parent("top"), enginetest.Queue("c"),
		}
		for i := range 12 {
			b := enginetest.Job(fmt.Sprint("j", i)).Queue(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue")).Devices(1)
			if rapid.Bool().Draw(t, "runs") {
				b.On("n")
			}
			parts = append(parts, b)
		}
		state := enginetest.State(parts...)
		p := &plugin{}
		s := enginetest.Engine(p).Open(state, engine.Options{})
		defer s.Close()
		check := func() {
			tree := p.shares()
			for _, parent := range []*fairshare.Queue{nil, tree.ByName["top"]} {
				want := ratio{total: 1}
				for _, q := range childrenOf(tree, parent) {
					if own := ratioWith(tree, q, nil); own.compare(want) > 0 {
						want = own
					}
				}
				if got := p.highest.of(tree, parent); got.compare(want) != 0 {
					t.Fatalf("the highest ratio is %+v, want %+v", got, want)
				}
			}
			for name, q := range tree.ByName {
				for _, j := range state.Pending() {
					if !slices.Contains(tree.ByName[j.Queue].Branch, q) {
						continue
					}
					fresh := newKey(tree, q, p.requestOf(j))
					if fresh.job = j; *p.orderKey(q, j) != fresh {
						t.Fatalf("queue %s has the cached key %+v, want %+v", name, *p.orderKey(q, j), fresh)
					}
					break // one job of each queue is enough
				}
			}
		}
		check()
		stmt := s.Begin()
		marks := []int{stmt.Checkpoint()}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			j := rapid.SampledFrom(state.Jobs()).Draw(t, "job")
			task := j.Tasks()[0]
			switch {
			case rapid.IntRange(0, 3).Draw(t, "back") == 0:
				at := rapid.IntRange(0, len(marks)-1).Draw(t, "mark")
				stmt.Rollback(marks[at])
				marks = marks[:at+1]
			case task.Status == cluster.Pending:
				if r := s.Place(stmt, j); r != nil {
					t.Fatalf("%s was refused: %s", j.ID, r.Reason)
				}
				moved++
			case task.Runs():
				if err := stmt.Evict(task, "", "Test"); err != nil {
					t.Fatal(err)
				}
				moved++
			}
			marks = append(marks, stmt.Checkpoint())
			check()
		}
		stmt.Discard()
		check()
	})
	if moved == 0 {
		t.Error("nothing ever moved")
	}
}
