package selector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/internal/dra"
	"github.com/berth-project/berth/internal/dra/dratest"
	"github.com/berth-project/berth/kube/internal/selector"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func device(driver, kind, product, memory string) *dra.Device {
	d := &dra.Device{ID: dra.ID{Driver: driver, Pool: "pool", Device: "d"}, Source: &resourcev1.Device{Name: "d"}}
	d.Source.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}, "productName": {StringValue: &product}}
	d.Source.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	return d
}

// TestForms compares both ways to evaluate the forms of expressions that tests of other packages
// use.
func TestForms(t *testing.T) {
	match := selector.New()
	devices := []*dra.Device{
		device("gpu.nvidia.com", "gpu", "NVIDIA L4", "24Gi"), device("gpu.nvidia.com", "mig", "NVIDIA H100", "40Gi"), device("nic.example.com", "nic", "", "0"),
	}
	accepted := 0
	for _, expression := range []string{
		"true", "false", "device.(", "device.driver == 'gpu.nvidia.com'", "device.driver == 'none'",
		"device.attributes['gpu.nvidia.com'].type == 'gpu'", "device.attributes['gpu.nvidia.com'].type == 'mig'", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'",
		"device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'", "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
	} {
		for _, d := range devices {
			got, _ := dratest.Match(expression, d)
			want, _ := match(expression, d)
			if want {
				accepted++
			}
			if got != want {
				t.Errorf("%s of a device of %s: dratest %v, CEL %v", expression, d.ID.Driver, got, want)
			}
		}
	}
	if accepted < 9 {
		t.Errorf("%d devices are accepted, want 9 or more", accepted)
	}
}

// TestCostlyQuery checks that the evaluation of a costly expression ends after few devices, and
// that nothing is said about them.
func TestCostlyQuery(t *testing.T) {
	numbers := strings.Repeat("1,", 60) + "1"
	costly := fmt.Sprintf("[%s].all(x, [%s].all(y, x*y > 0)) && device.attributes['gpu.nvidia.com'].uuid != ''", numbers, numbers)
	match, examined := selector.New(), 0
	v := dra.NewInventory(func(expression string, d *dra.Device) (bool, uint64) {
		if expression == costly {
			examined++
		}
		return match(expression, d)
	})
	node := "n"
	class := &resourcev1.DeviceClass{}
	class.Name = "class"
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "true"}}}
	v.PutClass(class)
	s := &resourcev1.ResourceSlice{}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "pool", Generation: 1}}
	for i := range 1000 {
		d := device("gpu.nvidia.com", "gpu", "A", "80Gi").Source
		uuid := fmt.Sprint(i)
		d.Name, d.Attributes["uuid"] = "gpu-"+uuid, resourcev1.DeviceAttribute{StringValue: &uuid}
		s.Spec.Devices = append(s.Spec.Devices, *d)
	}
	v.PutSlice(s)
	q := v.Query("class", []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: costly}}})
	if got := q.Selection(); !got.Any || got.Found {
		t.Errorf("the query selects %+v, want what is not known", got)
	}
	if examined == 0 || examined > 500 {
		t.Errorf("%d of 1000 devices were examined, want some and not most", examined)
	}
	if plain := v.Query("class", nil).Selection(); !plain.Found {
		t.Errorf("a plain query selects %+v", plain)
	}
}
