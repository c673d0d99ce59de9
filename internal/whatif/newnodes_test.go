package whatif

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// Nodes that differ only in their devices are different types of node: a request that is too
// large for any node is reduced to what the largest node has.
func TestRequestIsReducedToTheLargestNode(t *testing.T) {
	r, text := ask(t, enginetest.State(
		enginetest.Node("a").CPU(96, "512Gi").GPUs(2, "A100", "80Gi"), enginetest.Node("b").CPU(96, "512Gi").GPUs(8, "H100", "80Gi"),
		enginetest.Job("e").Devices(2).On("a"), enginetest.Job("f").Devices(8).On("b"),
		enginetest.Job("x").Devices(16)), "job/x")
	if d := cmp.Diff([]string{"with 8 devices instead of 16 and with one more node of H100 × 8"}, fitting(r)); d != "" {
		t.Errorf("(-want +got)\n%s%s", d, text)
	}
}

// A change that adds nodes names one node if new nodes like other nodes of its group would
// not be enough.
func TestNodeIsNamedIfOthersOfItsGroupAreTooSmall(t *testing.T) {
	r, text := ask(t, enginetest.State(
		enginetest.Node("a").CPU(96, "512Gi").GPUs(8, "H100", "80Gi"), enginetest.Node("b").CPU(4, "512Gi").GPUs(8, "H100", "80Gi"),
		enginetest.Job("e").Devices(8).On("a"), enginetest.Job("f").Devices(8).On("b"),
		enginetest.Job("x").Devices(16).CPU(50_000, "1Gi")), "job/x")
	if d := cmp.Diff([]string{"with 8 devices instead of 16 and with one more node of H100 × 8 like a"}, fitting(r)); d != "" {
		t.Errorf("(-want +got)\n%s%s", d, text)
	}
}

// A new node is ready and has all of its devices, whatever the state of the node is that it
// is a copy of.
func TestNewNodeIsReadyAndComplete(t *testing.T) {
	const want = "with one more node of H100 × 8"
	for name, node := range map[string]*enginetest.NodeBuilder{
		"not ready":     h100("a").Phase("NOT_READY").Taint("node.kubernetes.io/not-ready", "", cluster.NoSchedule),
		"cordoned":      h100("a").With(func(n *cluster.Node) { n.Unschedulable = true }).Taint("node.kubernetes.io/unschedulable", "", cluster.NoSchedule),
		"a lost device": h100("a").With(func(n *cluster.Node) { n.Devices[3].Lost = true }),
	} {
		t.Run(name, func(t *testing.T) {
			r, text := ask(t, enginetest.State(node, enginetest.Job("x").Devices(8)), "job/x")
			if !slices.Contains(fitting(r), want) {
				t.Errorf("want %q in\n%s", want, text)
			}
		})
	}
}

// A change is listed once, although the node with a lost device is in a group of its own.
func TestNewNodeIsListedOnce(t *testing.T) {
	r, text := ask(t, enginetest.State(h100("a").With(func(n *cluster.Node) { n.Devices[3].Lost = true }), h100("b"),
		enginetest.Job("e").Devices(8).On("b"), enginetest.Job("x").Devices(8)), "job/x")
	same := 0
	for _, c := range fitting(r) {
		if c == "with one more node of H100 × 8" {
			same++
		}
	}
	if same != 1 {
		t.Errorf("%d times one more node of H100 × 8 in\n%s", same, text)
	}
}

// If the tries are used up, the failure names the last number of nodes that was tried, and
// not the number that the workload lacks.
func TestFailureNamesTheNodesThatWereTried(t *testing.T) {
	state := enginetest.State(h100("a"), enginetest.Job("e").Devices(8).On("a"), enginetest.Job("x").Gang(5).Devices(8))
	e := explaintest.Engine(t)
	out, err := sim.Session(e, state, engine.Options{})
	if err != nil || len(out.Refusals) != 1 {
		t.Fatal(out.Refusals, err)
	}
	w := &workload{state: state, id: "job/x", refusal: out.Refusals[0], attempt: wire.MainAttempt(out.Refusals[0])}
	l := &lab{engine: e, state: state, workload: w, alsoEvicted: map[*change][]string{}}
	l.allow(2, defaultSteps)
	found := &finder{lab: l, phrases: testPhrases(t)}
	(&grower{lab: l, workload: w, found: found}).grow()
	var got []string
	for _, f := range found.fails {
		got = append(got, f.change.text)
	}
	if d := cmp.Diff([]string{"with 2 more nodes of H100 × 8"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Alternatives that each name a node group share an attempt, so that the number of an
// attempt is not that of its alternative.
func TestAlternativeOfAnAttempt(t *testing.T) {
	whole := func(group *cluster.GroupKey) cluster.Alternative {
		alt := enginetest.Job("x").WholeNodes(1, "8Gi").Build().Alternatives[0]
		alt.Whole.Only = group
		return alt
	}
	h, l := &cluster.GroupKey{Product: "H100", Count: 8}, &cluster.GroupKey{Product: "L4", Count: 8}
	plain := enginetest.Job("x").Devices(2).Build().Alternatives[0]
	for name, tt := range map[string]struct {
		alternatives []cluster.Alternative
		want         []int // by attempt
	}{
		"each has its own":       {[]cluster.Alternative{plain, plain, plain}, []int{0, 1, 2}},
		"the first share one":    {[]cluster.Alternative{whole(h), whole(l), plain}, []int{0, 2}},
		"the last share one":     {[]cluster.Alternative{plain, whole(h), whole(l)}, []int{0, 1}},
		"any group, and named":   {[]cluster.Alternative{whole(nil), whole(h), whole(l), plain}, []int{0, 1, 3}},
		"two choices of a group": {[]cluster.Alternative{whole(h), plain, whole(l), plain}, []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			job := enginetest.Job("x").Build()
			job.Alternatives = slices.Clone(tt.alternatives)
			for i := range job.Alternatives { // no task is in two alternatives
				tasks := slices.Clone(job.Alternatives[i].Tasks)
				for k, task := range tasks {
					own := *task
					tasks[k] = &own
				}
				job.Alternatives[i].Tasks = tasks
			}
			state := enginetest.State(enginetest.Node("a").CPU(8, "8Gi"))
			if err := state.Apply(cluster.JobPut{Job: *job}); err != nil {
				t.Fatal(err)
			}
			out, err := sim.Session(explaintest.Engine(t), state, engine.Options{})
			if err != nil || len(out.Refusals) != 1 {
				t.Fatal(out.Refusals, err)
			}
			w := workload{state: state, id: "job/x", refusal: out.Refusals[0]}
			var got []int
			for i := range w.refusal.Attempts {
				w.attempt = &w.refusal.Attempts[i]
				got = append(got, w.alternative())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
