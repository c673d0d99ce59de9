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

// Products are the names of products that some queue has terms for, sorted. The
// queues' books are kept under these as well, and under no others.
func (s *State) Products() []string { return s.products }

// Named reports whether some queue has terms for the product.
func (s *State) Named(product string) bool {
	_, found := slices.BinarySearch(s.products, product)
	return found
}

// countTerms counts (sign +1) or forgets (-1) the products that the queue has terms for.
func (s *State) countTerms(q *Queue, sign int) {
	if q == nil {
		return
	}
	for _, list := range []Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
		for _, a := range list {
			if _, product := SplitProduct(a.Name); product != "" {
				s.terms[a.Name] += sign
			}
		}
	}
}

// nameAgain brings the names of products in step with the queues' terms. Where
// they change, which is rare, everything is booked anew under the new ones.
func (s *State) nameAgain() {
	maps.DeleteFunc(s.terms, func(_ string, count int) bool { return count == 0 })
	if len(s.terms) == len(s.products) && !slices.ContainsFunc(s.products, func(name string) bool { return s.terms[name] == 0 }) {
		return
	}
	s.rebookAll(-1)
	s.products = slices.Sorted(maps.Keys(s.terms))
	s.rebookAll(+1)
}

func (s *State) rebookAll(sign int64) {
	for _, list := range [2][]*Node{s.sorted, s.Absent()} {
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

// countKinds adds (sign +1) or takes away (-1) the node's devices.
func (s *State) countKinds(n *Node, sign int) {
	for i := 0; i < len(n.Devices); {
		d := &n.Devices[i]
		k, run := d.kind(), 0
		for ; i < len(n.Devices) && k == n.Devices[i].kind(); i++ {
			if !n.Devices[i].Lost {
				run++
			}
		}
		if run == 0 {
			continue
		}
		was := s.kinds[k]
		if s.kinds[k] = was + sign*run; s.kinds[k] == 0 {
			delete(s.kinds, k)
		}
		if was == 0 || was+sign*run == 0 {
			s.sample()
		}
	}
}

// Kinds are one device of every kind there is, for Need.Kind: with product,
// profile, fraction, resource and type, and nothing else. Lost devices are of no kind.
func (s *State) Kinds() []Device { return s.samples }

// sample makes one device of every kind, in order. Earlier answers of Kinds stay as they are.
func (s *State) sample() {
	s.samples = make([]Device, 0, len(s.kinds))
	for k := range s.kinds {
		s.samples = append(s.samples, Device{Product: k.product, Profile: k.profile, Resource: k.resource, Type: k.runtime, ProductResource: ProductResource(k.resource, k.product), Fraction: k.fraction})
	}
	slices.SortFunc(s.samples, func(a, b Device) int {
		return strings.Compare(a.ProductResource+"\x00"+a.Profile+"\x00"+a.Type, b.ProductResource+"\x00"+b.Profile+"\x00"+b.Type)
	})
}
