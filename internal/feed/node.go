package feed

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const kindNode = "Node"

// PutNode reports a node as it is now. A node that comes back under its name with another
// UID is another node: its status is not that of the earlier one.
func (f *Feed) PutNode(o *corev1.Node) ([]cluster.Change, []Note) {
	isNew, replaced := f.versions.admit(kindNode, &o.ObjectMeta)
	if !isNew {
		return nil, nil
	}
	n, list := convert.CoreNode(o)
	if f.options.Dump != nil {
		list = append(list, convert.SharedDevices(o, n)...)
	}
	notes := namedNotes(kindNode, &o.ObjectMeta, list)
	var out []cluster.Change
	if replaced || list.Invalid() {
		out = append(out, cluster.NodeGone{Name: o.Name})
	}
	if list.Invalid() {
		delete(f.nodes, o.Name)
		return out, notes
	}
	numberDevices(n)
	for i := range n.Devices {
		n.Devices[i].OwnSpec().ByCount = !f.options.DevicesEnforced
	}
	f.nodes[o.Name] = n
	return append(out, f.reportNode(n, Revision(&o.ObjectMeta))...), notes
}

// numberDevices gives the devices of the node the numbers that State would give them, so that the
// numbers do not depend on which of the devices slices replace later.
func numberDevices(n *cluster.Node) {
	next := map[string]int{}
	for i := range n.Devices {
		d := &n.Devices[i]
		d.ID = cluster.DeviceID{Node: n.Name, Type: d.Type, Index: next[d.Type]}
		next[d.Type]++
	}
}

// DeleteNode reports that the node was removed. An empty UID means any node of this name.
func (f *Feed) DeleteNode(name string, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindNode, types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: name}, uid) {
		return nil
	}
	delete(f.nodes, name)
	return []cluster.Change{cluster.NodeGone{Name: name}}
}
