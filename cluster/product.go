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

// kind is what a need can ask of a device, its size aside.
type kind struct {
	product, profile, resource, runtime string
	fraction                            Milli
}

func (d *Device) kind() kind { return kind{d.Product, d.Profile, d.Resource, d.Type, d.Fraction} }

// device is one of the kind.
func (k kind) device() Device {
	return Device{Product: k.product, Profile: k.profile, Resource: k.resource, Type: k.runtime, ProductResource: ProductResource(k.resource, k.product), Fraction: k.fraction}
}
