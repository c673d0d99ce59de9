package modelfilelocalityscorer

import (
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestScore(t *testing.T) {
	alone, pair := cluster.Files{Main: "llama"}, cluster.Files{Main: "llama", Draft: "tiny"}
	node := func() *enginetest.NodeBuilder { return enginetest.Node("n") }
	tests := map[string]struct {
		files cluster.Files
		node  *enginetest.NodeBuilder
		want  float64
	}{
		"the file is missing":        {alone, node(), 0},
		"the file is READY":          {alone, node().Artifact("llama", cluster.Ready), 5},
		"the file is not READY yet":  {alone, node().Artifact("llama", "DOWNLOADING"), 0},
		"another file is READY":      {alone, node().Artifact("tiny", cluster.Ready), 0},
		"main and draft":             {pair, node().Artifact("llama", cluster.Ready).Artifact("tiny", cluster.Ready), 5},
		"main without draft":         {pair, node().Artifact("llama", cluster.Ready), 5 / 1.5},
		"draft without main":         {pair, node().Artifact("tiny", cluster.Ready), 2.5 / 1.5},
		"neither main nor draft":     {pair, node(), 0},
		"a draft alone is requested": {cluster.Files{Draft: "tiny"}, node().Artifact("tiny", cluster.Ready), 2.5 / 1.5},
		"a file without a name":      {cluster.Files{Draft: "tiny"}, node().Artifact("", cluster.Ready), 0},
		"the draft is not READY yet": {pair, node().Artifact("llama", cluster.Ready).Artifact("tiny", "ERROR"), 5 / 1.5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &cluster.Shape{Files: tt.files}
			if !matters(s) {
				t.Fatal("the plugin does not apply to a shape with files")
			}
			if got := score(s, tt.node.Build()); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDoesNotApplyWithoutFiles(t *testing.T) {
	if matters(&cluster.Shape{Strategy: cluster.Binpack, Files: cluster.Files{Path: "/models/x"}}) {
		t.Error("the plugin applies although no file is named")
	}
}

func TestAllocatesNothing(t *testing.T) {
	s := &cluster.Shape{Files: cluster.Files{Main: "llama", Draft: "tiny"}}
	n := enginetest.Node("n").Artifact("llama", cluster.Ready).Build()
	if got := testing.AllocsPerRun(100, func() { score(s, n) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"most": 10}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
