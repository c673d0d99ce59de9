package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Key identifies a group. Label text alone would not do: two kinds of machine
// can share a product, and shared devices are not whole ones.
type Key struct {
	Product  string `json:"product,omitempty"`
	Count    int    `json:"count,omitempty"`
	Memory   int64  `json:"memory,omitempty"`   // MiB, per device
	Resource string `json:"resource,omitempty"` // name or names of the devices
	Strategy string `json:"strategy,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

func (k Key) String() string {
	s := fmt.Sprintf("%s × %d", k.Product, k.Count)
	if k.Replicas > 1 {
		s += fmt.Sprintf(" (%s, %d replicas)", k.Strategy, k.Replicas)
	}
	return s
}

// Combines reports whether several devices of a node can work on one thing: MIG
// slices and shared replicas are parts of devices, without a link between them.
func (k Key) Combines() bool {
	return k.Replicas <= 1 && !strings.Contains(k.Product, "-MIG-") && !strings.HasPrefix(k.Resource, PartitionResource)
}

// Compare orders groups by product, memory and count, then by the rest.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		strings.Compare(k.Product, o.Product),
		cmp.Compare(k.Memory, o.Memory),
		cmp.Compare(k.Count, o.Count),
		strings.Compare(k.Resource, o.Resource),
		strings.Compare(k.Strategy, o.Strategy),
		cmp.Compare(k.Replicas, o.Replicas),
	)
}

// Group is the nodes with the same devices.
type Group struct {
	Key   Key
	Nodes []*Node // sorted by name
}

// DeviceMemory is the memory of all devices of one of the group's nodes, which is
// the most that one of them gives. Replicas by time-slicing share that of their device.
func (g *Group) DeviceMemory() Bytes {
	devices := int64(g.Key.Count)
	if per := int64(g.Key.Replicas); per > 1 && g.Key.Strategy == timeSlicing {
		devices = (devices + per - 1) / per
	}
	return Bytes(MulDiv(g.Key.Memory<<20, devices, 1))
}

// groupKey derives the key from the devices that are asked for by count; a node
// of MIG slices in mixed mode groups by its slices.
func (n *Node) groupKey() (Key, bool) {
	k := Key{Strategy: n.Sharing.Strategy, Replicas: n.Sharing.Replicas}
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
		return Key{}, false
	}
	slices.Sort(products)
	slices.Sort(resources)
	k.Product, k.Resource = strings.Join(products, "+"), strings.Join(resources, "+")
	return k, true
}

// byName orders nodes by name.
func byName(n, o *Node) int { return strings.Compare(n.Name, o.Name) }
