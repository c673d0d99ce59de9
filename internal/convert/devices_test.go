package convert_test

import (
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// No devices are made of an entry that is not valid or that has too many devices.
func TestNodeMakesNoDevicesOfABadEntry(t *testing.T) {
	whole, slice := resource.MustParse("80Gi"), resource.MustParse("1Gi")
	tests := map[string]struct {
		set     v1alpha1.DeviceSet
		path    field.Path
		message string
	}{
		"too many replicas": {
			v1alpha1.DeviceSet{Product: "H100", Count: 1024, Memory: whole, Sharing: &v1alpha1.Sharing{Strategy: "mps", Replicas: 2}},
			nil, "the node has more than 1024 devices, slices and replicas counted",
		},
		"too many slices": {
			v1alpha1.DeviceSet{Product: "H100", Count: 1024, Memory: whole, Partitions: []v1alpha1.Partition{{Profile: "1g.10gb", Count: to(2), Memory: slice}}},
			nil, "the node has more than 1024 devices, slices and replicas counted",
		},
		"too many kinds of slices": {
			v1alpha1.DeviceSet{Product: "H100", Count: 1, Memory: whole, Partitions: []v1alpha1.Partition{{Profile: "1g.10gb", Count: to(1024), Memory: slice}, {Profile: "2g.20gb", Memory: slice}}},
			nil, "the node has more than 1024 devices, slices and replicas counted",
		},
		"negative reserved memory": {
			v1alpha1.DeviceSet{Product: "H100", Count: 1, Memory: whole, Reserved: to(resource.MustParse("-1Gi"))},
			field.Path{"reserved"}, "-1Gi is negative",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1alpha1.NodeSpec{Devices: v1alpha1.DeviceSets{tt.set}}}
			n, notes := convert.Node(o)
			compare(t, convert.Notes{{Path: append(field.Path{"spec", "devices", 0}, tt.path...), Message: tt.message}}, notes)
			if len(n.Devices) > 0 {
				t.Errorf("%d devices were made, want none", len(n.Devices))
			}
		})
	}
}
