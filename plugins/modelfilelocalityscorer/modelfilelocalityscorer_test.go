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
		"not there":                {alone, node(), 0},
		"there":                    {alone, node().Artifact("llama", cluster.Ready), 5},
		"still being fetched":      {alone, node().Artifact("llama", "DOWNLOADING"), 0},
		"something else is there":  {alone, node().Artifact("tiny", cluster.Ready), 0},
		"both":                     {pair, node().Artifact("llama", cluster.Ready).Artifact("tiny", cluster.Ready), 5},
		"main without its draft":   {pair, node().Artifact("llama", cluster.Ready), 5 / 1.5},
		"draft without its main":   {pair, node().Artifact("tiny", cluster.Ready), 2.5 / 1.5},
		"neither":                  {pair, node(), 0},
		"a draft of something":     {cluster.Files{Draft: "tiny"}, node().Artifact("tiny", cluster.Ready), 2.5 / 1.5},
		"no name is no file":       {cluster.Files{Draft: "tiny"}, node().Artifact("", cluster.Ready), 0},
		"the draft is not yet all": {pair, node().Artifact("llama", cluster.Ready).Artifact("tiny", "ERROR"), 5 / 1.5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &cluster.Shape{Files: tt.files}
			if !matters(s) {
				t.Fatal("a shape with files does not matter")
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
