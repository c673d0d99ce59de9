package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// TestChoices checks that ways that differ only in interchangeable devices are yielded
// once.
func TestChoices(t *testing.T) {
	tests := map[string]struct {
		node *enginetest.NodeBuilder
		held []*enginetest.JobBuilder
		job  *enginetest.JobBuilder
		want [][]int
	}{
		"interchangeable": {enginetest.Node("n").GPUs(4, "A", "8Gi"), nil, enginetest.Job("j").Share(1, 300), [][]int{{0}}},
		"one is partly held": {
			enginetest.Node("n").GPUs(3, "A", "8Gi"), []*enginetest.JobBuilder{enginetest.Job("x").Share(1, 300)},
			enginetest.Job("j").Share(1, 500), [][]int{{0}, {1}},
		},
		"two of three are partly held": {
			enginetest.Node("n").GPUs(3, "A", "8Gi"), []*enginetest.JobBuilder{enginetest.Job("x").Share(2, 500)},
			enginetest.Job("j").Share(2, 500), [][]int{{0, 1}, {0, 2}},
		},
		"two are held by one session, through requests that differ": {
			enginetest.Node("n").CPU(8, "8Gi").GPUs(3, "A", "8Gi"),
			[]*enginetest.JobBuilder{
				enginetest.Job("x").CPU(1000, "1Gi").Share(1, 600).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}),
				enginetest.Job("y").CPU(2000, "1Gi").Share(1, 600).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}),
			},
			enginetest.Job("j").Share(1, 300).Isolate(cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "s"}), [][]int{{0}, {2}},
		},
		"same product required": {
			enginetest.Node("n").GPUs(2, "A", "8Gi").GPUs(2, "B", "8Gi"), nil,
			enginetest.Job("j").Devices(2).Shape(func(s *cluster.Shape) { s.Need.SameProduct = true }), [][]int{{0, 1}, {2, 3}},
		},
		"sum of memory": {
			enginetest.Node("n").GPUs(1, "A", "8Gi").GPUs(2, "B", "16Gi"), nil,
			enginetest.Job("j").Devices(2).Shape(func(s *cluster.Shape) { s.Need.SumAtLeast = 32 << 30 }), [][]int{{1, 2}},
		},
		"whole node":      {enginetest.Node("n").GPUs(1, "A", "8Gi").GPUs(1, "B", "8Gi"), nil, enginetest.Job("j").WholeNodes(1, "8Gi"), [][]int{{0, 1}}},
		"no devices":      {enginetest.Node("n"), nil, enginetest.Job("j"), [][]int{nil}},
		"too few devices": {enginetest.Node("n").GPUs(1, "A", "8Gi"), nil, enginetest.Job("j").Devices(2), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []enginetest.Part{tt.node, tt.job}
			for _, h := range tt.held {
				parts = append(parts, h.On("n"))
			}
			s := enginetest.State(parts...)
			var got [][]int
			for claims := range s.Node("n").Choices(s.Job("job/j").Tasks()[0].Shape, nil, cluster.Distinctions{}) {
				var devices []int
				for _, c := range claims {
					devices = append(devices, c.Device)
				}
				got = append(got, devices)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRoomIsUpperBound checks that Room is never less than what can be placed, and
// that it equals Most on an empty node.
func TestRoomIsUpperBound(t *testing.T) {
	jobs := map[string]*enginetest.JobBuilder{
		"devices": enginetest.Job("j").Gang(9).Devices(2), "share": enginetest.Job("j").Gang(9).Share(1, 300), "memory": enginetest.Job("j").Gang(9).DeviceMemory(1, "3Gi"),
		"cores": enginetest.Job("j").Gang(9).CPU(3000, "1Gi"), "whole node": enginetest.Job("j").WholeNodes(2, "8Gi"),
		"exclusive": enginetest.Job("j").Gang(9).Share(1, 300).Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive}),
	}
	for name, job := range jobs {
		s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(4, "A", "8Gi"), job)
		n := s.Node("n")
		tasks := s.Job("job/j").Tasks()
		shape := tasks[0].Shape
		if n.Room(shape) != n.Most(shape) {
			t.Errorf("%s: Room is %d on an empty node, and Most is %d", name, n.Room(shape), n.Most(shape))
		}
		for placed := 0; ; placed++ {
			room := n.Room(shape)
			claims, ok := n.Choose(shape, nil)
			if !ok || placed == len(tasks) || s.Place(tasks[placed], n, claims, 0) != nil {
				if room != 0 && placed < len(tasks) {
					t.Errorf("%s: Room is %d, and no task fits", name, room)
				}
				break
			}
			if n.Room(shape) >= room {
				t.Errorf("%s: Room is still %d or more after a task was placed", name, room)
			}
		}
	}
}

func TestChoicesOfNamedDevices(t *testing.T) {
	s := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(4, "A", "80Gi"), enginetest.Job("j").Devices(1))
	n := s.Node("n")
	var got []int
	for claims := range n.Choices(task(s, "j", 0).Shape, nil, cluster.Distinctions{Named: []cluster.DeviceID{n.Devices[0].ID, n.Devices[2].ID}}) {
		got = append(got, claims[0].Device)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" { // devices 1 and 3 are interchangeable
		t.Error(diff)
	}
}
