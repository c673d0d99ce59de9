package cluster

import (
	"cmp"
	"slices"
)

// layerRow is the layers that one device holds. They end where the row of the next device
// begins.
type layerRow struct {
	device int   // index in Node.Devices
	room   Bytes // how much memory the device has for layers
	start  int   // the first layer
}

// layerRows is the rows of several devices, in the order of the devices. The last row ends
// with the last layer.
type layerRows []layerRow

// first returns the first layer that is on a device. Without a device it is end.
func (rows layerRows) first(end int) int {
	if len(rows) == 0 {
		return end
	}
	return rows[0].start
}

// held returns how many of all layers are on devices.
func (rows layerRows) held(all int) int { return all - rows.first(all) }

// rowsOn puts as many layers as possible on devices of the order, which are sorted by
// preference. It uses as few devices as hold all layers, or as many as are requested; it
// returns fewer than that if not every device can hold a layer. Devices that can hold more
// layers are used first.
func rowsOn(v supply, order []int) layerRows {
	need, t := &v.s.Need, v.s.layers()
	var buffer [16]layerRow
	all := layerRows(buffer[:0])
	mostFixed := need.Layers.Fixed
	for k, i := range order {
		fixed := need.Layers.fixedOn(&v.n.Devices[i])
		mostFixed = max(mostFixed, fixed)
		r := layerRow{device: i, room: v.n.Devices[i].InStep() - fixed}
		if k > 0 && all[k-1].room == r.room { // most devices are equal
			r.start = all[k-1].start
		} else {
			r.start = t.startOfRow(t.total(), r.room)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b layerRow) int { return cmp.Compare(a.start, b.start) })
	if v.n.sliced {
		all = all.onePerMemory(v.n.Devices)
	}
	devices := min(need.Devices, t.total())
	if need.Devices == 0 {
		for sum := Bytes(0); devices < len(all) && (devices == 0 || sum < t.all()); devices++ {
			sum += max(0, all[devices].room)
		}
	}
	rows := make(layerRows, 0, devices)
	for ; devices <= len(all); devices++ {
		rows = append(rows[:0], all[:devices]...)
		slices.SortFunc(rows, func(a, b layerRow) int { return a.device - b.device })
		rows = rows.fill(t, filling{mostFixed, v.freeUnified(), need.Devices > 0})
		if need.Devices > 0 || rows.first(t.total()) == 0 {
			break
		}
	}
	return rows
}

// onePerMemory returns the rows without the replicas that share memory with an earlier one.
func (rows layerRows) onePerMemory(devices []Device) layerRows {
	order := make([]int, len(rows))
	for i, r := range rows {
		order[i] = r.device
	}
	order = onePerMemory(devices, order)
	return slices.DeleteFunc(rows, func(r layerRow) bool { return !slices.Contains(order, r.device) })
}

// filling is the conditions of fill.
type filling struct {
	fixed    Bytes // memory that every device needs in addition to its layers
	together Bytes // how much memory all devices can have together
	each     bool  // every device must get a layer
}

// fill gives each device as many layers as it can hold, beginning with the last layer and
// the last device. It returns the rows that have a layer.
func (rows layerRows) fill(t *layerTable, f filling) layerRows {
	end := t.total()
	for i := len(rows) - 1; i >= 0; i-- {
		r, before := &rows[i], 0 // before: how many layers are left for the devices before it
		if f.each {
			before = i
		}
		room := min(r.room, f.together-f.fixed-Bytes(before)*(f.fixed+t.largest))
		r.start = min(end, max(before, t.startOfRow(end, room)))
		if r.start < end {
			f.together -= f.fixed + t.sum(end) - t.sum(r.start)
		}
		end = r.start
	}
	out := rows[:0]
	for i, r := range rows {
		if r.start < rows[i+1:].first(t.total()) {
			out = append(out, r)
		}
	}
	return out
}

// divide moves the borders between rows, so that the memory that each row takes is in
// proportion to the room of its device, as far as whole layers permit. It changes nothing if
// a device would then have no layer.
func (rows layerRows) divide(t *layerTable) {
	var buffer [16]int
	starts := append(buffer[:0], rows[0].start)
	base := t.sum(rows[0].start)
	var all, before Bytes
	for _, r := range rows {
		all += r.room
	}
	for i := 1; i < len(rows); i++ {
		before += rows[i-1].room
		border := t.nearest(base + Bytes(MulDiv(int64(t.all()-base), int64(before), int64(all))))
		last := starts[i-1]
		border = max(border, rows[i].start, last+1)
		border = min(border, t.endOfRow(last, rows[i-1].room), t.total()-(len(rows)-i))
		if border <= last || t.endOfRow(border, rows[i].room) == border {
			return
		}
		starts = append(starts, border)
	}
	for i := range rows {
		rows[i].start = starts[i]
	}
}
