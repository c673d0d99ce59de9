package placementscorer

import "github.com/berth-project/berth/cluster"

// order says which devices of a node a replica gets.
func order(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if !s.Served() {
		return 0
	}
	return float64(points(s, d)) / 1000
}

// points are the thousandths of the device's score, below 100,000. Among equals a
// device that somebody is still leaving comes last, because whoever gets it has to
// wait; the odd numbers are for that. Layers go where most of them fit in any case.
func points(s *cluster.Shape, d *cluster.Device) int64 {
	var p int64
	if s.Strategy == cluster.Spread {
		company := min(int64(max(0, d.Use.Leases)), 99)
		p = 1000*(99-company) + 2*scale(free(d), 499)
	} else {
		p = 2 * scale(fill(s, d), 49_999)
	}
	if d.Use.ReleasingLeases == 0 {
		p++
	}
	return p
}

// part is one number out of another.
type part struct{ of, all int64 }

// scale brings a part to so many steps; what is more than all counts as all.
func scale(p part, steps int64) int64 {
	switch {
	case p.of <= 0:
		return 0
	case p.of >= p.all:
		return steps
	}
	return cluster.MulDiv(p.of, steps, p.all)
}

func free(d *cluster.Device) part {
	if d.Memory <= 0 { // nobody knows how much it has
		return part{int64(d.FreeMilli()), int64(cluster.Whole)}
	}
	return part{int64(d.Free()), int64(d.Memory)}
}

// fill is what the shape would take of what is free of the device. Who takes it
// whole finds all of them alike.
func fill(s *cluster.Shape, d *cluster.Device) part {
	need := &s.Need
	whole := part{1, 1}
	switch {
	case s.Isolation.Exclusive():
		return whole
	case need.Layers != nil:
		// What a device holds beside its layers makes no difference to the order.
		return part{cluster.MulDiv(int64(need.Layers.Bytes), int64(need.Layers.Total), 1), int64(d.Free())}
	case need.Share > 0 && d.Memory <= 0:
		return part{int64(need.Share), int64(d.FreeMilli())}
	case need.Share > 0:
		return part{cluster.MulDiv(int64(d.Memory), int64(need.Share), int64(cluster.Whole)), int64(d.Free())}
	case need.Memory > 0 && d.Memory > 0:
		return part{int64(need.Memory), int64(d.Free())}
	}
	return whole
}
