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
	// WholeDevices is set if tasks can only hold whole devices, because the nodes themselves
	// choose which devices a container gets.
	WholeDevices bool

	groups  []*cluster.Group
	classes map[string][][]deviceClass // from a list of device types to the classes of each group
	nodes   map[string]*cluster.Node   // by name; nil until a model selects devices
	sizings map[sizingKey]*knownSizes
}

// NewFleet returns the fleet of these groups, which must be in key order.
func NewFleet(groups []*cluster.Group) *Fleet {
	return &Fleet{groups: groups, classes: map[string][][]deviceClass{}, sizings: map[sizingKey]*knownSizes{}}
}

// node returns the node with this name if it has devices; nil if there is none.
func (f *Fleet) node(name string) *cluster.Node {
	if f.nodes == nil {
		f.nodes = map[string]*cluster.Node{}
		for _, g := range f.groups {
			for _, n := range g.Nodes {
				f.nodes[n.Name] = n
			}
		}
	}
	return f.nodes[name]
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
	fleet   *Fleet
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
	h := &hardware{fleet: f}
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

// fixedOn returns what layers need on each device in addition to themselves, for the products on
// which it is more than fixed because memory is not usable.
func (h *hardware) fixedOn(fixed cluster.Bytes, unusable func(backend.Accelerator) cluster.Bytes) []cluster.Sum {
	var out []cluster.Sum
	for i := range h.classes {
		if more := unusable(h.classes[i].accelerator); more > 0 {
			out = withSum(out, h.classes[i].product, fixed+more)
		}
	}
	return out
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

// largestClass returns the class of the largest devices of the group, of which a node has as
// many as the key of the group says; nil if there is none.
func (h *hardware) largestClass(g *cluster.Group) *deviceClass {
	var best *deviceClass
	for i := range h.classes {
		if k := &h.classes[i]; k.group == g && k.count == g.Key.Count && (best == nil || k.memory > best.memory) {
			best = k
		}
	}
	return best
}

// sums returns the least memory of n devices together, for the products on which more is
// claimed than the least claim.
func (h *hardware) sums(n int, claims []backend.Claim, least backend.Claim) []cluster.Sum {
	var out []cluster.Sum
	for i := range h.classes {
		if claims[i].Enough <= least.Enough {
			continue
		}
		out = withSum(out, h.classes[i].product, claims[i].Enough*cluster.Bytes(n))
	}
	return out
}

// withSum returns the sums, which are sorted by product, with at least this amount for the
// product.
func withSum(sums []cluster.Sum, product string, atLeast cluster.Bytes) []cluster.Sum {
	at, found := slices.BinarySearchFunc(sums, product, func(s cluster.Sum, product string) int { return strings.Compare(s.Product, product) })
	if !found {
		sums = slices.Insert(sums, at, cluster.Sum{Product: product})
	}
	sums[at].AtLeast = max(sums[at].AtLeast, atLeast)
	return sums
}

// memoryShortfall says why no node could give the claims on n devices even if all its
// devices were idle; "" if a node could. claims has one claim for each class.
func (h *hardware) memoryShortfall(n int, claims []backend.Claim) string {
	most, product, reserved := cluster.Bytes(0), "", false
	var c backend.Claim
	for i := range h.classes {
		k := &h.classes[i]
		if k.canGive(n, claims[i]) {
			return ""
		}
		if has := k.shareBytes(claims[i].Share); k.maxPerReplica() >= n && has > most {
			most, product, reserved, c = has, k.product, has == k.memory && k.memory < k.total, claims[i]
		}
	}
	switch {
	case product == "" && n == 1:
		return "no node has a device that it runs on"
	case product == "":
		return fmt.Sprintf("no node has %s that it runs on", english.Count(n, "device"))
	}
	return claimShortfall(c, most, product, reserved)
}

// claimShortfall says that the largest device, of this product, gives a claim too little. most is
// what it gives, and reserved whether it gives all that is not reserved.
func claimShortfall(c backend.Claim, most cluster.Bytes, product string, reserved bool) string {
	if c.StaticBytes(most) < c.Static {
		need, has := gibPair(c.Static, c.StaticBytes(most))
		return fmt.Sprintf("weights and KV cache take %s of each device and may fill %s of it, and the largest, %s, gives them %s",
			need, percent(c.Fraction), product, has)
	}
	need, has := gibPair(c.Enough, most)
	switch {
	case c.Share > 0 && reserved:
		return fmt.Sprintf("each device must give %s, and the largest, %s, gives %s (the rest is reserved)", need, product, has)
	case c.Share > 0:
		return fmt.Sprintf("each device must give %s, and the largest, %s, gives %s (%s of it)", need, product, has, percent(c.Share))
	}
	return fmt.Sprintf("each device must give %s, and the largest, %s, has %s", need, product, has)
}

// layersShortfall says why no node could hold the layers even if all its devices were idle;
// "" if a node could. If devices is 0, any number of devices may be used. each is the memory
// that a device must give, 0 if that depends on how the layers are divided.
func (h *hardware) layersShortfall(devices int, each cluster.Bytes, l cluster.Layers) string {
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
		if on := k.held(n, l); on > most || name == "" {
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
	case each > 0: // the model is not divided
		return fmt.Sprintf("one device must give %s, and none has so much", gib(each))
	}
	return fmt.Sprintf("%s must be on devices, and at most %d fit, on %s", english.Count(least, "layer"), most, name)
}

// onSlices returns forms like f on one MIG slice, one form for each profile that is
// large enough. If the cluster has only slices and none is large enough, the form on the
// largest slice is returned with its problem. If the spec requests a profile, only the form
// on a slice of that profile is returned.
func (h *hardware) onSlices(f Form, size sizing, profile string) []Form {
	claims, _, err := size.claims(&f, h.slices)
	if err != nil {
		return nil // the form on a whole device has the same problem
	}
	return h.onSlicesWith(f, claims, profile)
}

// onSlicesWith is onSlices for known claims on the slices.
func (h *hardware) onSlicesWith(f Form, claims []backend.Claim, profile string) []Form {
	var out []Form
	var seen []string
	on := func(profile, problem string) {
		shape := *f.tasks[0].shape
		shape.Need.Partition = profile
		f.Name, f.Problem, f.tasks = "1 slice "+profile, problem, []roleTasks{{"server", 1, &shape}}
		out = append(out, f)
	}
	if profile != "" {
		on(profile, h.sliceShortfall(profile, claims))
		return out
	}
	for i := range h.slices {
		if k := &h.slices[i]; !slices.Contains(seen, k.profile) && k.canGive(1, claims[i]) {
			seen = append(seen, k.profile)
			on(k.profile, "")
		}
	}
	if n := len(h.slices); n > 0 && len(h.classes) == 0 && len(seen) == 0 {
		k, c := &h.slices[n-1], claims[n-1]
		need, has := gibPair(c.Enough, k.shareBytes(c.Share))
		on(k.profile, fmt.Sprintf("it must give %s, and gives %s", need, has))
	}
	return out
}

// sliceShortfall says why no slice of the profile could give the claim even if it were idle;
// "" if one could.
func (h *hardware) sliceShortfall(profile string, claims []backend.Claim) string {
	most, found := cluster.Bytes(0), false
	var c backend.Claim
	for i := range h.slices {
		if k := &h.slices[i]; k.profile == profile && (!found || k.shareBytes(claims[i].Share) > most) {
			most, found, c = k.shareBytes(claims[i].Share), true, claims[i]
		}
	}
	switch {
	case !found:
		return "no node has a slice of that profile that it runs on"
	case most < c.Enough:
		need, has := gibPair(c.Enough, most)
		return fmt.Sprintf("it must give %s, and gives %s", need, has)
	}
	return ""
}

// notOnSlice reports whether the form can be requested and is not on a MIG slice.
func notOnSlice(f Form) bool { return f.tasks != nil && f.tasks[0].shape.Need.Partition == "" }
