package standard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// The example gives the documented result with the plugins that it names and with the whole
// default profile.
func TestNodeGroups(t *testing.T) {
	var (
		a10   = cluster.GroupKey{Product: "A10", Count: 1, Memory: 24576, Resource: "nvidia.com/gpu"}
		a100  = cluster.GroupKey{Product: "A100", Count: 4, Memory: 40960, Resource: "nvidia.com/gpu"}
		a100b = cluster.GroupKey{Product: "A100", Count: 8, Memory: 81920, Resource: "nvidia.com/gpu"}
	)
	gpus := func(name string, k cluster.GroupKey, memory string) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(64, "256Gi").GPUs(k.Count, k.Product, memory)
	}
	with := func(job *enginetest.JobBuilder) *cluster.State {
		return enginetest.State(
			gpus("a100-1", a100, "40960Mi"), gpus("a100-2", a100, "40960Mi"),
			gpus("big", a100b, "81920Mi"), gpus("a10", a10, "24576Mi"),
			enginetest.Node("cpu").CPU(64, "256Gi"),
			job,
		)
	}
	miss := func(k cluster.GroupKey, nodes int, r *engine.Rejection) engine.GroupMiss {
		return engine.GroupMiss{Key: k, Nodes: nodes, Rejection: r}
	}
	tooFew := func(k cluster.GroupKey, want, have int64) *engine.Rejection {
		return &engine.Rejection{
			Plugin: "NodeGroupSizeFilter", Reason: "GroupTooSmall", Cure: engine.Grow, Subject: k.String(),
			Want: engine.Quantity{Value: want, Unit: engine.Count}, Have: engine.Quantity{Value: have, Unit: engine.Count},
		}
	}
	tooLarge := func(k cluster.GroupKey, want, have int64) *engine.Rejection {
		return &engine.Rejection{
			Plugin: "CapacityFilter", Reason: "ReplicaTooLarge", Cure: engine.Grow, Subject: k.String(),
			Want: engine.Quantity{Value: want << 30, Unit: engine.Bytes}, Have: engine.Quantity{Value: have << 30, Unit: engine.Bytes},
		}
	}
	type result struct {
		Group     cluster.GroupKey
		Nodes     []string
		Devices   int
		Reason    engine.Reason
		Permanent bool
		Groups    []engine.GroupMiss
	}
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want result
	}{
		"1 replica: the A10 wastes least": {
			enginetest.Job("model").WholeNodes(1, "8Gi"),
			result{Group: a10, Nodes: []string{"a10"}, Devices: 1},
		},
		"2 replicas: one group has two nodes": {
			enginetest.Job("model").WholeNodes(2, "8Gi"),
			result{Group: a100, Nodes: []string{"a100-1", "a100-2"}, Devices: 8},
		},
		"3 replicas: no group has three": {
			enginetest.Job("model").WholeNodes(3, "8Gi"),
			result{Reason: engine.NoSuitableGroup, Permanent: true, Groups: []engine.GroupMiss{
				miss(a10, 1, tooFew(a10, 3, 1)), miss(a100, 2, tooFew(a100, 3, 2)), miss(a100b, 1, tooFew(a100b, 3, 1)),
			}},
		},
		"no memory given: the smallest group": {
			enginetest.Job("model").WholeNodes(1, "0"),
			result{Group: a10, Nodes: []string{"a10"}, Devices: 1},
		},
		"a need of 200 GiB: only the big one": {
			enginetest.Job("model").WholeNodes(1, "200Gi"),
			result{Group: a100b, Nodes: []string{"big"}, Devices: 8},
		},
		"no node has the label": {
			enginetest.Job("model").WholeNodes(1, "8Gi").Selector("missing", "label"),
			result{Reason: engine.NoSuitableGroup, Permanent: true, Groups: []engine.GroupMiss{
				miss(a10, 0, tooFew(a10, 1, 0)), miss(a100, 0, tooFew(a100, 1, 0)), miss(a100b, 0, tooFew(a100b, 1, 0)),
			}},
		},
		"a need of 1000 GiB: too large for one node of any": {
			enginetest.Job("model").WholeNodes(1, "1000Gi").Shape(func(s *cluster.Shape) { s.Need.SumAtLeast = 0 }),
			result{Reason: engine.NoSuitableGroup, Permanent: true, Groups: []engine.GroupMiss{
				miss(a10, 1, tooLarge(a10, 1000, 24)), miss(a100, 2, tooLarge(a100, 1000, 160)), miss(a100b, 1, tooLarge(a100b, 1000, 640)),
			}},
		},
	}
	profiles := map[string]engine.Profile{
		"the named plugins": {
			{Name: "LabelFilter"}, {Name: "NodeResourceFilter"}, {Name: "NodeResourcesFit"},
			{Name: "NodeGroupSizeFilter"}, {Name: "CapacityFilter"}, {Name: "ResourceUtilizationScorer"},
		},
		"default": standard.Profile(),
	}
	for which, profile := range profiles {
		for name, tt := range tests {
			t.Run(which+"/"+name, func(t *testing.T) {
				e, err := engine.New(standard.Registry(), profile)
				if err != nil {
					t.Fatal(err)
				}
				out, err := e.Open(with(tt.job), engine.Options{Search: engine.Twin}).Run()
				if err != nil {
					t.Fatal(err)
				}
				var got result
				for _, d := range out.Decisions {
					got.Group, got.Nodes, got.Devices = d.Group, append(got.Nodes, d.Node), got.Devices+len(d.Claims)
				}
				for _, r := range out.Refusals {
					got.Reason, got.Permanent, got.Groups = r.Reason, r.Permanent, r.Attempts[0].Groups
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("placement (-want +got):\n%s", d)
				}
			})
		}
	}
}
