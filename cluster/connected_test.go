package cluster_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// chosen returns the devices that Choose picks.
func chosen(n *cluster.Node, s *cluster.Shape, score func(*cluster.Device) int64) []int {
	claims, _ := n.Choose(s, score)
	var out []int
	for _, c := range claims {
		out = append(out, c.Device)
	}
	return out
}

// eight is a node of eight devices.
func eight() *enginetest.NodeBuilder {
	return enginetest.Node("n").CPU(64, "640Gi").GPUs(8, "A100", "80Gi")
}

func TestConnectedDevices(t *testing.T) {
	four := func() *enginetest.NodeBuilder { return eight().Links("a", "a", "a", "a", "b", "b", "b", "b") }
	pairs := func() *enginetest.NodeBuilder {
		return eight().Links("a", "a", "b", "b", "c", "c", "d", "d").NUMA(0, 0, 1, 1, 0, 0, 1, 1)
	}
	tests := map[string]struct {
		node  *enginetest.NodeBuilder
		held  []int // devices that are held whole
		part  []int // devices of which half is held
		leave []int // devices that a task is still releasing
		shape cluster.Shape
		want  []int
	}{
		"an idle node":                               {node: four(), shape: need(2), want: []int{0, 1}},
		"one device of a broken island":              {node: four(), held: []int{5}, shape: need(1), want: []int{4}},
		"one device does not break the pair":         {node: four(), held: []int{0, 4, 5}, shape: need(1), want: []int{1}},
		"one device that is alone":                   {node: four(), held: []int{0, 1, 2, 4, 5, 6}, shape: need(1), want: []int{3}},
		"two devices in one island":                  {node: four(), held: []int{0, 1, 2}, shape: need(2), want: []int{4, 5}},
		"two devices that are the rest of an island": {node: four(), held: []int{0, 4, 5}, shape: need(2), want: []int{6, 7}},
		"four devices in one island":                 {node: four(), held: []int{1}, shape: need(4), want: []int{4, 5, 6, 7}},
		"never refused":                              {node: four(), held: []int{1, 4, 6}, shape: need(4), want: []int{0, 2, 3, 5}},
		"six devices: a whole island, and a pair":    {node: four(), shape: need(6), want: []int{0, 1, 2, 3, 4, 5}},
		"three of two islands: a pair, and one":      {node: four(), held: []int{0, 1, 4, 5}, shape: need(3), want: []int{2, 3, 6}},
		"NUMA nodes only":                            {node: eight().NUMA(0, 1, 0, 1, 0, 1, 0, 1), shape: need(2), want: []int{0, 2}},
		"PCIe roots only":                            {node: eight().PCIe("x", "y", "", "x"), shape: need(2), want: []int{0, 3}},
		"pairs at one NUMA node":                     {node: pairs(), shape: need(4), want: []int{0, 1, 4, 5}},
		"a pair before a NUMA node":                  {node: pairs(), held: []int{0, 2, 4}, shape: need(2), want: []int{6, 7}},
		"one of the broken pair":                     {node: pairs(), held: []int{6}, shape: need(1), want: []int{7}},
		"NUMA nodes inside an NVLink domain":         {node: eight().Links("a", "a", "a", "a", "a", "a", "a", "a").NUMA(0, 1, 0, 1, 0, 1, 0, 1), held: []int{0}, shape: need(2), want: []int{2, 4}},
		"a link to itself alone":                     {node: eight().Links("a", "b", "c", "d", "e", "f", "g", "h"), shape: need(2), want: []int{0, 1}},
		"only some are known":                        {node: eight().Links("", "", "a", "", "", "a"), shape: need(2), want: []int{2, 5}},
		"one of the unknown":                         {node: eight().Links("a", "a", "", "b", "b"), shape: need(1), want: []int{2}},
		"devices that are being released come last":  {node: four(), held: []int{4}, leave: []int{0, 1, 2}, shape: need(2), want: []int{5, 6}},
		"connected, but being released":              {node: four(), held: []int{0, 1, 5, 6, 7}, leave: []int{3}, shape: need(2), want: []int{2, 4}},
		"parts of one island":                        {node: four(), part: []int{3, 4, 5}, shape: share(2, 300), want: []int{4, 5}},
		"a part of a device that is in use":          {node: four(), part: []int{6}, shape: share(1, 300), want: []int{6}},
		"devices by their ID":                        {node: four(), shape: selected(2, 0, 4, 5), want: []int{4, 5}},
		"a sum of memory":                            {node: four(), held: []int{0, 1, 2}, shape: cluster.Shape{Need: cluster.Need{Devices: 2, SumAtLeast: 100 * gi, SameProduct: true}}, want: []int{4, 5}},
		"required":                                   {node: four(), held: []int{0, 1, 4}, shape: linked(3), want: []int{5, 6, 7}},
		"required, but broken":                       {node: four(), held: []int{0, 4}, shape: linked(4)},
		"required of one product":                    {node: four(), held: []int{0, 1}, shape: cluster.Shape{Need: cluster.Need{Devices: 2, SameLink: true, SameProduct: true}}, want: []int{2, 3}},
		"required, and no link is known":             {node: eight(), shape: linked(2)},
		"required of one device":                     {node: eight(), shape: linked(1), want: []int{0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := enginetest.State(tt.node).Nodes()[0]
			for _, i := range tt.held {
				n.Devices[i].Use = cluster.DeviceUse{Milli: cluster.Whole, Memory: 80 * gi, Leases: 1}
			}
			for _, i := range tt.part {
				n.Devices[i].Use = cluster.DeviceUse{Milli: 500, Memory: 40 * gi, Leases: 1}
			}
			for _, i := range tt.leave {
				n.Devices[i].Use.ReleasingLeases = 1
			}
			used := func(d *cluster.Device) int64 { return int64(d.Use.Milli) }
			if diff := gocmp.Diff(tt.want, chosen(n, &tt.shape, used)); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if n.Feasible(&tt.shape) != (tt.want != nil) {
				t.Errorf("Feasible returns %v", tt.want == nil)
			}
		})
	}
}

