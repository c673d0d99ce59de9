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

// Fleet is the devices of a cluster, looked at once for many models. It is not
// safe for concurrent use.
type Fleet struct {
	groups []*cluster.Group
	kinds  map[string][][]kind // by the types of device that count: of each group
}

// NewFleet looks at groups, which are in key order.
func NewFleet(groups []*cluster.Group) *Fleet {
	return &Fleet{groups: groups, kinds: map[string][][]kind{}}
}

// of is what each group has of these types.
func (f *Fleet) of(types []string) [][]kind {
	key := strings.Join(types, ",")
	out, known := f.kinds[key]
	if !known {
		for _, g := range f.groups {
			out = append(out, kindsOf(g, types))
		}
		f.kinds[key] = out
	}
	return out
}

// hardware is the devices of a fleet that the backend of a model runs on.
type hardware struct {
	groups []*cluster.Group // that have such devices, in key order
	types  []string         // of device; nil: any
	kinds  []kind           // of devices, by group and product
	slices []kind           // of MIG slices that are requested by their profile, the smallest first
}

// hardware finds the devices that this version of the backend runs on.
func (f *Fleet) hardware(b *backend.Backend, version string) (*hardware, error) {
	types, err := b.Types(version)
	if err != nil {
		return nil, &Problem{[]any{"spec", "backendVersion"}, err.Error()}
	}
	h := &hardware{}
	if !b.Anything() {
		h.types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "cpu" })
		slices.Sort(h.types)
	}
	for i, kinds := range f.of(h.types) {
		before := len(h.kinds)
		for _, k := range kinds {
			if k.profile == "" {
				h.kinds = append(h.kinds, k)
			} else {
				h.slices = append(h.slices, k)
			}
		}
		if len(h.kinds) > before {
			h.groups = append(h.groups, f.groups[i])
		}
	}
	slices.SortStableFunc(h.slices, func(a, b kind) int { return cmp.Compare(a.memory, b.memory) })
	return h, nil
}

// widest is the most devices of one node that can work on one replica.
func (h *hardware) widest() int {
	most := 1
	for i := range h.kinds {
		most = max(most, h.kinds[i].most())
	}
	return most
}

// apart reports whether no two devices of the cluster can be combined.
func (h *hardware) apart() bool {
	return len(h.kinds) > 0 && !slices.ContainsFunc(h.kinds, func(k kind) bool { return k.combines })
}

// noSuchKind is a product that no device has. A form of several devices requests
// it where there are only parts of devices, so that it is refused and says so.
const noSuchKind = "a kind that can be combined"

// combined are the products that can be combined, nil where all can.
func (h *hardware) combined() []string {
	var out []string
	all := true
	for _, k := range h.kinds {
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
		return []string{noSuchKind}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofType are the groups of which nodes are of the instance type.
func (h *hardware) ofType(name string) []*cluster.Group {
	var out []*cluster.Group
	for _, g := range h.groups {
		if slices.ContainsFunc(g.Nodes, func(n *cluster.Node) bool { return n.Labels[instanceTypeLabel] == name }) {
			out = append(out, g)
		}
	}
	return out
}

// given is what each device of the node of the group that has most gives.
func (h *hardware) given(g *cluster.Group, share cluster.Milli) cluster.Bytes {
	most := cluster.Bytes(0)
	for i := range h.kinds {
		if k := &h.kinds[i]; k.group == g && k.count == g.Key.Count {
			most = max(most, k.share(share))
		}
	}
	return most
}

// gives says why idle devices of no kind give what is claimed of each; "" if some do.
func (h *hardware) gives(n int, c backend.Claim) string {
	most, product := cluster.Bytes(0), ""
	for i := range h.kinds {
		k := &h.kinds[i]
		if k.gives(n, c) {
			return ""
		}
		if has := k.share(c.Share); k.most() >= n && has > most {
			most, product = has, k.product
		}
	}
	switch {
	case product == "" && n == 1:
		return "no node has a device that it runs on"
	case product == "":
		return fmt.Sprintf("no node has %s that it runs on", english.Count(n, "device"))
	case c.Within(most) < c.Static:
		return fmt.Sprintf("weights and KV cache take %s of each device and may fill %s of it, and the largest, %s, gives them %s",
			gib(c.Static), percent(c.Fraction), product, gib(c.Within(most)))
	case c.Share > 0:
		return fmt.Sprintf("each device must give %s, and the largest, %s, gives %s (%s of it)", gib(c.Enough), product, gib(most), percent(c.Share))
	}
	return fmt.Sprintf("each device must give %s, and the largest, %s, has %s", gib(c.Enough), product, gib(most))
}

// holds says why idle devices of no node hold the layers; "" if those of some do.
func (h *hardware) holds(devices int, l cluster.Layers) string {
	least := l.Total
	if l.Spill {
		least = l.Least
	}
	most, name := 0, ""
	for i := range h.kinds {
		k := &h.kinds[i]
		n := k.most()
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
	case l.Total == 1: // nothing is divided
		return fmt.Sprintf("one device must give %s, and none has so much", gib(l.Fixed+l.Bytes))
	}
	return fmt.Sprintf("%s must be on devices, and at most %d fit, on %s", english.Count(least, "layer"), min(most, l.Total), name)
}

// onSlices are the forms like this one on one slice of each profile that holds it.
// Where there is nothing but slices and none does, the largest is requested, to be
// refused.
func (h *hardware) onSlices(f Form, c backend.Claim) []Form {
	var out []Form
	var seen []string
	on := func(profile, problem string) {
		shape := f.tasks[0].shape
		shape.Need.Partition = profile
		f.Name, f.Problem, f.tasks = "1 slice "+profile, problem, []piece{{"server", 1, shape}}
		out = append(out, f)
	}
	for i := range h.slices {
		if k := &h.slices[i]; !slices.Contains(seen, k.profile) && k.gives(1, c) {
			seen = append(seen, k.profile)
			on(k.profile, "")
		}
	}
	if n := len(h.slices); n > 0 && len(h.kinds) == 0 && len(seen) == 0 {
		k := &h.slices[n-1]
		on(k.profile, fmt.Sprintf("it must give %s, and gives %s", gib(c.Enough), gib(k.share(c.Share))))
	}
	return out
}
