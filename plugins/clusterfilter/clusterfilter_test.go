package clusterfilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func judge(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	if !matters(s) {
		return nil
	}
	return admit(s, n)
}

func TestAdmit(t *testing.T) {
	outside := &engine.Rejection{Reason: CellMismatch, Cure: engine.Grow | engine.Relax, Subject: "west", Precedence: engine.OtherKind}
	tests := map[string]struct {
		asked, node string
		want        *engine.Rejection
	}{
		"any cell":                      {"", "east", nil},
		"any cell, node without a cell": {"", "", nil},
		"same cell":                     {"west", "west", nil},
		"other cell":                    {"west", "east", outside},
		"a cell, node without a cell":   {"west", "", outside},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(&cluster.Shape{Cell: tt.asked}, enginetest.Node("n").Cell(tt.node).Build())
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"cell": "west"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
