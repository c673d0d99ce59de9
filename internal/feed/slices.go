package feed

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/dra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	kindSlice       = "ResourceSlice"
	kindDeviceClass = "DeviceClass"
)

// dynamic is the part of a Feed that reads ResourceSlices, DeviceClasses and ResourceClaims.
type dynamic struct {
	feed      *Feed
	nodes     map[string]*cluster.Node // without the devices of slices
	inventory *dra.Inventory
	claims    map[types.NamespacedName]*claim
	users     map[types.NamespacedName]map[types.NamespacedName]*pod // by claim: the pods that use it
	allocated map[dra.Pool]map[*claim]bool                           // the claims that have devices of a pool
	asking    map[*dra.Query]map[*claim]bool                         // the claims with a request for what a query selects
}

func newDynamic(f *Feed) *dynamic {
	return &dynamic{
		feed:      f,
		nodes:     map[string]*cluster.Node{},
		inventory: dra.NewInventory(f.options.Match),
		claims:    map[types.NamespacedName]*claim{},
		users:     map[types.NamespacedName]map[types.NamespacedName]*pod{},
		allocated: map[dra.Pool]map[*claim]bool{},
		asking:    map[*dra.Query]map[*claim]bool{},
	}
}

// PutResourceSlice reports a ResourceSlice as it is now. Its devices are devices of their node.
func (d *dynamic) PutResourceSlice(o *resourcev1.ResourceSlice) ([]cluster.Change, []Note) {
	if isNew, _ := d.feed.versions.admit(kindSlice, &o.ObjectMeta); !isNew {
		return nil, nil
	}
	return d.follow(d.inventory.PutSlice(o))
}

// DeleteResourceSlice reports that the slice was removed. In this and in the next functions, an
// empty UID means any object of this name.
func (d *dynamic) DeleteResourceSlice(name string, uid types.UID) ([]cluster.Change, []Note) {
	if !d.feed.versions.remove(kindSlice, types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: name}, uid) {
		return nil, nil
	}
	return d.follow(d.inventory.DeleteSlice(name))
}

// PutDeviceClass reports a DeviceClass as it is now. Requests of claims name classes.
func (d *dynamic) PutDeviceClass(o *resourcev1.DeviceClass) ([]cluster.Change, []Note) {
	if isNew, _ := d.feed.versions.admit(kindDeviceClass, &o.ObjectMeta); !isNew {
		return nil, nil
	}
	return d.follow(d.inventory.PutClass(o))
}

// DeleteDeviceClass reports that the class was removed.
func (d *dynamic) DeleteDeviceClass(name string, uid types.UID) ([]cluster.Change, []Note) {
	if !d.feed.versions.remove(kindDeviceClass, types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: name}, uid) {
		return nil, nil
	}
	return d.follow(d.inventory.DeleteClass(name))
}

// follow reports what changes for nodes and pods after devices or selections have changed.
func (d *dynamic) follow(a dra.Affected) ([]cluster.Change, []Note) {
	var out []cluster.Change
	for _, name := range a.Nodes {
		if n := d.nodes[name]; n != nil {
			out = append(out, d.reportNode(n, 0)...)
		}
	}
	affected := map[*claim]bool{}
	for _, p := range a.Pools {
		for c := range d.allocated[p] {
			affected[c] = true
		}
	}
	for _, q := range a.Queries {
		for c := range d.asking[q] {
			affected[c] = true
		}
	}
	changes, notes := d.resettle(affected)
	return append(out, changes...), notes
}

// reportNode reports the node with its devices and its status. State ignores a node with a
// revision that it knows already; if slices have changed, and not the node, the revision is 0.
func (d *dynamic) reportNode(n *cluster.Node, revision uint64) []cluster.Change {
	devices, lost := d.inventory.Devices(n.Name)
	phase := n.Phase
	// NodePut reports the status only of a node that is new, and NodeSeen that of a known one.
	seen := cluster.NodeSeen{Name: n.Name, Phase: &phase}
	if len(devices) > 0 {
		n = withDevices(n, devices)
		seen.Lost = &lost
	}
	return []cluster.Change{cluster.NodePut{Node: *n, Revision: revision}, seen}
}

// withDevices returns the node with the devices of its slices. If a device plugin offers devices
// of the same kind, these are the same devices, and count once.
func withDevices(n *cluster.Node, devices []cluster.Device) *cluster.Node {
	type kind struct{ resource, profile string }
	count := map[kind]int{}
	for i := range devices {
		count[kind{devices[i].Resource, devices[i].Profile}]++
	}
	out := *n
	out.Defect = nil // of labels, which slices make superfluous
	counted := false // a device plugin offers the same devices, and chooses among them
	out.Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d cluster.Device) bool {
		k := kind{d.Resource, d.Profile}
		if d.Resource == "" {
			k.resource = n.DeviceResource
		}
		count[k]--
		counted = counted || count[k] >= 0 && d.ByCount
		return count[k] >= 0
	})
	if counted {
		devices = slices.Clone(devices)
		for i := range devices {
			devices[i].OwnSpec().ByCount = true
		}
	}
	if len(out.Devices) == 0 {
		out.DeviceResource, out.Sharing = "", cluster.Sharing{}
		if i := slices.IndexFunc(devices, func(d cluster.Device) bool { return d.Profile == "" }); i >= 0 {
			out.DeviceResource = devices[i].Resource
		}
	}
	if len(out.Devices)+len(devices) > cluster.MaxDevices {
		out.Devices = nil
		out.Defect = &cluster.Defect{Label: kindSlice, Problem: fmt.Sprintf("%d devices are more than the %d that one node may have", len(devices), cluster.MaxDevices)}
		return &out
	}
	out.Devices = append(out.Devices, devices...)
	return &out
}
