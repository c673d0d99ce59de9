package backfill_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// A job with an earmark has its turn before older jobs, but its surplus tasks do not. Of two jobs with
// earmarks, the one that has had its earmark for longer comes first, and may take the room of the other.
func TestTurns(t *testing.T) {
	holds := func(node string) *enginetest.JobBuilder {
		return enginetest.Job(node + "1").Devices(4).Created(1).On(node).Started(1)
	}
	minutes := func(n int) int64 { return 1 + int64(n)*int64(time.Minute) }
	tests := map[string]struct {
		arguments string
		parts     []enginetest.Part
		later     []*enginetest.JobBuilder // 20 minutes later
		gone      []string
		want      []string
	}{
		"before an older job": {`{}`, []enginetest.Part{
			node("a"), holds("a"), enginetest.Job("small").Devices(1).Created(minutes(0)), enginetest.Job("large").Devices(4).Created(minutes(1)),
		}, nil, []string{"job/a1"}, []string{"job/large"}},
		"not its surplus tasks": {`{"perQueue": 1}`, []enginetest.Part{
			node("a"), node("b"), holds("a"), holds("b"), enginetest.Job("elastic").Devices(4).Gang(2).Min(1).Created(minutes(0)), enginetest.Job("plain").Devices(4).Created(minutes(1)),
		}, nil, []string{"job/a1", "job/b1"}, []string{"job/elastic", "job/plain"}},
		"the earlier earmark": {`{"later": "1m", "share": 1}`, []enginetest.Part{
			node("a"), node("b"), holds("a"), holds("b"), enginetest.Job("first").Devices(2).Created(minutes(0)),
		}, []*enginetest.JobBuilder{enginetest.Job("larger").Devices(4).Created(minutes(0))}, []string{"job/a1"}, []string{"job/first"}},
		"the earlier earmark, in the room of the other": {`{"later": "1m", "share": 1}`, []enginetest.Part{
			node("a"), node("b"), holds("a"), holds("b"), enginetest.Job("first").Devices(2).Created(minutes(0)),
		}, []*enginetest.JobBuilder{enginetest.Job("larger").Devices(4).Created(minutes(0))}, []string{"job/b1"}, []string{"job/first"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.arguments, tt.parts...)
			w.now = minutes(20)
			w.session()
			w.now = minutes(40)
			for _, j := range tt.later {
				w.apply(cluster.JobPut{Job: *j.Build()})
			}
			w.session()
			if want := 1 + len(tt.later); len(cluster.EarmarksOf(w.state.View()).Jobs()) != want {
				t.Fatalf("want %d earmarks", want)
			}
			for _, id := range tt.gone {
				w.apply(cluster.JobGone{Job: id})
			}
			if d := cmp.Diff(tt.want, w.session()); d != "" {
				t.Error(d)
			}
		})
	}
}
