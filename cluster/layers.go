package cluster

import (
	"cmp"
	"fmt"
	"math"
)

// Layers describes divisible work: layers, such as those of a model, that are
// distributed over the devices of a node. Each device holds layers that follow one another,
// in the order of the devices. If some layers are in the memory of the node, they are the
// first ones.
type Layers struct {
	Total int   `json:"total,omitempty"` // how many layers there are
	Bytes Bytes `json:"bytes,omitempty"` // memory of each layer, or of the largest one if Sizes is set
	Fixed Bytes `json:"fixed,omitempty"` // memory that is needed on every device in addition to its layers
	// FixedOn is Fixed on whole devices of products for which it is more, sorted by product.
	FixedOn []Sum `json:"fixedOn,omitempty"`
	Least   int   `json:"least,omitempty"` // with Spill: how many layers must be on devices
	Spill   bool  `json:"spill,omitempty"` // the other layers may be in the memory of the node
	// Sizes is the memory of all Total layers in their order, if it is not Bytes for each of
	// them.
	Sizes []LayerRun `json:"sizes,omitempty"`
	// Outside is how many layers there are before the Total layers. They are always in the
	// memory of the node, and the shape requests memory for them.
	Outside int `json:"outside,omitempty"`
}

// LayerRun is a number of layers in a row that take the same memory each.
type LayerRun struct {
	Count int   `json:"count,omitempty"`
	Bytes Bytes `json:"bytes,omitempty"`
}

// LayersOf returns layers with these sizes, in their order.
func LayersOf(sizes []Bytes, fixed Bytes) Layers {
	l := Layers{Total: len(sizes), Fixed: fixed}
	for _, b := range sizes {
		l.Bytes = max(l.Bytes, b)
		if n := len(l.Sizes); n > 0 && l.Sizes[n-1].Bytes == b {
			l.Sizes[n-1].Count++
			continue
		}
		l.Sizes = append(l.Sizes, LayerRun{1, b})
	}
	if len(l.Sizes) == 1 {
		l.Sizes = nil
	}
	return l
}

// Each returns the size of every layer, in their order.
func (l *Layers) Each() []Bytes {
	out := make([]Bytes, 0, l.Total)
	for _, r := range l.Sizes {
		for range r.Count {
			out = append(out, r.Bytes)
		}
	}
	for len(out) < l.Total {
		out = append(out, l.Bytes)
	}
	return out
}

// All returns the memory of all layers, without Fixed.
func (l *Layers) All() Bytes { return newLayerTable(l).sum(l.Total) }

// First returns the memory of the first n layers, without Fixed.
func (l *Layers) First(n int) Bytes { return newLayerTable(l).sum(n) }

// Within returns how many layers fit into free bytes of one device, counted from the last
// layer.
func (l *Layers) Within(free Bytes) int { return l.Held(1, free) }

// Held returns how many layers fit on a number of devices with this much free memory each,
// counted from the last layer.
func (l *Layers) Held(devices int, free Bytes) int {
	t, end := newLayerTable(l), l.Total
	for range devices {
		start := t.startOfRow(end, free-l.Fixed)
		if start == end {
			break
		}
		end = start
	}
	return l.Total - end
}

// Divide returns how many layers each of several devices holds, if each has this much free
// memory and all layers are divided over them. It returns nil if they do not fit, or if
// there are fewer layers than devices.
func (l *Layers) Divide(devices int, free Bytes) []int {
	t := newLayerTable(l)
	rows := make(layerRows, devices)
	for i := range rows {
		rows[i] = layerRow{device: i, room: free - l.Fixed}
	}
	rows = rows.fill(t, filling{fixed: l.Fixed, together: math.MaxInt64, each: true})
	if len(rows) < max(1, devices) || rows[0].start > 0 {
		return nil
	}
	rows.divide(t)
	out := make([]int, devices)
	for i := range rows {
		out[i] = rows[i+1:].first(l.Total) - rows[i].start
	}
	return out
}

// fixedOn returns the memory that is needed on the device in addition to its layers.
func (l *Layers) fixedOn(d *Device) Bytes {
	if len(l.FixedOn) == 0 || d.Profile != "" {
		return l.Fixed
	}
	return l.FixedOnProduct(d.Product)
}

// FixedOnProduct returns the memory that is needed on a whole device of the product in addition
// to its layers.
func (l *Layers) FixedOnProduct(product string) Bytes {
	for i := range l.FixedOn {
		if l.FixedOn[i].Product == product {
			return l.FixedOn[i].AtLeast
		}
	}
	return l.Fixed
}

// least returns how many layers must be on devices.
func (l *Layers) least() int {
	if l.Spill {
		return l.Least
	}
	return l.Total
}

// check returns an error if an amount is negative or too large, or if Sizes contradicts the
// other fields.
func (l *Layers) check() error {
	err := cmp.Or(checkAmount("layers", l.Total), checkAmount("bytes of a layer", l.Bytes), checkAmount("fixed bytes", l.Fixed), checkAmount("least layers", l.Least), checkAmount("layers outside devices", l.Outside))
	if err == nil && l.Bytes > 0 && Bytes(l.Total) > maxAmount/l.Bytes {
		err = fmt.Errorf("%d layers of %d bytes are more bytes than are supported", l.Total, l.Bytes)
	}
	for _, f := range l.FixedOn {
		err = cmp.Or(err, checkAmount("fixed bytes", f.AtLeast))
		if err == nil && f.AtLeast < l.Fixed {
			err = fmt.Errorf("%d fixed bytes on %s are less than %d on any device", f.AtLeast, f.Product, l.Fixed)
		}
	}
	if err != nil || len(l.Sizes) == 0 {
		return err
	}
	count, largest := 0, Bytes(0)
	for _, r := range l.Sizes {
		if r.Count < 1 || r.Count > l.Total-count || r.Bytes < 0 {
			return fmt.Errorf("%d layers of %d bytes cannot be among %d layers", r.Count, r.Bytes, l.Total)
		}
		count, largest = count+r.Count, max(largest, r.Bytes)
	}
	if count != l.Total || largest != l.Bytes {
		return fmt.Errorf("the sizes are of %d layers of at most %d bytes, but there are %d of at most %d", count, largest, l.Total, l.Bytes)
	}
	return nil
}
