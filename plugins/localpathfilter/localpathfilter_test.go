package localpathfilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestAdmit(t *testing.T) {
	const path = "/models/llama.gguf"
	selected := []cluster.DeviceID{{Node: "n", Type: "cuda"}}
	missing := &engine.Rejection{Reason: LocalPathMissing, Cure: engine.Grow | engine.Relax, Subject: path}
	node := func() *enginetest.NodeBuilder { return enginetest.Node("n").GPUs(1, "L4", "24Gi") }
	tests := map[string]struct {
		path     string
		selected []cluster.DeviceID
		node     *enginetest.NodeBuilder
		want     *engine.Rejection
	}{
		"the path is READY":         {path, selected, node().Artifact(path, cluster.Ready), nil},
		"the path is missing":       {path, selected, node(), missing},
		"another path is READY":     {path, selected, node().Artifact("/models/llama", cluster.Ready), missing},
		"the path is not READY yet": {path, selected, node().Artifact(path, "DOWNLOADING"), &engine.Rejection{Reason: LocalPathNotReady, Cure: engine.Wait, Subject: path + " (DOWNLOADING)"}},
		"nothing selected":          {path, nil, node(), nil},
		"no path":                   {"", selected, node(), nil},
		"a file without a path":     {"", selected, node().Artifact(path, "ERROR"), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			shape := &cluster.Shape{Files: cluster.Files{Path: tt.path}, Need: cluster.Need{Devices: 1, Selected: tt.selected}}
			var got *engine.Rejection
			if matters(shape) {
				got = admit(shape, tt.node.Build())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"path": "/models"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
