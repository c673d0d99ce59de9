package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// GroupKey identifies a node group by the devices of its nodes. The product alone is not
// enough: nodes with the same product may have different numbers of devices, or may
// share them.
type GroupKey struct {
	Product  string `json:"product,omitempty"`  // several products are joined by "+"
	Count    int    `json:"count,omitempty"`    // devices of a node that are not lost
	Memory   int64  `json:"memory,omitempty"`   // of the smallest device, in MiB
	Resource string `json:"resource,omitempty"` // the resource name of the devices; several are joined by "+"
	Strategy string `json:"strategy,omitempty"` // Sharing.Strategy of the nodes
	Replicas int    `json:"replicas,omitempty"` // Sharing.Replicas of the nodes
}

// String returns the product and the count, such as "NVIDIA-L4 × 8", and how the devices
// are shared.
func (k GroupKey) String() string {
	s := fmt.Sprintf("%s × %d", k.Product, k.Count)
	if k.Replicas > 1 {
		s += fmt.Sprintf(" (%s, %d replicas)", k.Strategy, k.Replicas)
	}
	return s
}

// Combines reports whether several devices of a node can be used by one replica of a
// model. MIG slices and shared devices cannot, because there is no link between them.
func (k GroupKey) Combines() bool {
	return k.Replicas <= 1 && !strings.Contains(k.Product, "-MIG-") && !strings.HasPrefix(k.Resource, PartitionResource)
}

// Compare orders keys by product, memory and count, then by the other fields.
func (k GroupKey) Compare(o GroupKey) int {
	return cmp.Or(
		strings.Compare(k.Product, o.Product),
		cmp.Compare(k.Memory, o.Memory),
		cmp.Compare(k.Count, o.Count),
		strings.Compare(k.Resource, o.Resource),
		strings.Compare(k.Strategy, o.Strategy),
		cmp.Compare(k.Replicas, o.Replicas),
	)
}

// Group is a node group: all nodes with the same GroupKey. Their devices may still differ
// in what the key does not have, such as the number of devices of each product if there are
// several products, and lost devices.
type Group struct {
	Key   GroupKey
	Nodes []*Node // sorted by name
}

// DeviceMemory returns the memory of all devices of one node of the group, which is an
// upper bound of what a task can get there. Replicas made by time-slicing share the
// memory of their GPU, which is counted once.
func (g *Group) DeviceMemory() Bytes {
	devices := int64(g.Key.Count)
	if per := int64(g.Key.Replicas); per > 1 && g.Key.Strategy == timeSlicing {
		devices = (devices + per - 1) / per
	}
	return Bytes(MulDiv(g.Key.Memory<<20, devices, 1))
}

// groupKey returns the key of the node's group. It returns false if the node has no
// device, or all are lost. For MIG slices that are requested by profile, the product
// in the key names the profile.
func (n *Node) groupKey() (GroupKey, bool) {
	k := GroupKey{Strategy: n.Sharing.Strategy, Replicas: n.Sharing.Replicas}
	var products, resources []string
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Lost {
			continue
		}
		name := d.Product
		if d.Profile != "" && !strings.Contains(name, d.Profile) {
			name += "-MIG-" + d.Profile
		}
		if !slices.Contains(products, name) {
			products = append(products, name)
		}
		if !slices.Contains(resources, d.Resource) {
			resources = append(resources, d.Resource)
		}
		k.Count++
		if mib := int64(d.Memory >> 20); k.Memory == 0 || mib < k.Memory {
			k.Memory = mib
		}
	}
	if k.Count == 0 {
		return GroupKey{}, false
	}
	slices.Sort(products)
	slices.Sort(resources)
	k.Product, k.Resource = strings.Join(products, "+"), strings.Join(resources, "+")
	return k, true
}

// byName orders nodes by name.
func byName(n, o *Node) int { return strings.Compare(n.Name, o.Name) }
