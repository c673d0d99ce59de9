package feed

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
)

// LabelShares is a label of running pods that hold a part of a device by KAI. Pods on one node with
// the same value have parts of the same device, and pods with different values of different devices.
// Pods with parts of several devices have a label for each, whose key continues with a slash.
const LabelShares = "runai-gpu-group"

// SharedDevices returns the names of the devices of which the running pod has parts by KAI, sorted.
// The names are values of labels, and not those of devices in State.
func SharedDevices(o *corev1.Pod) []string {
	if o.Spec.NodeName == "" {
		return nil
	}
	found := map[string]bool{}
	for key, value := range o.Labels {
		if value != "" && (key == LabelShares || strings.HasPrefix(key, LabelShares+"/")) {
			found[value] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// assignShares gives each device of which pods of a dump have parts by KAI a device of its node, in
// the order of their names. Which device it is in reality, the dump does not say.
func assignShares(f *Feed) {
	names := map[string]map[string]bool{} // by node
	for _, p := range f.pods {
		if holdsShares(p) {
			if names[p.place.Node] == nil {
				names[p.place.Node] = map[string]bool{}
			}
			for _, name := range p.shares {
				names[p.place.Node][name] = true
			}
		}
	}
	device := map[string]map[string]string{}
	for node, of := range names {
		n := f.nodes[node]
		if n == nil {
			continue
		}
		var free []string
		for i := range n.Devices {
			if d := &n.Devices[i]; !d.Lost && d.Profile == "" && (d.Resource == convert.DeviceResource || d.Resource == "" && n.DeviceResource == convert.DeviceResource) {
				free = append(free, d.UUID)
			}
		}
		device[node] = map[string]string{}
		for i, name := range slices.Sorted(maps.Keys(of)) {
			if i < len(free) {
				device[node][name] = free[i]
			}
		}
	}
	for _, p := range f.pods {
		if !holdsShares(p) {
			continue
		}
		var list []cluster.Holding
		for _, name := range p.shares {
			if uuid := device[p.place.Node][name]; uuid != "" {
				list = append(list, cluster.Holding{Device: uuid})
			}
		}
		if len(list) == len(p.shares) {
			p.devices = list
		}
	}
}

// holdsShares reports whether the pod is known to have parts of as many devices as it requests.
func holdsShares(p *pod) bool {
	return len(p.shares) > 0 && len(p.shares) == p.shape.Need.Devices && (p.shape.Need.Share > 0 || p.shape.Need.Memory > 0) && p.ended == cluster.Pending && p.devices == nil
}
