package domainscorer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/domainscorer"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
)

func newEngine(t *testing.T, arguments string) *engine.Engine {
	t.Helper()
	r := engine.NewRegistry()
	for name, build := range map[string]engine.PluginBuilder{domainscorer.Name: domainscorer.New, noderesourcesfit.Name: noderesourcesfit.New} {
		if err := r.RegisterPluginBuilder(name, build); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.New(r, engine.Profile{{Name: noderesourcesfit.Name}, {Name: domainscorer.Name, Weight: 1, Arguments: enginetest.Arguments(arguments)}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decide runs a session, and returns the nodes of the decisions and the scores for the last one.
func decide(t *testing.T, e *engine.Engine, s *cluster.State) (nodes string, scores map[string]float64) {
	t.Helper()
	session := e.Open(s, engine.Options{Search: engine.Twin, Explain: true})
	out, err := session.Run()
	session.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range out.Decisions {
		nodes += d.Node + " "
		scores = map[string]float64{}
		for _, c := range d.Candidates {
			for _, p := range c.Score.Parts {
				scores[c.Node] += p.Score
			}
		}
	}
	return strings.TrimSpace(nodes), scores
}

func TestScore(t *testing.T) {
	node := func(name, clique string) *enginetest.NodeBuilder {
		b := enginetest.Node(name).CPU(64, "640Gi").GPUs(4, "GB200", "180Gi")
		if clique != "" {
			b.Label(cluster.LabelClique, clique)
		}
		return b
	}
	small, held := enginetest.Job("j").Devices(1), enginetest.Job("x").Devices(1).On("b2")
	tests := map[string]struct {
		arguments string
		parts     []enginetest.Part
		node      string
		scores    map[string]float64
	}{
		"a whole domain is spared": {"{}", []enginetest.Part{node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b").Label("x", "y"), held, small}, "b1", map[string]float64{"a1": 0, "a2": 0, "b1": 2, "b2": 2}},
		"all are whole":            {"{}", []enginetest.Part{node("a1", "a"), node("b1", "b"), small}, "a1", map[string]float64{"a1": 0, "b1": 0}},
		"a node in no domain":      {"{}", []enginetest.Part{node("a1", "a"), node("c", ""), small}, "c", map[string]float64{"a1": 0, "c": 4}},
		"no domain is refused":     {"{}", []enginetest.Part{node("a1", "a"), small}, "a1", map[string]float64{"a1": 0}},
		"no labels, no score":      {"{}", []enginetest.Part{node("a", ""), node("b", ""), small}, "a", map[string]float64{}},
		"another level":            {`{"levels": ["x"]}`, []enginetest.Part{node("a1", "a"), node("b2", "b").Label("x", "y"), small}, "a1", map[string]float64{"a1": 4, "b2": 0}},
		"no devices":               {"{}", []enginetest.Part{node("a1", "a"), node("c", ""), enginetest.Job("j").CPU(1000, "1Gi")}, "a1", map[string]float64{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, scores := decide(t, newEngine(t, tt.arguments), enginetest.State(tt.parts...))
			if diff := cmp.Diff(tt.scores, scores); diff != "" || got != tt.node {
				t.Errorf("on %s, want %s\n%s", got, tt.node, diff)
			}
		})
	}
}

// TestLabelsCome: the score is given as soon as a node has the label, and not after the last has lost it.
func TestLabelsCome(t *testing.T) {
	plain := func(name string) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(64, "640Gi").GPUs(4, "GB200", "180Gi")
	}
	s, e := enginetest.State(plain("a"), plain("b")), newEngine(t, "{}")
	step := func(c cluster.Change, job, want string) {
		t.Helper()
		for _, c := range []cluster.Change{c, cluster.JobPut{Job: *enginetest.Job(job).Devices(1).Build()}} {
			if err := s.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := decide(t, e, s); got != want {
			t.Errorf("%s is on %s, want %s", job, got, want)
		}
	}
	labelled := plain("a").Label(cluster.LabelClique, "q")
	step(cluster.NodePut{Node: *labelled.Build()}, "1", "b")
	step(cluster.JobGone{Job: "job/1"}, "2", "b")
	step(cluster.NodePut{Node: *plain("a").Build()}, "3", "a")
	step(cluster.NodePut{Node: *plain("c").Label(cluster.LabelClique, "q").Build()}, "4", "a")
	step(cluster.NodeGone{Name: "c"}, "5", "a")
}

func TestArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"levels": ["a", "b", "c", "d", "e"]}`: "levels: want at most 4 labels, have 5",
		`{"levels": ["a", "a"]}`:                `levels: want labels that differ and are not empty, have "a"`,
		`{"levels": [""]}`:                      "levels: want labels that differ",
		`{"level": "a"}`:                        "level",
	} {
		if _, err := domainscorer.New(enginetest.Arguments(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", arguments, err, want)
		}
	}
}