func need(devices int) cluster.Shape { return cluster.Shape{Need: cluster.Need{Devices: devices}} }
func linked(devices int) cluster.Shape {
	return cluster.Shape{Need: cluster.Need{Devices: devices, SameLink: true}}
}
func share(devices int, milli cluster.Milli) cluster.Shape {
	return cluster.Shape{Need: cluster.Need{Devices: devices, Share: milli}}
}
func selected(devices int, indexes ...int) cluster.Shape {
	s := need(devices)
	for _, i := range indexes {
		s.Need.Selected = append(s.Need.Selected, cluster.DeviceID{Node: "n", Type: "cuda", Index: i})
	}
	return s
}

// randomWiring returns a node with random connections, of which some devices are in use.
func randomWiring(rt *rapid.T, least, most int) *cluster.Node {
	roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
	count := least + roll(most-least+1)
	links, roots, nodes, domains := make([]string, count), make([]string, count), make([]int, count), 1+roll(5)
	for i := range count {
		links[i], roots[i], nodes[i] = []string{"", "a", "b", "c", "d"}[roll(domains)], []string{"", "x", "y", "z", "w"}[roll(domains)], roll(domains)-1
	}
	spec := enginetest.Node("n").CPU(64, "640Gi").GPUs(count, "A100", "80Gi").Links(links...).PCIe(roots...).NUMA(nodes...).Build()
	for i := range spec.Devices {
		spec.Devices[i].Lost = roll(9) == 0
	}
	state := cluster.NewState()
	if err := state.Apply(cluster.NodePut{Node: *spec}); err != nil {
		rt.Fatal(err)
	}
	n := state.Node("n")
	for i := range n.Devices {
		d := &n.Devices[i]
		switch roll(6) {
		case 0:
			d.Use = cluster.DeviceUse{Milli: cluster.Whole, Memory: 80 * gi, Leases: 1}
		case 1:
			d.Use = cluster.DeviceUse{Milli: 400, Memory: 32 * gi, Leases: 1}
		case 2:
			d.Use.ReleasingLeases = 1
		}
	}
	return n
}

