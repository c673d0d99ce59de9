package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestUnlistedDeviceIsNoRoom: a task is reported with a device that its node does not list.
// Neither then nor after the task has left does the device count as room for other tasks.
func TestUnlistedDeviceIsNoRoom(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"), enginetest.Job("x").Devices(1))
	task := cluster.TaskRef{Job: "job/x", Name: "worker-0"}
	for _, c := range []cluster.Change{
		cluster.TaskSeen{Task: task, Node: "a", Devices: []cluster.Holding{{Device: "GPU-elsewhere", Milli: 1000}}},
		cluster.TaskGone{Task: task},
	} {
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
		n := state.Node("a")
		for devices, fits := range map[int]bool{2: true, 3: false} {
			shape := enginetest.Job("y").Devices(devices).Build().Alternatives[0].Tasks[0].Shape
			if got := n.Feasible(shape); got != fits {
				t.Errorf("after %s: %d devices are feasible: %t", c.Kind(), devices, got)
			}
			if _, got := n.Choose(shape, nil); got != fits {
				t.Errorf("after %s: %d devices are chosen: %t", c.Kind(), devices, got)
			}
			if got := n.Room(shape) > 0; got != fits {
				t.Errorf("after %s: there is room for %d devices: %t", c.Kind(), devices, got)
			}
		}
		if err := state.Audit(); err != nil {
			t.Error(err)
		}
	}
}
