package cluster

import "strings"

// ProductResource names the devices of one product among those of a resource,
// such as nvidia.com/gpu:NVIDIA-L4. No resource has a colon in its own name.
func ProductResource(resource, product string) string { return resource + ":" + product }

// SplitProduct parts such a name; the product is "" where it names a resource.
func SplitProduct(name string) (resource, product string) {
	resource, product, _ = strings.Cut(name, ":")
	return resource, product
}

// Products are the names of products that some queue has terms for, sorted. What
// queues use is counted under these names as well, and under no other products.
func (s *State) Products() []string { return s.tree.products }

// Named reports whether some queue has terms for the product.
func (s *State) Named(product string) bool { return s.tree.Named(product) }

// kind is what a need can ask of a device, its size aside.
type kind struct {
	product, profile, resource, runtime string
	fraction                            Milli
}

func (d *Device) kind() kind { return kind{d.Product, d.Profile, d.Resource, d.Type, d.Fraction} }

// Kinds are one device of every kind there is, for Need.Kind: with product,
// profile, fraction, resource and type, and nothing else. Lost devices are of no kind.
func (s *State) Kinds() []Device { return s.fleet.samples }
