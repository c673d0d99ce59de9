package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestCommitsAfterFailedBatch checks that Recent.Commits grows if ApplyAll adds the first
// nodes of a batch and then fails, and that it does not grow if nothing was added.
func TestCommitsAfterFailedBatch(t *testing.T) {
	good := func(name string) cluster.Change { return cluster.NodePut{Node: cluster.Node{Name: name}} }
	bad := cluster.NodePut{Node: cluster.Node{Name: "bad", Devices: []cluster.Device{{DeviceSpec: &cluster.DeviceSpec{}, UUID: "x"}, {DeviceSpec: &cluster.DeviceSpec{}, UUID: "x"}}}}
	tests := map[string]struct {
		batch []cluster.Change
		nodes int
		grows bool
	}{
		"the second fails": {[]cluster.Change{good("a"), bad}, 1, true},
		"the first fails":  {[]cluster.Change{bad, good("a")}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.NewState()
			before := s.View().Recent().Commits()
			if err := s.ApplyAll(test.batch); err == nil {
				t.Fatal("ApplyAll accepts a node with two devices of the same UUID")
			}
			if got := len(s.Nodes()); got != test.nodes {
				t.Errorf("%d nodes were added, want %d", got, test.nodes)
			}
			if got := s.View().Recent().Commits() > before; got != test.grows {
				t.Errorf("Commits grew: %t, want %t", got, test.grows)
			}
		})
	}
}
