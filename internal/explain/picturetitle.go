package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
)

// GroupName returns the product and the count of a node group, such as "NVIDIA-L4 × 8". Devices
// without a product are named by their resource.
func GroupName(k cluster.GroupKey) string {
	if k.Product == "" {
		k.Product = k.Resource
	}
	return k.String()
}

// pictureTitle returns the title of a node group. Groups with devices of several kinds, such as
// MIG slices of several profiles, list the kinds, because GroupTitle names the memory of the
// smallest device only.
func pictureTitle(g *cluster.Group) string {
	kinds := kindsOf(g.Nodes)
	if len(kinds) == 1 && kinds[0].profile == "" {
		return GroupTitle(g.Key)
	}
	var out []string
	for i, k := range kinds {
		switch {
		case k.profile == "":
			out = append(out, k.product+k.times()+", "+quantity.Memory(k.memory)+" each")
		case i > 0 && kinds[i-1].product == k.product && kinds[i-1].profile != "":
			out[len(out)-1] += ", " + k.profile + k.times()
		default:
			out = append(out, k.product+" in MIG slices "+k.profile+k.times())
		}
	}
	return strings.Join(out, " + ")
}

// kind is what devices of a node group have in common.
type kind struct {
	product, profile string
	memory           cluster.Bytes
	least, most      int // how many of them the nodes have that are not lost
}

func (k *kind) times() string {
	if k.least < k.most {
		return fmt.Sprintf(" × %d–%d", k.least, k.most)
	}
	return fmt.Sprintf(" × %d", k.most)
}

// kindsOf returns the kinds of devices of the nodes: by product, the largest slices first.
func kindsOf(nodes []*cluster.Node) []kind {
	var out []kind
	index := func(d *cluster.Device) int {
		return slices.IndexFunc(out, func(k kind) bool {
			return k.product == productOf(d) && k.profile == profileOf(d) && k.memory == d.Memory
		})
	}
	for count, n := range nodes {
		have := map[int]int{}
		for i := range n.Devices {
			if d := &n.Devices[i]; !d.Lost {
				k := index(d)
				if k < 0 {
					k = len(out)
					out = append(out, kind{product: productOf(d), profile: profileOf(d), memory: d.Memory, least: len(n.Devices)})
					if count > 0 {
						out[k].least = 0
					}
				}
				have[k]++
			}
		}
		for k := range out {
			out[k].least, out[k].most = min(out[k].least, have[k]), max(out[k].most, have[k])
		}
	}
	slices.SortStableFunc(out, func(a, b kind) int {
		if c := strings.Compare(a.product, b.product); c != 0 {
			return c
		}
		return CompareNatural(b.profile, a.profile)
	})
	return out
}
