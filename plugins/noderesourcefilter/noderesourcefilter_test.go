package noderesourcefilter

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

func rejection(why engine.Reason, cure engine.Cure, subject string, want, have int64) *engine.Rejection {
	return &engine.Rejection{
		Precedence: engine.OtherKind,
		Reason:     why, Cure: cure, Subject: subject,
		Want: engine.Quantity{Value: want, Unit: engine.Count},
		Have: engine.Quantity{Value: have, Unit: engine.Count},
	}
}

func TestAdmit(t *testing.T) {
	const elsewhere = engine.Grow | engine.Relax
	bare := enginetest.Node("bare")
	h100 := enginetest.Node("h100").GPUs(8, "H100", "80Gi")
	slices := enginetest.Node("slices").Slices(7, "A100", "1g.5gb", "5Gi")
	both := enginetest.Node("both").GPUs(1, "A100", "40Gi").Slices(7, "A100", "1g.5gb", "5Gi")
	mixed := enginetest.Node("mixed").GPUs(2, "A10", "24Gi").GPUs(2, "H100", "80Gi")
	renamed := enginetest.Node("renamed").GPUs(2, "A10", "24Gi").With(func(n *cluster.Node) { n.DeviceResource = "nvidia.com/gpu.shared" })
	broken := enginetest.Node("broken").GPUs(1, "A10", "24Gi").With(func(n *cluster.Node) { n.Devices[0].Lost = true })
	garbage := enginetest.Node("garbage").With(func(n *cluster.Node) {
		n.Defect = &cluster.Defect{Label: "nvidia.com/gpu.memory", Problem: `"lots" is no number`}
	})
	invalid := &engine.Rejection{Reason: DeviceLabelsInvalid, Cure: engine.Grow, Subject: `nvidia.com/gpu.memory: "lots" is no number`}

	tests := map[string]struct {
		need cluster.Need
		node *enginetest.NodeBuilder
		want *engine.Rejection
	}{
		"no devices needed, the node has none": {cluster.Need{}, bare, nil},
		"no devices needed, invalid labels":    {cluster.Need{}, garbage, nil},
		"the node has devices":                 {cluster.Need{Devices: 2}, h100, nil},
		"the number is not checked":            {cluster.Need{Devices: 9}, h100, nil},
		"the size is not checked":              {cluster.Need{Devices: 1, Memory: enginetest.Size("96Gi")}, h100, nil},
		"the node has none":                    {cluster.Need{Devices: 2}, bare, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 2, 0)},
		"whole node, the node has no devices":  {cluster.Need{WholeNode: true}, bare, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 1, 0)},
		"layers, the node has no devices":      {cluster.Need{Layers: &cluster.Layers{Total: 4, Bytes: 1}}, bare, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 1, 0)},
		"all devices are lost":                 {cluster.Need{Devices: 1}, broken, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 1, 0)},
		"invalid labels":                       {cluster.Need{Devices: 1}, garbage, invalid},
		"invalid labels, whole node":           {cluster.Need{WholeNode: true}, garbage, invalid},

		"the runtime is supported":        {cluster.Need{Devices: 1, Types: []string{"cuda"}}, h100, nil},
		"another runtime":                 {cluster.Need{Devices: 1, Types: []string{"cann", "rocm"}}, h100, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 1, 0)},
		"selected":                        {cluster.Need{Devices: 1, Selected: []cluster.DeviceID{{Node: "h100", Type: "cuda", Index: 7}}}, h100, nil},
		"only other devices are selected": {cluster.Need{Devices: 1, Selected: []cluster.DeviceID{{Node: "h200", Type: "cuda"}}}, h100, rejection(NoDevices, engine.Grow, "nvidia.com/gpu", 1, 0)},
		"selected, of the wrong product":  {cluster.Need{Devices: 1, Products: []string{"H100"}, Selected: []cluster.DeviceID{{Node: "mixed", Type: "cuda", Index: 1}}}, mixed, rejection(ProductMismatch, elsewhere, "H100", 1, 0)},

		"the partition exists":                   {cluster.Need{Devices: 1, Partition: "1g.5gb"}, both, nil},
		"partition on whole devices":             {cluster.Need{Devices: 1, Partition: "1g.5gb"}, h100, rejection(NoSuchPartition, elsewhere, "1g.5gb", 1, 0)},
		"other partition":                        {cluster.Need{Devices: 3, Partition: "3g.20gb"}, slices, rejection(NoSuchPartition, elsewhere, "3g.20gb", 3, 0)},
		"whole device among slices":              {cluster.Need{Devices: 1}, both, nil},
		"whole device, the node has only slices": {cluster.Need{Devices: 1}, slices, rejection(NoSuchDeviceResource, elsewhere, "nvidia.com/gpu", 1, 0)},
		"a partition with its resource name":     {cluster.Need{Devices: 1, Partition: "1g.5gb", Resource: "nvidia.com/mig-1g.5gb"}, h100, rejection(NoSuchPartition, elsewhere, "1g.5gb", 1, 0)},
		"the resource name exists":               {cluster.Need{Devices: 1, Resource: "nvidia.com/gpu.shared"}, renamed, nil},
		"any resource name":                      {cluster.Need{Devices: 1}, renamed, nil},
		"the resource name does not exist":       {cluster.Need{Devices: 1, Resource: "amd.com/gpu"}, h100, rejection(NoSuchDeviceResource, elsewhere, "amd.com/gpu", 1, 0)},
		"no devices under any name":              {cluster.Need{Devices: 1, Resource: "amd.com/gpu"}, bare, rejection(NoDevices, engine.Grow, "amd.com/gpu", 1, 0)},
		"the product exists":                     {cluster.Need{Devices: 4, Products: []string{"H100", "H200"}}, mixed, nil},
		"another product":                        {cluster.Need{Devices: 4, Products: []string{"H200", "L4"}}, mixed, rejection(ProductMismatch, elsewhere, "H200, L4", 4, 0)},
		"slice of the wrong product":             {cluster.Need{Devices: 1, Partition: "1g.5gb", Products: []string{"H100"}}, both, rejection(ProductMismatch, elsewhere, "H100", 1, 0)},
		"whole node of one product":              {cluster.Need{WholeNode: true, Products: []string{"H100"}}, h100, nil},
		"whole node of any products":             {cluster.Need{WholeNode: true}, mixed, nil},
		"whole node, half of the devices match":  {cluster.Need{WholeNode: true, Products: []string{"H100"}}, mixed, rejection(ProductMismatch, elsewhere, "H100", 4, 2)},
		"whole node that has slices":             {cluster.Need{WholeNode: true}, both, rejection(NoSuchDeviceResource, elsewhere, "nvidia.com/gpu", 8, 1)},
		"whole node of the wrong product":        {cluster.Need{WholeNode: true, Devices: 8, Products: []string{"H200"}}, h100, rejection(ProductMismatch, elsewhere, "H200", 8, 0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, judge(&cluster.Shape{Need: tt.need}, tt.node.Build())); d != "" {
				t.Errorf("rejection (-want +got):\n%s", d)
			}
		})
	}
}

func TestPassingAllocatesNothing(t *testing.T) {
	shape := &cluster.Shape{Need: cluster.Need{Devices: 1, Products: []string{"H100"}}}
	node := enginetest.Node("n").GPUs(2, "A10", "24Gi").GPUs(2, "H100", "80Gi").Build()
	if got := testing.AllocsPerRun(100, func() { judge(shape, node) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"resource": "nvidia.com/gpu"}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
