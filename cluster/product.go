package cluster

import "strings"

// ProductResource returns the name under which the devices of one product are counted,
// such as nvidia.com/gpu:NVIDIA-L4. The name of a resource itself never contains a colon.
func ProductResource(resource, product string) string { return resource + ":" + product }

// isProductResource reports whether the name is ProductResource(resource, product).
func isProductResource(name, resource, product string) bool {
	return len(name) == len(resource)+1+len(product) && strings.HasPrefix(name, resource) && name[len(resource)] == ':' && strings.HasSuffix(name, product)
}

// SplitProduct splits a name that ProductResource returned. The product is "" if the
// name is that of a plain resource.
func SplitProduct(name string) (resource, product string) {
	resource, product, _ = strings.Cut(name, ":")
	return resource, product
}

// kind is everything that a Need can ask of a device, except for its size and its ID.
type kind struct {
	product, profile, resource, runtime string
	fraction                            Milli
}

func (d *Device) kind() kind { return kind{d.Product, d.Profile, d.Resource, d.Type, d.Fraction} }

// device returns a device of the kind, with no other field set.
func (k kind) device() Device {
	return Device{DeviceSpec: &DeviceSpec{Product: k.product, Profile: k.profile, Resource: k.resource, Type: k.runtime, ProductResource: ProductResource(k.resource, k.product), Fraction: k.fraction}}
}
