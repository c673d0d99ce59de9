package placementscorer

import "github.com/berth-project/berth/cluster"

// deviceScore scores a device of a node for a replica, and gives 0 to any other task.
func deviceScore(s *cluster.Shape, _ *cluster.Node, d *cluster.Device) float64 {
	if !s.ServesModel() {
		return 0
	}
	return float64(points(s, d)) / 1000
}

// points returns the device's score in thousandths, below 100,000. Of equal devices, one
// that is still being released is last, because a replica that gets it has to wait: its score
// is even, and the scores of other devices are odd. For layers, the score decides only between
// devices that take equally many, because layers are put where most of them fit.
func points(s *cluster.Shape, d *cluster.Device) int64 {
	var p int64
	if s.Strategy == cluster.Spread {
		replicasBefore := min(int64(max(0, d.Use.Leases)), 99)
		p = 1000*(99-replicasBefore) + 2*scale(free(d), 499)
	} else {
		p = 2 * scale(fill(s, d), 49_999)
	}
	if d.Use.ReleasingLeases == 0 {
		p++
	}
	return p
}

// fraction is the fraction of ÷ all.
type fraction struct{ of, all int64 }

// scale converts a fraction to a number from 0 to steps. A fraction above 1 counts as 1.
func scale(p fraction, steps int64) int64 {
	switch {
	case p.of <= 0:
		return 0
	case p.of >= p.all:
		return steps
	}
	return cluster.MulDiv(p.of, steps, p.all)
}

func free(d *cluster.Device) fraction {
	if d.Memory <= 0 { // the memory of the device is not known
		return fraction{int64(d.FreeMilli()), int64(cluster.Whole)}
	}
	return fraction{int64(d.Free()), int64(d.Memory)}
}

// fill returns the fraction that the shape would take of what is free of the device. For a
// shape that takes whole devices, all devices are equal.
func fill(s *cluster.Shape, d *cluster.Device) fraction {
	of, all := s.FreeFraction(d)
	return fraction{of, all}
}
