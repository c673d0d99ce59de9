package dra_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/dra"
	"github.com/berth-project/berth/internal/dra/dratest"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// slice returns a slice of a pool on the node "n". Each device is written as name, counter set,
// GiB and attributes.
func slice(name string, generation int64, devices ...string) *resourcev1.ResourceSlice {
	node := "n"
	s := &resourcev1.ResourceSlice{}
	s.Name = name
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "pool", Generation: generation}}
	for _, text := range devices {
		words := strings.Fields(text)
		d := resourcev1.Device{Name: words[0], Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(words[2] + "Gi")}}
		if words[1] != "-" {
			d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: words[1]}}
		}
		for _, a := range words[3:] {
			key, value, _ := strings.Cut(a, "=")
			d.Attributes[resourcev1.QualifiedName(key)] = resourcev1.DeviceAttribute{StringValue: &value}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}

func class(expression string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	c.Name = "class"
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	return c
}

func text(v *dra.Inventory) string {
	var out []string
	list, lost := v.Devices("n")
	for _, d := range list {
		out = append(out, fmt.Sprintf("%s %dGi", strings.TrimPrefix(d.UUID, "gpu.nvidia.com/pool/"), d.Memory>>30))
	}
	return strings.Join(out, ", ") + strings.Join(lost, " ")
}

// TestPartitions checks which devices a GPU is that is partitioned on demand, with and without
// the whole GPU among the devices.
func TestPartitions(t *testing.T) {
	v := dra.NewInventory(dratest.Match)
	v.PutSlice(slice("s", 1, "gpu-0 set-0 80 type=gpu", "a set-0 40 type=mig profile=3g.40gb", "b set-1 20 type=mig profile=1g.20gb", "c set-1 40 type=mig profile=3g.40gb", "d set-2 10 type=part parentUUID=x", "e set-2 20 type=part parentUUID=x"))
	if got, want := text(v), "gpu-0 80Gi, set-1 40Gi, set-2 20Gi"; got != want {
		t.Errorf("have %s, want %s", got, want)
	}
	for name, want := range map[string]cluster.Holding{
		"gpu-0": {Device: "gpu.nvidia.com/pool/gpu-0", Milli: 1000, Memory: 80 << 30},
		"a":     {Device: "gpu.nvidia.com/pool/gpu-0", Milli: 428, Memory: 40 << 30},
		"b":     {Device: "gpu.nvidia.com/pool/set-1", Milli: 142, Memory: 20 << 30},
		"d":     {Device: "gpu.nvidia.com/pool/set-2", Milli: 500, Memory: 10 << 30},
	} {
		if got := v.Find(dra.ID{"gpu.nvidia.com", "pool", name}).Holding(); got != want {
			t.Errorf("%s: have %+v, want %+v", name, got, want)
		}
	}
}

// TestGenerations checks that only slices of the newest generation count.
func TestGenerations(t *testing.T) {
	v := dra.NewInventory(dratest.Match)
	v.PutSlice(slice("new", 2, "gpu-1 - 80 type=gpu", "gpu-10 - 80 type=gpu", "gpu-2 - 80 type=gpu"))
	v.PutSlice(slice("old", 1, "gpu-0 - 80 type=gpu"))
	if got, want := text(v), "gpu-1 80Gi, gpu-2 80Gi, gpu-10 80Gi"; got != want {
		t.Errorf("have %s, want %s", got, want)
	}
	v.DeleteSlice("new")
	if got, want := text(v), "gpu-0 80Gi"; got != want {
		t.Errorf("have %s, want %s", got, want)
	}
	if v.DeleteSlice("old"); !v.Empty() {
		t.Error("the inventory is not empty")
	}
}

// TestQuery checks that a query follows slices and classes, and that an attribute is evaluated
// for each of its values.
func TestQuery(t *testing.T) {
	v := dra.NewInventory(dratest.Match)
	q := v.Query("class", []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.attributes['gpu.nvidia.com'].uuid == 'b'"}}})
	check := func(a dra.Affected, changed bool, want string) {
		t.Helper()
		if len(a.Queries) > 0 != changed {
			t.Errorf("changed %v, want %v", len(a.Queries) > 0, changed)
		}
		s := q.Selection()
		if got := fmt.Sprintf("%v %v %s %s %v", s.Any, s.Found, s.Resource, s.Profile, s.Products); got != want {
			t.Errorf("have %s, want %s", got, want)
		}
	}
	check(v.PutSlice(slice("s", 1, "x - 80 type=gpu uuid=a productName=A", "y - 80 type=gpu uuid=b productName=B")), false, "false false   []")
	check(v.PutClass(class("true")), true, "true true nvidia.com/gpu  [B]")
	check(v.PutClass(class("device.attributes['gpu.nvidia.com'].type == 'gpu'")), false, "true true nvidia.com/gpu  [B]")
	check(v.PutClass(class("device.attributes['gpu.nvidia.com'].type == 'mig'")), true, "false false   []")
	check(v.PutClass(class("true")), true, "true true nvidia.com/gpu  [B]")
	check(v.PutSlice(slice("s", 1, "x - 80 type=gpu uuid=b productName=A")), true, "true true nvidia.com/gpu  []")
	check(v.PutSlice(slice("s", 1, "x - 80 type=gpu uuid=b", "y - 10 type=mig profile=1g.10gb uuid=b")), true, "true false   []")
	check(v.DeleteClass("class"), true, "false false   []")
	check(v.DeleteSlice("s"), false, "false false   []")
	if v.Release(q); !v.Empty() {
		t.Error("the inventory is not empty")
	}
}

// TestWithoutMatcher checks that nothing is said about what a query selects if selectors cannot be
// evaluated, and that devices are found nevertheless.
func TestWithoutMatcher(t *testing.T) {
	v := dra.NewInventory(nil)
	v.PutClass(class("true"))
	v.PutSlice(slice("s", 1, "gpu-0 - 80 type=gpu"))
	if got := v.Query("class", nil).Selection(); !got.Any || got.Found {
		t.Errorf("the query selects %+v, want what is not known", got)
	}
	if got, want := text(v), "gpu-0 80Gi"; got != want {
		t.Errorf("have %s, want %s", got, want)
	}
}
