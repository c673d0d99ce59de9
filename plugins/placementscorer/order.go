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

// fill is what the shape would take of what is free of the device. A shape that takes
// devices whole finds all of them alike.
func fill(s *cluster.Shape, d *cluster.Device) part {
	of, all := s.Fill(d)
	return part{of, all}
}
