// Package instance holds data about the instance types of clouds and about widely used
// devices. It is used only if no running node reports its devices.
package instance

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/internal/table"
	"github.com/berth-project/berth/internal/nearest"
)

// Type is an instance type.
type Type struct {
	Name    string
	Cloud   string
	GPUs    int
	Product string        // the family; a running node reports the exact product
	Memory  cluster.Bytes // of all devices together
}

// Device is a product and the memory of one device.
type Device struct {
	Product string
	Type    string // the type of its runtime
	Memory  cluster.Bytes
	// Unusable is how much of the memory no program can allocate.
	Unusable cluster.Bytes
	Common   bool // it is in tables that are not about particular devices
}

//go:embed instances.yaml
var instances []byte

//go:embed devices.yaml
var devices []byte

type typeFile struct {
	Instances []struct {
		Name    string    `yaml:"name"`
		Cloud   string    `yaml:"cloud"`
		GPUs    int       `yaml:"gpus"`
		Product string    `yaml:"product"`
		Memory  table.GiB `yaml:"memory"`
	} `yaml:"instances"`
}

type deviceFile struct {
	Devices []struct {
		Product string `yaml:"product"`
		Type    string `yaml:"type"`
		MiB     int64  `yaml:"mib"`
		Usable  int64  `yaml:"usable"`
		Common  bool   `yaml:"common"`
	} `yaml:"devices"`
}

var types = sync.OnceValue(func() []Type {
	var out []Type
	for _, e := range table.Read[typeFile]("instances.yaml", instances).Instances {
		out = append(out, Type{Name: e.Name, Cloud: e.Cloud, GPUs: e.GPUs, Product: e.Product, Memory: e.Memory.Bytes})
	}
	return out
})

// All returns the instance types in the order of the file.
func All() []Type { return append([]Type(nil), types()...) }

var known = sync.OnceValue(func() []Device {
	var out []Device
	for _, e := range table.Read[deviceFile]("devices.yaml", devices).Devices {
		d := Device{Product: e.Product, Type: cmp.Or(e.Type, "cuda"), Memory: cluster.Bytes(e.MiB) << 20, Common: e.Common}
		if e.Usable > 0 {
			d.Unusable = cluster.Bytes(e.MiB-e.Usable) << 20
		}
		out = append(out, d)
	}
	return out
})

// Devices returns widely used devices, the smaller ones first.
func Devices() []Device { return slices.Clone(known()) }

// Unusable returns how much of the memory of a device no program can allocate: the figure
// of the table or, for a product with the same short name, that of the device in the table
// whose memory is nearest. For other devices of CUDA it is assumed to be 900 MiB, but not
// more than 3 % of the memory.
func Unusable(product, kind string, memory cluster.Bytes) cluster.Bytes {
	var near *Device
	for i := range known() {
		d := &known()[i]
		if strings.EqualFold(d.Product, product) {
			near = d
			break
		}
		if shortProduct(d.Product) == shortProduct(product) && (near == nil || distance(d.Memory, memory) < distance(near.Memory, memory)) {
			near = d
		}
	}
	switch {
	case near != nil:
		return min(near.Unusable, memory/20)
	case kind == "cuda":
		return min(900<<20, memory*3/100)
	}
	return 0
}

func distance(a, b cluster.Bytes) cluster.Bytes { return max(a-b, b-a) }

// shortProduct returns the first word of a product that has a digit, such as h100; the
// whole product if there is none.
func shortProduct(product string) string {
	for word := range strings.FieldsFuncSeq(strings.ToLower(product), func(r rune) bool { return r == '-' || r == ' ' || r == '_' }) {
		if strings.ContainsAny(word, "0123456789") {
			return word
		}
	}
	return strings.ToLower(product)
}

const prefix = "standard_" // Azure puts it before every size; it is often omitted

// Find returns the instance type with this name, ignoring case and the prefix Standard_.
func Find(name string) (Type, error) {
	var names []string
	for _, t := range types() {
		if shortName(t.Name) == shortName(name) {
			return t, nil
		}
		names = append(names, t.Name)
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = shortName(n)
	}
	hint := ""
	if near, ok := nearest.Find(shortName(name), short); ok {
		for i := range short {
			if short[i] == near {
				hint = fmt.Sprintf("; did you mean %q?", names[i])
			}
		}
	}
	return Type{}, fmt.Errorf("no instance type is called %q%s", name, hint)
}

func shortName(name string) string { return strings.TrimPrefix(strings.ToLower(name), prefix) }

// FindDevice returns the device with this product name, ignoring case, or the only device
// that has these words in its product name: "l4" for NVIDIA-L4, "h100" for
// NVIDIA-H100-80GB-HBM3.
func FindDevice(product string) (Device, error) {
	var names []string
	var found []Device
	for _, d := range Devices() {
		if strings.EqualFold(d.Product, product) {
			return d, nil
		}
		if containsWords(d.Product, product) {
			found = append(found, d)
		}
		names = append(names, d.Product)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Device{}, fmt.Errorf("no device is called %q%s", product, nearest.Hint(product, names))
	}
	var products []string
	for _, d := range found {
		products = append(products, d.Product)
	}
	return Device{}, fmt.Errorf("%q may be %s; write the full name", product, strings.Join(products, " or "))
}

// containsWords reports whether the words of a short name occur next to each other in
// the product name.
func containsWords(product, short string) bool {
	return short != "" && strings.Contains("-"+strings.ToLower(product)+"-", "-"+strings.ToLower(short)+"-")
}

// Group returns the key of the node group that nodes of this type form. The memory is
// that of the table; a running node usually reports a little less.
func (t Type) Group() cluster.GroupKey {
	return cluster.GroupKey{
		Product: t.Product, Count: t.GPUs, Resource: cluster.DefaultDeviceResource,
		Memory: int64(t.Memory) / int64(t.GPUs) >> 20,
	}
}
