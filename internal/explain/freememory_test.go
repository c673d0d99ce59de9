package explain

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// Unified memory is counted once, and memory that is used by other processes is named.
func TestFreeMemoryText(t *testing.T) {
	unified := func(n *cluster.Node) { n.Unified = true }
	model := enginetest.Job("m").ModelReplica(cluster.Binpack).CPU(0, "1Gi").DeviceMemory(1, "40Gi")
	tests := map[string]struct {
		parts          []enginetest.Part
		free           map[string]cluster.Bytes // of the devices of n, as read
		offer, foreign string
	}{
		"devices": {[]enginetest.Part{enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A", "80Gi")}, nil,
			"Most memory free now: 80 GiB on one device (n:cuda:0, A), 160 GiB on one node (n, 2 devices), 160 GiB on all A together.", ""},
		"unified memory": {[]enginetest.Part{enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "A", "80Gi").With(unified), enginetest.Job("x").CPU(0, "70Gi").On("n")}, nil,
			"Most memory free now: 30 GiB on one device (n:cuda:0, A), 30 GiB on one node (n, 1 device), 30 GiB on all A together.", ""},
		"unified memory that is used up": {[]enginetest.Part{enginetest.Node("n").CPU(8, "100Gi").GPUs(2, "A", "80Gi").With(unified), enginetest.Job("x").CPU(0, "100Gi").On("n")}, nil,
			"No device that it may use has memory free.", ""},
		"used by other processes": {[]enginetest.Part{enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "A", "80Gi")}, map[string]cluster.Bytes{"GPU-n-0": 74 << 30, "GPU-n-1": 80 << 30},
			"Most memory free now: 80 GiB on one device (n:cuda:1, A), 154 GiB on one node (n, 2 devices), 154 GiB on all A together.",
			"On n:cuda:0, 6 GiB is used by processes that Berth did not place."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(tt.parts...)
			if err := s.Apply(cluster.NodeRead{Name: "n", Free: tt.free}); err != nil {
				t.Fatal(err)
			}
			shape := model.Build().Tasks()[0].Shape
			if got := FreeMemoryText(s, shape); got != tt.offer {
				t.Errorf("offer\n  %s\nwant\n  %s", got, tt.offer)
			}
			if got := ForeignMemoryText(s, shape); got != tt.foreign {
				t.Errorf("foreign %q, want %q", got, tt.foreign)
			}
		})
	}
}
