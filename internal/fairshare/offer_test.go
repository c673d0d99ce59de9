package fairshare

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// After any changes of nodes, the sum that is kept up to date equals a new sum.
func TestOfferIsUpToDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState()
		var kept offer
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			nodes := state.Nodes()
			var err error
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 2: // products are counted separately while a queue names them
				limits := rapid.SampledFrom([]cluster.Resources{nil, {{Name: gpu + ":A", Value: 1}}, {{Name: gpu + ":B", Value: 1}}}).Draw(t, "limits")
				err = state.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: "q", Limits: limits}})
			case what == 0 && len(nodes) > 0:
				err = state.Apply(cluster.NodeGone{Name: rapid.SampledFrom(nodes).Draw(t, "node").Name})
			case what == 1 && len(nodes) > 0:
				n := *rapid.SampledFrom(nodes).Draw(t, "node")
				n.Unschedulable = rapid.Bool().Draw(t, "off")
				var lost []string
				if rapid.Bool().Draw(t, "lost") {
					lost = []string{n.Devices[0].UUID}
				}
				err = state.ApplyAll([]cluster.Change{cluster.NodePut{Node: n}, cluster.NodeSeen{Name: n.Name, Lost: &lost}})
			default:
				n := cluster.Node{Name: fmt.Sprint("n", i), Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: rapid.Int64Range(0, 9).Draw(t, "cpu")}}}
				for range rapid.IntRange(1, 3).Draw(t, "devices") {
					n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "product")}})
				}
				err = state.Apply(cluster.NodePut{Node: n})
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Offered(state.View()), kept.of(state.View())); d != "" {
				t.Fatalf("(-new +kept):\n%s", d)
			}
		}
	})
}
