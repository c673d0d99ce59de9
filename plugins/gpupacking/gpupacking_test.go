package gpupacking

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestOrder lists nodes in the order in which they are filled.
func TestOrder(t *testing.T) {
	share := func(milli cluster.Milli) func(*cluster.Shape) {
		return func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Share: milli} }
	}
	node := func(name string, devices int) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(64, "1Ti").GPUs(devices, "A100", "80Gi")
	}
	s := enginetest.State(
		node("tight", 4), node("loose", 4), node("full-part", 4), node("busy", 8), node("idle-small", 2), node("idle", 8),
		enginetest.Job("a").Shape(share(700)).On("tight"), enginetest.Job("b").Shape(share(200)).On("loose"),
		enginetest.Job("c").Shape(share(900)).On("full-part"), enginetest.Job("d").Devices(2).On("busy"),
	)
	order := func(shape *cluster.Shape) (names []string) {
		nodes := slices.Clone(s.Nodes())
		slices.SortStableFunc(nodes, func(a, b *cluster.Node) int {
			switch x, y := score(shape, a), score(shape, b); {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		for _, n := range nodes {
			if v := score(shape, n); v < 0 || v > 100 {
				t.Errorf("%s: the score is %v", n.Name, v)
			}
			names = append(names, n.Name)
		}
		return names
	}
	part := s.Intern(cluster.Shape{Need: cluster.Need{Devices: 1, Share: 300}})
	if got := order(part); !slices.Equal(got, []string{"tight", "loose", "full-part", "busy", "idle-small", "idle"}) {
		t.Errorf("a part of a device: %v", got)
	}
	whole := s.Intern(cluster.Shape{Need: cluster.Need{Devices: 2}})
	if got := order(whole); !slices.Equal(got[3:], []string{"busy", "idle-small", "idle"}) {
		t.Errorf("whole devices: %v", got)
	}
}
