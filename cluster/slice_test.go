package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func TestFractions(t *testing.T) {
	tests := map[string]struct {
		product, profile string
		want             cluster.Milli
	}{
		"one of seven":            {"A100", "1g.10gb", 142},
		"twice the memory":        {"A100", "1g.20gb", 142},
		"with media engines":      {"A100", "1g.10gb.me", 142},
		"three of seven":          {"H100", "3g.40gb", 428},
		"all of it":               {"H100", "7g.80gb", 1000},
		"one of four":             {"NVIDIA-A30", "1g.6gb", 250},
		"all of four":             {"NVIDIA-A30", "4g.24gb", 1000},
		"one of four, RTX":        {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "2g.48gb", 500},
		"a compute instance":      {"A100", "1c.3g.20gb", 142},
		"more than the GPU has":   {"A100", "9g.80gb", 1000},
		"none":                    {"A100", "0g.10gb", 1000},
		"digits alone":            {"A100", "12", 1000},
		"a name without a number": {"A100", "small", 1000},
		"a number that overflows": {"A100", "99999999999999999999g.10gb", 1000},
		"asked for by count":      {"A100-MIG-1g.10gb", "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := enginetest.Node("n").With(func(n *cluster.Node) {
				n.Devices = []cluster.Device{{DeviceSpec: &cluster.DeviceSpec{Product: tt.product, Profile: tt.profile, Memory: 1}, UUID: "u"}}
			}).Build()
			if got := n.Devices[0].Fraction; got != tt.want {
				t.Errorf("fraction %d, want %d", got, tt.want)
			}
		})
	}
}

// TestChargesForSlices: a queue with terms for MIG slices is charged under their name only.
// Any other queue is also charged for their fraction of nvidia.com/gpu. New terms change the
// charges of running tasks, and an undo restores them.
func TestChargesForSlices(t *testing.T) {
	const mig = cluster.PartitionResource + "1g.10gb"
	type charges map[string]cluster.Resources
	parts := cluster.Resources{{Name: gpu, Value: 426}, {Name: mig, Value: 3000}}
	own := cluster.Resources{{Name: mig, Value: 3000}}
	list := func(name string, v int64) cluster.Resources { return cluster.Resources{{Name: name, Value: v}} }
	put := func(q cluster.Queue) cluster.Change {
		if q.Name == "team" {
			q.Parent = "lab"
		}
		return cluster.QueuePut{Queue: q}
	}
	tests := map[string]struct {
		changes []cluster.Change
		want    charges
	}{
		"no terms":               {nil, charges{"lab": parts, "team": parts}},
		"a limit of its own":     {[]cluster.Change{put(cluster.Queue{Name: "team", Limits: list(mig, 7000)})}, charges{"lab": parts, "team": own}},
		"a weight of its own":    {[]cluster.Change{put(cluster.Queue{Name: "team", OverQuotaWeight: list(mig, 2)})}, charges{"lab": parts, "team": own}},
		"a quota above":          {[]cluster.Change{put(cluster.Queue{Name: "lab", Quota: list(mig, 7000)})}, charges{"lab": own, "team": parts}},
		"terms for another one":  {[]cluster.Change{put(cluster.Queue{Name: "team", Limits: list(cluster.PartitionResource+"2g.20gb", 7000)})}, charges{"lab": parts, "team": parts}},
		"terms that are removed": {[]cluster.Change{put(cluster.Queue{Name: "lab", Quota: list(mig, 7000)}), put(cluster.Queue{Name: "lab"})}, charges{"lab": parts, "team": parts}},
		"terms for GPUs as well": {[]cluster.Change{put(cluster.Queue{Name: "team", Limits: list(mig, 7000), Quota: list(gpu, 1000)})}, charges{"lab": parts, "team": own}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("n").Slices(7, "A100", "1g.10gb", "10Gi"), enginetest.Queue("lab"), enginetest.Queue("team").Parent("lab"),
				enginetest.Job("j").Queue("team").Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 3, Partition: "1g.10gb"} }).On("n"),
			)
			used := func() charges { return charges{"lab": s.Queue("lab").Used, "team": s.Queue("team").Used} }
			before := s.Digest()
			x := s.Begin()
			for _, c := range tt.changes {
				if err := s.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, used()); diff != "" {
				t.Errorf("used (-want +got):\n%s", diff)
			}
			task := s.Job("job/j").Tasks()[0]
			for name, amounts := range tt.want {
				if got := s.Queue(name).ChargeOf(task, gpu); got != amounts.Of(gpu) {
					t.Errorf("queue %s would be charged with %d, want %d", name, got, amounts.Of(gpu))
				}
			}
			if err := s.Audit(); err != nil {
				t.Error(err)
			}
			x.Discard()
			if diff := cmp.Diff(charges{"lab": parts, "team": parts}, used()); diff != "" || s.Digest() != before {
				t.Errorf("used after the undo (-want +got):\n%s", diff)
			}
		})
	}
}
