package dra

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	resourcev1 "k8s.io/api/resource/v1"
)

// Inventory holds the devices of all ResourceSlices, and the queries of requests. What it
// returns depends only on the objects that it was given last, and not on their order. It is not
// safe for concurrent use. It keeps the objects, and does not change them.
type Inventory struct {
	pools   map[poolKey]*pool
	slices  map[string]poolKey                 // by name: the pool of a slice
	nodes   map[string]map[poolKey]bool        // the pools that have devices on a node
	classes map[string]*resourcev1.DeviceClass // by name
	counts  map[Sort]map[string]int            // how many devices of a sort and product there are
	queries map[string]*Query                  // by key
	match   Matcher
}

// Matcher reports whether the expression of a selector accepts the device, and how much the
// evaluation cost, in units of CEL. An expression that cannot be evaluated accepts no device.
type Matcher func(expression string, d *Device) (accepts bool, cost uint64)

// NewInventory returns an Inventory without objects. If match is nil, selectors cannot be evaluated:
// what a query selects is then never known.
func NewInventory(match Matcher) *Inventory {
	return &Inventory{
		pools: map[poolKey]*pool{}, slices: map[string]poolKey{}, nodes: map[string]map[poolKey]bool{},
		classes: map[string]*resourcev1.DeviceClass{}, counts: map[Sort]map[string]int{}, queries: map[string]*Query{},
		match: match,
	}
}

// Affected is what a change of an object may have changed.
type Affected struct {
	Nodes   []string // their devices, sorted
	Pools   []Pool   // their devices
	Queries []*Query // their selections, sorted
}

// Pool names a pool of a driver.
type Pool struct{ Driver, Name string }

// PutSlice adds or replaces a slice.
func (v *Inventory) PutSlice(o *resourcev1.ResourceSlice) Affected {
	now := poolKey{o.Spec.Driver, o.Spec.Pool.Name}
	keys := []poolKey{now}
	if was, known := v.slices[o.Name]; known && was != now {
		keys = append(keys, was)
	}
	return v.change(keys, func() {
		if was, known := v.slices[o.Name]; known && was != now {
			delete(v.pools[was].slices, o.Name)
		}
		v.slices[o.Name] = now
		if v.pools[now] == nil {
			v.pools[now] = &pool{slices: map[string]*resourcev1.ResourceSlice{}}
		}
		v.pools[now].slices[o.Name] = o
	})
}

// DeleteSlice removes a slice.
func (v *Inventory) DeleteSlice(name string) Affected {
	key, known := v.slices[name]
	if !known {
		return Affected{}
	}
	return v.change([]poolKey{key}, func() {
		delete(v.slices, name)
		delete(v.pools[key].slices, name)
	})
}

// change makes a change of pools, and finds out what it affects.
func (v *Inventory) change(keys []poolKey, do func()) Affected {
	nodes := map[string]bool{}
	for _, k := range keys {
		v.count(k, -1, nodes)
	}
	do()
	var out Affected
	for _, k := range keys {
		out.Pools = append(out.Pools, Pool{k.driver, k.name})
		if p := v.pools[k]; p != nil && len(p.slices) == 0 {
			delete(v.pools, k)
		} else if p != nil {
			p.read()
			v.count(k, +1, nodes)
		}
	}
	out.Nodes = slices.Sorted(maps.Keys(nodes))
	out.Queries = v.changedQueries()
	return out
}

// count adds (by +1) or subtracts (-1) the devices of the pool, and notes their nodes.
func (v *Inventory) count(key poolKey, by int, nodes map[string]bool) {
	p := v.pools[key]
	if p == nil {
		return
	}
	for i := range p.devices {
		d := &p.devices[i]
		nodes[d.Node] = true
		if by > 0 {
			if v.nodes[d.Node] == nil {
				v.nodes[d.Node] = map[poolKey]bool{}
			}
			v.nodes[d.Node][key] = true
		} else if delete(v.nodes[d.Node], key); len(v.nodes[d.Node]) == 0 {
			delete(v.nodes, d.Node)
		}
		add(v.counts, d, by)
		for _, q := range v.queries { // the order has no effect on the result
			q.count(v, d, by)
		}
	}
}

// add adds a device to counts by sort and product.
func add(counts map[Sort]map[string]int, d *Device, by int) {
	sort := d.Sort()
	of := counts[sort]
	if of == nil {
		of = map[string]int{}
		counts[sort] = of
	}
	if of[d.Spec.Product] += by; of[d.Spec.Product] == 0 {
		delete(of, d.Spec.Product)
	}
	if len(of) == 0 {
		delete(counts, sort)
	}
}

// PutClass adds or replaces a DeviceClass.
func (v *Inventory) PutClass(o *resourcev1.DeviceClass) Affected {
	v.classes[o.Name] = o
	return v.changeClass(o.Name)
}

// DeleteClass removes a DeviceClass.
func (v *Inventory) DeleteClass(name string) Affected {
	delete(v.classes, name)
	return v.changeClass(name)
}

func (v *Inventory) changeClass(name string) Affected {
	for _, q := range v.queries { // the order has no effect on the result
		if q.class == name {
			v.evaluate(q)
		}
	}
	return Affected{Queries: v.changedQueries()}
}

// changedQueries returns the queries of which the selection has changed.
func (v *Inventory) changedQueries() []*Query {
	var out []*Query
	for _, q := range v.queries {
		if now := q.find(v); !now.equal(&q.selection) {
			q.selection = now
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *Query) int { return strings.Compare(a.key, b.key) })
	return out
}

// Extends reports whether a DeviceClass says that pods can request its devices as the resource.
func (v *Inventory) Extends(resource string) bool {
	for _, c := range v.classes { // the order has no effect on the result
		if c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == resource {
			return true
		}
	}
	return false
}

// Devices returns the devices of Berth that the node has by slices, and the UUIDs of those that
// take no new task.
func (v *Inventory) Devices(node string) (list []cluster.Device, lost []string) {
	keys := slices.SortedFunc(maps.Keys(v.nodes[node]), func(a, b poolKey) int { return strings.Compare(a.driver+"/"+a.name, b.driver+"/"+b.name) })
	for _, k := range keys {
		for i := range v.pools[k].devices {
			d := &v.pools[k].devices[i]
			if d.Node != node || d.IsPartition() {
				continue
			}
			list = append(list, d.Spec)
			if d.Spec.Lost {
				lost = append(lost, d.Spec.UUID)
			}
		}
	}
	return list, lost
}

// Find returns the device, and nil if no slice lists it.
func (v *Inventory) Find(id ID) *Device {
	p := v.pools[poolKey{id.Driver, id.Pool}]
	if p == nil {
		return nil
	}
	for i := range p.devices {
		if p.devices[i].ID == id {
			return &p.devices[i]
		}
	}
	return nil
}

// Empty reports whether the Inventory holds nothing.
func (v *Inventory) Empty() bool {
	return len(v.pools)+len(v.slices)+len(v.nodes)+len(v.classes)+len(v.counts)+len(v.queries) == 0
}
