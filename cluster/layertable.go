package cluster

import "slices"

// layerTable answers how much memory layers in a row take, for any row.
type layerTable struct {
	runs     []layerSum // at least one
	smallest Bytes      // memory of the smallest layer
	largest  Bytes      // memory of the largest layer
}

// layerSum is all layers up to the end of one LayerRun.
type layerSum struct {
	layers int
	bytes  Bytes
	each   Bytes // memory of each layer of the run
}

func newLayerTable(l *Layers) *layerTable {
	if len(l.Sizes) == 0 {
		return &layerTable{[]layerSum{{l.Total, Bytes(MulDiv(int64(l.Total), int64(l.Bytes), 1)), l.Bytes}}, l.Bytes, l.Bytes}
	}
	t := &layerTable{runs: make([]layerSum, 0, len(l.Sizes)), smallest: l.Bytes, largest: l.Bytes}
	var sum layerSum
	for _, r := range l.Sizes {
		sum = layerSum{sum.layers + r.Count, sum.bytes + Bytes(r.Count)*r.Bytes, r.Bytes}
		t.runs = append(t.runs, sum)
		t.smallest = min(t.smallest, r.Bytes)
	}
	return t
}

func (t *layerTable) total() int { return t.runs[len(t.runs)-1].layers }
func (t *layerTable) all() Bytes { return t.runs[len(t.runs)-1].bytes }

// sum returns the memory of the first n layers.
func (t *layerTable) sum(n int) Bytes {
	i := 0
	if len(t.runs) > 1 {
		i, _ = slices.BinarySearchFunc(t.runs, n, func(r layerSum, n int) int { return r.layers - n })
	}
	if i == len(t.runs) {
		return t.all()
	}
	r := t.runs[i]
	return r.bytes - Bytes(min(r.layers, r.layers-n))*r.each
}

// reaching returns how many of the first layers take at least this much memory together.
func (t *layerTable) reaching(memory Bytes) int {
	if memory <= 0 {
		return 0
	}
	i := 0
	if len(t.runs) > 1 {
		i, _ = slices.BinarySearchFunc(t.runs, memory, func(r layerSum, m Bytes) int {
			if r.bytes < m {
				return -1
			}
			return 1
		})
	}
	if i == len(t.runs) || t.runs[i].bytes < memory {
		return t.total()
	}
	r := t.runs[i]
	return r.layers - int((r.bytes-memory)/r.each)
}

// startOfRow returns the first layer of the longest row of layers that ends before the layer
// end and fits into room.
func (t *layerTable) startOfRow(end int, room Bytes) int {
	if room < 0 {
		return end
	}
	return min(end, t.reaching(t.sum(end)-room))
}

// endOfRow returns the layer after the longest row that begins with the layer start and fits
// into room.
func (t *layerTable) endOfRow(start int, room Bytes) int {
	limit := t.sum(start) + room
	end := t.reaching(limit)
	if t.sum(end) > limit {
		end--
	}
	return max(start, end)
}

// nearest returns how many of the first layers take about this much memory together.
func (t *layerTable) nearest(memory Bytes) int {
	n := t.reaching(memory)
	if n > 0 && memory-t.sum(n-1) < t.sum(n)-memory {
		return n - 1
	}
	return n
}

// devicesFor returns how many devices with this much room hold all layers, at most the
// given number.
func (t *layerTable) devicesFor(most int, room Bytes) int {
	n := 0
	for end := t.total(); end > 0 && n < most; n++ {
		start := t.startOfRow(end, room)
		if start == end {
			return most
		}
		end = start
	}
	return n
}

// largestPart returns the most memory that a device has if all layers are divided evenly
// over the devices.
func (t *layerTable) largestPart(devices int) Bytes {
	most, before := Bytes(0), Bytes(0)
	for i := range devices {
		sum := t.sum(t.nearest(Bytes(MulDiv(int64(t.all()), int64(i+1), int64(devices)))))
		most, before = max(most, sum-before), sum
	}
	return most
}
