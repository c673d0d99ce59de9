package resourceutilizationscorer

import (
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestScore(t *testing.T) {
	a10 := cluster.GroupKey{Product: "A10", Count: 1, Memory: 24576}
	a100 := cluster.GroupKey{Product: "A100", Count: 4, Memory: 40960}
	tests := map[string]struct {
		key    cluster.GroupKey
		memory cluster.Bytes
		nodes  int
		want   float64
	}{
		"a third":                       {a10, 8 << 30, 1, 100.0 / 3},
		"a twentieth":                   {a100, 8 << 30, 1, 5},
		"full":                          {a10, 24 << 30, 1, 100},
		"a group that is too small":     {a10, 48 << 30, 1, 100},
		"over two nodes":                {a10, 24 << 30, 2, 50},
		"need unknown, small node":      {a10, 0, 1, 100.0 / 24},
		"need unknown, large node":      {a100, 0, 1, 100.0 / 160},
		"need unknown, tiny node":       {cluster.GroupKey{Product: "toy", Count: 1, Memory: 512}, 0, 1, 100},
		"memory unknown":                {cluster.GroupKey{Product: "toy", Count: 1}, 8 << 30, 1, 0},
		"the number of nodes overflows": {a100, 8 << 30, math.MaxInt64, 100 * float64(8<<30) / float64(math.MaxInt64)},
		"need and nodes overflow":       {a100, math.MaxInt64, math.MaxInt64, 100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &cluster.WholeNodes{Replicas: 2, NodesPerReplica: tt.nodes, Memory: tt.memory}
			if got := score(nil, w, &cluster.Group{Key: tt.key}, nil); got != tt.want {
				t.Errorf("score %v, want %v", got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"need": "8Gi"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
