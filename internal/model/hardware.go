package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// Fleet is the devices of a cluster. It is built once and used for many models, because
// what it finds out about each group is cached. It is not safe for concurrent use.
type Fleet struct {
	groups  []*cluster.Group
	classes map[string][][]deviceClass // from a list of device types to the classes of each group
}

// NewFleet returns the fleet of these groups, which must be in key order.
func NewFleet(groups []*cluster.Group) *Fleet {
	return &Fleet{groups: groups, classes: map[string][][]deviceClass{}}
}

// classesOf returns the device classes of each group, of these device types only.
func (f *Fleet) classesOf(types []string) [][]deviceClass {
	key := strings.Join(types, ",")
	out, known := f.classes[key]
	if !known {
		for _, g := range f.groups {
			out = append(out, deviceClassesOf(g, types))
		}
		f.classes[key] = out
	}
	return out
}

// hardware is the devices of a fleet on which the backend of a model runs.
type hardware struct {
	groups  []*cluster.Group // the groups that have such devices, in key order
	types   []string         // the types of device; nil: any
	classes []deviceClass    // the devices that are not requested by a MIG profile, by group and product
	slices  []deviceClass    // the MIG slices that are requested by their profile, the smallest first
}

// hardware returns the devices on which this version of the backend runs.
func (f *Fleet) hardware(b *backend.Backend, version string) (*hardware, error) {
	types, err := b.Types(version)
	if err != nil {
		return nil, &Problem{[]any{"spec", "backendVersion"}, err.Error()}
	}
	h := &hardware{}
	if !b.RunsOnAnyType() {
		h.types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "cpu" })
		slices.Sort(h.types)
	}
	for i, classes := range f.classesOf(h.types) {
		before := len(h.classes)
		for _, k := range classes {
			if k.profile == "" {
				h.classes = append(h.classes, k)
			} else {
				h.slices = append(h.slices, k)
			}
		}
		if len(h.classes) > before {
			h.groups = append(h.groups, f.groups[i])
		}
	}
	slices.SortStableFunc(h.slices, func(a, b deviceClass) int { return cmp.Compare(a.memory, b.memory) })
	return h, nil
}

// maxDevices returns the most devices of one node that one replica can use.
func (h *hardware) maxDevices() int {
	most := 1
	for i := range h.classes {
		most = max(most, h.classes[i].maxPerReplica())
	}
	return most
}

// nothingCombines reports whether the cluster has devices and no two of them can serve
// one replica.
func (h *hardware) nothingCombines() bool {
	return len(h.classes) > 0 && !slices.ContainsFunc(h.classes, func(k deviceClass) bool { return k.combines })
}

// noCombinableProduct is a product that no device has. If the cluster has only parts of
// devices, a form of several devices requests this product. The form is refused then,
// and the refusal names the cause.
const noCombinableProduct = "a kind that can be combined"

// combinableProducts returns the products of which several devices can serve one
// replica; nil if that holds for all products.
func (h *hardware) combinableProducts() []string {
	var out []string
	all := true
	for _, k := range h.classes {
		if k.combines {
			out = append(out, k.product)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	if len(out) == 0 {
		return []string{noCombinableProduct}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// groupsWithInstanceType returns the groups that have a node of the instance type.
func (h *hardware) groupsWithInstanceType(name string) []*cluster.Group {
	var out []*cluster.Group
	for _, g := range h.groups {
		if slices.ContainsFunc(g.Nodes, func(n *cluster.Node) bool { return n.Labels[instanceTypeLabel] == name }) {
			out = append(out, g)
		}
	}
	return out
}

// largestShare returns how many bytes this share of a device is on the nodes of the group
// with the largest devices. It considers only devices of which a node has as many as the
// key of the group says.
func (h *hardware) largestShare(g *cluster.Group, share cluster.Milli) cluster.Bytes {
	most := cluster.Bytes(0)
	for i := range h.classes {
		if k := &h.classes[i]; k.group == g && k.count == g.Key.Count {
			most = max(most, k.shareBytes(share))
		}
	}
	return most
}

// memoryShortfall says why no node could give the claim on n devices even if all its
// devices were idle; "" if a node could.
func (h *hardware) memoryShortfall(n int, c backend.Claim) string {
	most, product := cluster.Bytes(0), ""
	for i := range h.classes {
		k := &h.classes[i]
		if k.canGive(n, c) {
			return ""
		}
		if has := k.shareBytes(c.Share); k.maxPerReplica() >= n && has > most {
			most, product = has, k.product
		}
	}
	switch {
	case product == "" && n == 1:
		return "no node has a device that it runs on"
	case product == "":
		return fmt.Sprintf("no node has %s that it runs on", english.Count(n, "device"))
	case c.StaticBytes(most) < c.Static:
		return fmt.Sprintf("weights and KV cache take %s of each device and may fill %s of it, and the largest, %s, gives them %s",
			gib(c.Static), percent(c.Fraction), product, gib(c.StaticBytes(most)))
	case c.Share > 0:
		return fmt.Sprintf("each device must give %s, and the largest, %s, gives %s (%s of it)", gib(c.Enough), product, gib(most), percent(c.Share))
	}
	return fmt.Sprintf("each device must give %s, and the largest, %s, has %s", gib(c.Enough), product, gib(most))
}

// layersShortfall says why no node could hold the layers even if all its devices were idle;
// "" if a node could. If devices is 0, any number of devices may be used.
func (h *hardware) layersShortfall(devices int, l cluster.Layers) string {
	least := l.Total
	if l.Spill {
		least = l.Least
	}
	most, name := 0, ""
	for i := range h.classes {
		k := &h.classes[i]
		n := k.maxPerReplica()
		if devices > 0 {
			if n < devices {
				continue
			}
			n = devices
		}
		if on := n * l.Within(k.memory); on > most || name == "" {
			most, name = on, k.product
			if devices == 0 || n > 1 {
				name = fmt.Sprintf("%d × %s", n, k.product)
			}
		}
	}
	switch {
	case name == "":
		return fmt.Sprintf("no node has %s that it runs on", english.Count(max(1, devices), "device"))
	case most >= least:
		return ""
	case l.Total == 1: // the model is not divided
		return fmt.Sprintf("one device must give %s, and none has so much", gib(l.Fixed+l.Bytes))
	}
	return fmt.Sprintf("%s must be on devices, and at most %d fit, on %s", english.Count(least, "layer"), min(most, l.Total), name)
}

// onSlices returns forms like f on one MIG slice, one form for each profile that is
// large enough. If the cluster has only slices and none is large enough, the form on the
// largest slice is returned with its problem.
func (h *hardware) onSlices(f Form, c backend.Claim) []Form {
	var out []Form
	var seen []string
	on := func(profile, problem string) {
		shape := *f.tasks[0].shape
		shape.Need.Partition = profile
		f.Name, f.Problem, f.tasks = "1 slice "+profile, problem, []roleTasks{{"server", 1, &shape}}
		out = append(out, f)
	}
	for i := range h.slices {
		if k := &h.slices[i]; !slices.Contains(seen, k.profile) && k.canGive(1, c) {
			seen = append(seen, k.profile)
			on(k.profile, "")
		}
	}
	if n := len(h.slices); n > 0 && len(h.classes) == 0 && len(seen) == 0 {
		k := &h.slices[n-1]
		on(k.profile, fmt.Sprintf("it must give %s, and gives %s", gib(c.Enough), gib(k.shareBytes(c.Share))))
	}
	return out
}
