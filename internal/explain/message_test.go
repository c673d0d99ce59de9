package explain

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/explain/explaintest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

func TestMessage(t *testing.T) {
	for name, c := range map[string]struct {
		state *cluster.State
		want  string
	}{
		"counts, most first, with numbers": {
			enginetest.State(h100("a").Label("gpu", "h100"), h100("b").Label("gpu", "h100"), h100("c"),
				enginetest.Job("e").DeviceMemory(8, "58Gi").On("a"), enginetest.Job("f").DeviceMemory(8, "60Gi").On("b"),
				enginetest.Job("x").DeviceMemory(1, "38Gi").Selector("gpu", "h100")),
			"0/3 nodes: 2 GPUMemoryInUse (want 38 GiB, most free 22 GiB), 1 LabelMismatch (gpu=h100); waiting can help",
		},
		"a gang": {
			enginetest.State(h100("a"), enginetest.Job("x").Gang(2).Devices(8)),
			"placed 1 of 2 needed; 0/1 nodes: 1 InsufficientDevices (want 8, most free 0); waiting cannot help",
		},
		"a queue's limit": {
			enginetest.State(h100("a"), enginetest.Queue("q").Limit("nvidia.com/gpu", 4000), enginetest.Job("e").Queue("q").Devices(3).On("a"),
				enginetest.Job("x").Queue("q").Devices(2)),
			"QueueLimitReached: queue q: nvidia.com/gpu: want 2 devices, 1 device left of the limit; waiting can help",
		},
		"no node at all": {
			enginetest.State(enginetest.Job("x").Devices(1)),
			"there are no nodes; waiting cannot help",
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulation := explaintest.Simulate(t, c.state, 0)
			got := testPhrases(t).Message(simulation.RefusalOf("job/x"))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMessageForWholeNodes(t *testing.T) {
	simulation := explaintest.Simulate(t, enginetest.State(h100("a"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "A10", "24Gi"), enginetest.Node("c").CPU(8, "64Gi"),
		enginetest.Job("x").WholeNodes(2, "20Gi")), 0)
	want := "No suitable node group found: insufficient capacity or no matching configurations after filtering." +
		" NodeResourceFilter removed 1 node (NoDevices: nvidia.com/gpu)" +
		"; NodeGroupSizeFilter removed A10 × 1 (GroupTooSmall: too few nodes, want 2, have 1)" +
		"; NodeGroupSizeFilter removed H100 × 8 (GroupTooSmall: too few nodes, want 2, have 1); waiting cannot help"
	if d := cmp.Diff(want, testPhrases(t).Message(simulation.RefusalOf("job/x"))); d != "" {
		t.Error(d)
	}
}

func TestSplitWords(t *testing.T) {
	for name, want := range map[string]string{
		"GPUMemoryInUse": "GPU memory in use", "NoNodes": "no nodes", "TooFewDevices": "too few devices", "": "", "X": "x",
	} {
		if got := splitWords(name); got != want {
			t.Errorf("%s: have %q, want %q", name, got, want)
		}
	}
}

// Every reason of the standard plugins has a phrase.
func TestEveryReasonHasAPhrase(t *testing.T) {
	for _, r := range standard.Reasons() {
		if r.Phrase == "" {
			t.Errorf("reason %s of %s has no phrase", r.Reason, r.Plugin)
		}
	}
}

// A reason without a phrase is written as the words of its name.
func TestTextOfReasonsWithoutAPhrase(t *testing.T) {
	r := &engine.Rejection{Reason: "RackTooHot", Subject: "r1", Want: engine.Quantity{Value: 2, Unit: engine.Count}, Have: engine.Quantity{Value: 1, Unit: engine.Count}}
	if got := (Phrases{}).rejectionText(r, nil); got != "rack too hot r1, want 2, have 1" {
		t.Error(got)
	}
}

// A plugin of another module can document its reasons as the standard plugins do.
func TestTextOfReasonsOfOtherModules(t *testing.T) {
	phrases := PhrasesOf(enginetest.Engine(elsewhere{}))
	amount := func(n int64) engine.Quantity { return engine.Quantity{Value: n, Unit: engine.Count} }
	for want, r := range map[string]*engine.Rejection{
		"rack r1 has fewer than 2 fans": {Reason: "RackTooHot", Subject: "r1", Want: amount(2)},
		"rack r1 has no fan":            {Reason: "RackTooHot", Subject: "r1", Want: amount(1)},
		"there is no node at all":       {Reason: engine.NoNodes},
	} {
		if got := phrases.rejectionText(r, nil); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	state := enginetest.State(enginetest.Job("a"), enginetest.Job("b"))
	if got, want := phrases.protectionText(state, engine.Preempt, "VictimTooHot", []string{"job/a", "job/a"}), "that cool down for 2m"; got != want {
		t.Errorf("have %q, want %q", got, want)
	}
	if got, want := phrases.protectionText(state, engine.Preempt, "VictimTooHot", []string{"job/a", "job/b"}), "that cool down for a while"; got != want {
		t.Errorf("have %q, want %q", got, want)
	}
}

type elsewhere struct{}

func (elsewhere) Name() string { return "Elsewhere" }

func (elsewhere) OnSessionOpen(*engine.Session) {}

func (elsewhere) Reasons() []engine.ReasonDoc {
	return []engine.ReasonDoc{
		{Reason: "RackTooHot", Phrase: "rack {subject} has fewer than {want} fans", One: "rack {subject} has no fan"},
		{Reason: engine.NoNodes, Phrase: "not used: the phrase of the engine comes first"},
		{Reason: "VictimTooHot", Protects: "that cool down for {time}", Spans: "a while", Span: func(_ cluster.View, j *cluster.Job, _ engine.Purpose) int64 {
			return map[string]int64{"job/a": 120e9, "job/b": 180e9}[j.ID]
		}},
	}
}

func TestResultIsStable(t *testing.T) {
	build := func() *cluster.State {
		return enginetest.State(h100("a"), h100("b"), enginetest.Job("x").Devices(4), enginetest.Job("y").Gang(2).DeviceMemory(2, "20Gi"), enginetest.Job("z").Devices(16))
	}
	first := explaintest.JSON(t, result(t, explaintest.Simulate(t, build(), 0), true))
	for range 5 {
		if d := cmp.Diff(first, explaintest.JSON(t, result(t, explaintest.Simulate(t, build(), 0), true))); d != "" {
			t.Fatal(d)
		}
	}
	empty := explaintest.JSON(t, result(t, explaintest.Simulate(t, enginetest.State(h100("a")), 0), false))
	if strings.Contains(empty, "null") {
		t.Error(empty)
	}
}

// The text says "together" for the memory of several devices, and not for the memory of each.
func TestTextOfSums(t *testing.T) {
	gib := func(n int64) engine.Quantity { return engine.Quantity{Value: n << 30, Unit: engine.Bytes} }
	tests := map[string]engine.Rejection{
		"8 devices together 170 GiB, 240 GiB needed":      {Reason: "GPUMemoryTooSmall", Subject: "8 devices together", Want: gib(240), Have: gib(170)},
		"8 devices together 170 GiB free, 240 GiB needed": {Reason: "GPUMemoryInUse", Subject: "8 devices together", Want: gib(240), Have: gib(170)},
		"devices smaller than 40 GiB":                     {Reason: "GPUMemoryTooSmall", Want: gib(40), Have: gib(24)},
	}
	phrases := PhrasesOf(explaintest.Engine(t))
	for want, r := range tests {
		other := engine.Miss{Node: "b", Rejection: r}
		if r.Subject != "" { // a node with fewer devices is counted with the first
			other.Rejection.Subject = "4 devices together"
		}
		if got := phrases.rejectionText(&r, []*engine.Miss{{Node: "a", Rejection: r}, &other}); got != want {
			t.Errorf("words %q, want %q", got, want)
		}
	}
}

// A group of which the nodes are not ready and hold no tasks is not reported as in use.
func TestGroupsThatAreNotReady(t *testing.T) {
	job := enginetest.Job("m").WholeNodes(1, "8Gi")
	for name, tt := range map[string]struct {
		parts  []enginetest.Part
		reason engine.Reason
		text   string
	}{
		"not ready": {[]enginetest.Part{h100("a").Phase("NOT_READY"), h100("b").Phase("NOT_READY")}, "NodeNotReady",
			"NodeNotReady: H100 × 8 would fit once more of its 2 nodes can be used (not ready: NOT_READY); waiting can help"},
		"one is held": {[]enginetest.Part{h100("a").Phase("NOT_READY"), h100("b"), enginetest.Job("x").Devices(1).On("b")}, engine.GroupInUse,
			"GroupInUse: H100 × 8 would fit with 1 of its 2 nodes free; waiting can help"},
	} {
		t.Run(name, func(t *testing.T) {
			simulation, err := sim.Simulate(explaintest.Engine(t), enginetest.State(append(tt.parts, job)...), sim.Options{})
			if err != nil || len(simulation.Refusals) != 1 {
				t.Fatalf("%v, %+v", err, simulation)
			}
			if r := simulation.Refusals[0]; r.Reason != tt.reason || !strings.HasSuffix(testPhrases(t).Message(r), tt.text) {
				t.Errorf("%s: %s; want %s: … %s", r.Reason, testPhrases(t).Message(r), tt.reason, tt.text)
			}
		})
	}
}

// If nodes are going to be created for a workload, its refusal is not permanent.
func TestAwait(t *testing.T) {
	for permanent, want := range map[bool]string{true: "no group; it waits for 3 nodes to be made", false: "no group; waiting can help"} {
		r := wire.Refusal{Permanent: permanent, Message: "no group; waiting can help"}
		if permanent {
			r.Message = "no group; waiting cannot help"
		}
		AwaitNodes(&r, 3)
		if r.Message != want {
			t.Errorf("message %q, want %q", r.Message, want)
		}
		if report := (&Report{Report: wire.Report{Refusal: &r}}); permanent && report.waitingText() != "It waits for 3 nodes to be made." {
			t.Errorf("the report says %q", report.waitingText())
		}
	}
}