// TestConnectedIsBest compares Choose with a comparison of all sets of devices.
func TestConnectedIsBest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := randomWiring(rt, 2, 9)
		s := cluster.Shape{Need: cluster.Need{Devices: rapid.IntRange(1, 5).Draw(rt, "devices")}}
		if rapid.Bool().Draw(rt, "part") {
			s.Need.Share = 300
		}
		s.Need.SameLink = rapid.IntRange(0, 3).Draw(rt, "same link") == 0
		steps := rapid.Int64Range(1, 3).Draw(rt, "scores")
		score := func(d *cluster.Device) int64 { return int64(d.Index) % steps }
		got := chosen(n, &s, score)
		var want []int
		var best string
		eachSet(len(n.Devices), s.Need.Devices, func(set []int) {
			for _, i := range set {
				if !s.Takes(&n.Devices[i]) || s.Need.SameLink && s.Need.Devices > 1 && (n.Devices[i].Link == "" || n.Devices[i].Link != n.Devices[set[0]].Link) {
					return
				}
			}
			if m := rank(n, &s, set, score); want == nil || m > best {
				want, best = slices.Clone(set), m
			}
		})
		if !slices.Equal(got, want) {
			rt.Fatalf("%d devices, share %d, same link %v, scores mod %d: got %v %s, want %v %s of %+v", s.Need.Devices, s.Need.Share, s.Need.SameLink, steps, got, rank(n, &s, got, score), want, best, n.Devices)
		}
	})
}

// eachSet calls visit with each set of count of the numbers below n, the lowest first.
func eachSet(n, count int, visit func([]int)) {
	var add func(set []int, from int)
	add = func(set []int, from int) {
		if len(set) == count {
			visit(set)
			return
		}
		for i := from; i < n; i++ {
			add(append(set, i), i+1)
		}
	}
	add(nil, 0)
}

// isWired reports whether some devices, but not all in the same way, are connected.
func isWired(n *cluster.Node, islands []func(*cluster.Device) string) bool {
	differ, connected := false, false
	for i := range n.Devices {
		for _, of := range islands {
			a := of(&n.Devices[i])
			differ = differ || a != of(&n.Devices[0])
			for k := range i {
				connected = connected || a != "" && a == of(&n.Devices[k])
			}
		}
	}
	return differ && connected
}

// rank returns a text that is greater the better the set is, without its indexes.
func rank(n *cluster.Node, s *cluster.Shape, set []int, score func(*cluster.Device) int64) string {
	islands := []func(*cluster.Device) string{
		func(d *cluster.Device) string { return d.Link },
		func(d *cluster.Device) string { return d.PCIe },
		func(d *cluster.Device) string { return strings.TrimPrefix(fmt.Sprint(d.NUMA), "-1") },
	}
	if !isWired(n, islands) { // only scores make a difference
		out := ""
		scores := []int64{}
		for _, i := range set {
			scores = append(scores, score(&n.Devices[i]))
		}
		slices.SortFunc(scores, func(a, b int64) int { return cmp.Compare(b, a) })
		for _, k := range scores {
			out += fmt.Sprintf("%04d ", k)
		}
		return out
	}
	waits, sum, rest := 0, int64(0), []int{}
	for i := range n.Devices {
		d := &n.Devices[i]
		switch {
		case slices.Contains(set, i):
			if sum += score(d); s.Need.Share == 0 && d.Use.ReleasingLeases > 0 {
				waits++
			}
		case !d.Lost && d.Use.Milli == 0:
			rest = append(rest, i)
		}
	}
	sizes := func(devices []int, of func(*cluster.Device) string) map[string]int {
		out := map[string]int{}
		for _, i := range devices {
			if name := of(&n.Devices[i]); name != "" {
				out[name]++
			}
		}
		return out
	}
	pairs := func(devices []int) string {
		out := ""
		for _, of := range islands {
			count := 0
			for _, k := range sizes(devices, of) {
				count += k * (k - 1) / 2
			}
			out += fmt.Sprintf("%03d ", count)
		}
		return out
	}
	one, left := "", ""
	for _, of := range islands {
		together := 0
		for _, k := range sizes(set, of) {
			if k == len(set) {
				together = 1
			}
		}
		if len(set) == 1 {
			together = 1
		}
		one += fmt.Sprint(together)
		for _, k := range []int{16, 8, 4, 2} {
			count := 0
			for _, f := range sizes(rest, of) {
				count += f / k
			}
			left += fmt.Sprintf("%02d ", count)
		}
	}
	return fmt.Sprintf("%03d|%s|%s|%05d|%s|%s", 100-waits, one, pairs(set), sum, left, pairs(rest))
}

