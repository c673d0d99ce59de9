package cluster

import (
	"maps"
	"slices"
	"strings"
)

// ProductResource names the devices of one product among those of a resource,
// such as nvidia.com/gpu:NVIDIA-L4. No resource has a colon in its own name.
func ProductResource(resource, product string) string { return resource + ":" + product }

// SplitProduct parts such a name; the product is "" where it names a resource.
func SplitProduct(name string) (resource, product string) {
	resource, product, _ = strings.Cut(name, ":")
	return resource, product
}

// nameProducts gives every device the name that its product is booked under.
// Devices that stand together are mostly alike and share it.
func (n *Node) nameProducts() {
	for i := range n.Devices {
		d := &n.Devices[i]
		if i > 0 && n.Devices[i-1].Resource == d.Resource && n.Devices[i-1].Product == d.Product {
			d.ProductResource = n.Devices[i-1].ProductResource
		} else {
			d.ProductResource = ProductResource(d.Resource, d.Product)
		}
	}
}

// Products are the names of products that some queue has terms for, sorted. The
// queues' books are kept under these as well, and under no others.
func (s *State) Products() []string { return s.tree.products }

// Named reports whether some queue has terms for the product.
func (s *State) Named(product string) bool { return s.tree.Named(product) }

// nameAgain brings the names of products in step with the queues' terms. Where
// they change, which is rare, everything is booked anew under the new ones.
func (s *State) nameAgain() {
	maps.DeleteFunc(s.tree.terms, func(_ string, count int) bool { return count == 0 })
	if len(s.tree.terms) == len(s.tree.products) && !slices.ContainsFunc(s.tree.products, func(name string) bool { return s.tree.terms[name] == 0 }) {
		return
	}
	s.rebookAll(-1)
	s.tree.products = slices.Sorted(maps.Keys(s.tree.terms))
	s.rebookAll(+1)
}

func (s *State) rebookAll(sign int64) {
	for _, list := range [2][]*Node{s.fleet.sorted, s.fleet.Absent()} {
		for _, n := range list {
			for _, t := range n.Tasks {
				s.rebook(t, sign)
			}
		}
	}
}

// kind is what a need can ask of a device, its size aside.
type kind struct {
	product, profile, resource, runtime string
	fraction                            Milli
}

func (d *Device) kind() kind { return kind{d.Product, d.Profile, d.Resource, d.Type, d.Fraction} }

// Kinds are one device of every kind there is, for Need.Kind: with product,
// profile, fraction, resource and type, and nothing else. Lost devices are of no kind.
func (s *State) Kinds() []Device { return s.fleet.samples }
