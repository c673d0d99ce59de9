package fairshare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func job(queue string, devices int, at string) enginetest.Part {
	b := enginetest.Job(fmt.Sprintf("%s-%d-%s", queue, devices, at)).Queue(queue).Devices(devices)
	if at != "" {
		b.On(at)
	}
	return b
}

func TestQueueOrder(t *testing.T) {
	const guaranteed, scavenger = cluster.TierGuaranteed, cluster.TierScavenger
	q := enginetest.Queue
	type list = []enginetest.Part
	tests := map[string]struct {
		parts list
		want  []string // the queues with pending jobs, in order
	}{
		"tier first":                        {list{q("a").Tier(scavenger).Priority(9), q("b"), q("c").Tier(guaranteed), job("a", 1, ""), job("b", 1, ""), job("c", 1, "")}, []string{"c", "b", "a"}},
		"guaranteed up to its quota":        {list{q("a").Quota(gpu, 2000).Tier(guaranteed), q("b").Priority(1), job("a", 1, "n"), job("a", 1, ""), job("b", 1, "")}, []string{"a", "b"}},
		"and standard beyond":               {list{q("a").Quota(gpu, 1000).Tier(guaranteed), q("b").Priority(1), job("a", 1, "n"), job("a", 1, ""), job("b", 1, "")}, []string{"b", "a"}},
		"but before scavengers":             {list{q("a").Quota(gpu, 1000).Tier(guaranteed), q("b").Tier(scavenger), job("a", 1, "n"), job("a", 1, ""), job("b", 1, "")}, []string{"a", "b"}},
		"below its share first":             {list{q("a").Priority(1).Weight(1), q("b").Priority(1).Weight(7), job("a", 2, "n"), job("a", 8, ""), job("b", 3, "n"), job("b", 4, "")}, []string{"b", "a"}},
		"with the job above its share":      {list{q("a"), q("b"), job("a", 6, ""), job("b", 1, "n"), job("b", 3, "")}, []string{"b", "a"}},
		"with the job beyond its quota":     {list{q("a").Quota(gpu, 2000), q("b").Quota(gpu, 2000), job("a", 1, "n"), job("a", 2, ""), job("b", 1, "n"), job("b", 1, "")}, []string{"b", "a"}},
		"with the job beyond its guarantee": {list{q("a").Quota(gpu, 2000).Tier(guaranteed), q("b"), job("a", 1, "n"), job("a", 2, ""), job("b", 1, "")}, []string{"b", "a"}},
		"what the job does not ask for":     {list{q("a").Quota(gpu, 1000), q("b").Quota(gpu, 1000), job("a", 2, "n"), enginetest.Job("cores").Queue("a").CPU(1000, "0"), job("b", 2, "")}, []string{"a", "b"}},
		"then below its quota":              {list{q("a").Priority(1), q("b").Quota(gpu, 4000), job("a", 1, ""), job("b", 2, "n"), job("b", 1, "")}, []string{"b", "a"}},
		"then priority":                     {list{q("a"), q("b").Priority(1), job("a", 1, ""), job("b", 2, "n"), job("b", 1, "")}, []string{"b", "a"}},
		"then the smaller part":             {list{q("a"), q("b"), job("a", 2, "n"), job("a", 1, ""), job("b", 1, "n"), job("b", 2, "")}, []string{"b", "a"}},
		"then age":                          {list{q("a").Created(2), q("b").Created(1), job("a", 1, ""), job("b", 1, "")}, []string{"b", "a"}},
		"then name":                         {list{q("b"), q("a"), job("a", 1, ""), job("b", 1, "")}, []string{"a", "b"}},
		"where branches part":               {list{q("x").Priority(1), q("y"), q("a").Parent("y").Priority(9), q("b").Parent("x"), job("a", 1, ""), job("b", 1, "")}, []string{"b", "a"}},
		"branches stay together":            {list{q("x"), q("y"), q("a").Parent("x"), q("b").Parent("y"), q("c").Parent("x"), job("a", 1, ""), job("b", 1, ""), job("c", 1, "")}, []string{"a", "c", "b"}},
		"what no node has": {list{q("a"), q("b"), enginetest.Job("j").Queue("a").Resource("example.com/fpga", 1), enginetest.Job("k").Queue("b").CPU(1000, "0")},
			[]string{"a", "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New(engine.NoArguments{})
			if err != nil {
				t.Fatal(err)
			}
			state := enginetest.State(append(list{enginetest.Node("n").CPU(64, "512Gi").GPUs(8, "A100", "80Gi")}, tc.parts...)...)
			s := enginetest.Engine(p).Open(state, engine.Options{})
			defer s.Close()
			var got []*cluster.Queue
			for _, j := range state.Pending() {
				if q := state.Queue(j.Queue); !slices.Contains(got, q) {
					got = append(got, q)
				}
			}
			heads := map[*cluster.Queue]*cluster.Job{}
			for _, j := range state.Pending() {
				heads[state.Queue(j.Queue)] = j
			}
			slices.SortFunc(got, func(l, r *cluster.Queue) int {
				a, b := state.View().Fork(l, r)
				if order := p.(*plugin).compare(engine.Bid{Queue: a, Job: heads[l]}, engine.Bid{Queue: b, Job: heads[r]}); order != 0 {
					return order
				}
				return strings.Compare(a.Name, b.Name)
			})
			var names []string
			for _, q := range got {
				names = append(names, q.Name)
			}
			if d := cmp.Diff(tc.want, names); d != "" {
				t.Errorf("order (-want +got):\n%s", d)
			}
		})
	}
}

// A queue may be compared with itself, with two jobs.
func TestOneQueueWithTwoJobs(t *testing.T) {
	p := &plugin{}
	state := enginetest.State(enginetest.Node("n").GPUs(8, "A100", "80Gi"), enginetest.Queue("a").Quota(gpu, 2000), job("a", 1, ""), job("a", 3, ""))
	s := enginetest.Engine(p).Open(state, engine.Options{})
	defer s.Close()
	within := engine.Bid{Queue: state.Queue("a"), Job: state.Job("job/a-1-")}
	beyond := engine.Bid{Queue: state.Queue("a"), Job: state.Job("job/a-3-")}
	if p.compare(within, beyond) >= 0 || p.compare(beyond, within) <= 0 {
		t.Errorf("within its quota: %d, beyond: %d", p.compare(within, beyond), p.compare(beyond, within))
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"by": "name"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