// TestConnectedManyDevices: on nodes with more devices than Choose compares in every way, a set
// is in one island if one has enough devices, and the node is never refused for it.
func TestConnectedManyDevices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := randomWiring(rt, 17, 64)
		s := need(rapid.IntRange(1, 30).Draw(rt, "devices"))
		idle, takers := map[string]int{}, 0
		for i := range n.Devices {
			if d := &n.Devices[i]; s.Takes(d) {
				takers++
				idle[d.Link]++
			}
		}
		delete(idle, "")
		got := chosen(n, &s, nil)
		if takers < s.Need.Devices {
			if got != nil {
				rt.Fatalf("%v is chosen of %d", got, takers)
			}
			return
		}
		least := 0 // the size of the smallest island that has enough
		for _, k := range idle {
			if k >= s.Need.Devices && (least == 0 || k < least) {
				least = k
			}
		}
		link := n.Devices[got[0]].Link
		for i, d := range got {
			if i > 0 && got[i-1] >= d || !s.Takes(&n.Devices[d]) || s.Need.Devices > 1 && least > 0 && n.Devices[d].Link != link {
				rt.Fatalf("%v is chosen", got)
			}
		}
		if len(got) != s.Need.Devices || s.Need.Devices > 1 && least > 0 && idle[link] != least {
			rt.Fatalf("%v is chosen of an island of %d, and one has %d", got, idle[link], least)
		}
	})
}

// TestUnwired: if nothing is known of connections, or all devices are connected in the same way,
// the order is that of scores and indexes.
func TestUnwired(t *testing.T) {
	tests := map[string]*enginetest.NodeBuilder{
		"nothing is known":       eight(),
		"one domain":             eight().Links("a", "a", "a", "a", "a", "a", "a", "a"),
		"a NUMA node each":       eight().NUMA(0, 1, 2, 3, 4, 5, 6, 7),
		"one domain, MIG slices": enginetest.Node("n").CPU(64, "640Gi").Slices(4, "A100", "1g.10gb", "10Gi").Slices(4, "A100", "1g.10gb", "10Gi").NUMA(0, 0, 0, 0, 1, 1, 1, 1),
	}
	for name, node := range tests {
		t.Run(name, func(t *testing.T) {
			n := enginetest.State(node).Nodes()[0]
			n.Devices[0].Use.ReleasingLeases = 1
			s := need(2)
			s.Need.Partition = n.Devices[0].Profile
			if diff := gocmp.Diff([]int{0, 1}, chosen(n, &s, nil)); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff([]int{0, 5}, chosen(n, &s, func(d *cluster.Device) int64 { return int64(d.Index % 6 / 5) })); diff != "" {
				t.Errorf("devices by score (-want +got):\n%s", diff)
			}
		})
	}
}
