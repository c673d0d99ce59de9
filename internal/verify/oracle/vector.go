package oracle

import "github.com/berth-project/berth/cluster"

// The resources of cases, as indices of a vector.
const (
	cpu = iota
	memory
	gpu
	resources // how many resources there are
)

var resourceNames = [resources]string{cluster.CPU, cluster.Memory, cluster.DefaultDeviceResource}

// vector has an amount of each resource. The unit of gpu is a thousandth of a device.
type vector [resources]int64

// plus returns the sum of v and sign times o.
func (v vector) plus(o vector, sign int64) vector {
	for r := range v {
		v[r] += sign * o[r]
	}
	return v
}

// isWithin reports whether no amount of v is larger than that of o.
func (v vector) isWithin(o vector) bool {
	for r := range v {
		if v[r] > o[r] {
			return false
		}
	}
	return true
}

// vectorOf converts a list. A resource that is not in the list has the amount absent.
func vectorOf(list cluster.Resources, absent int64) vector {
	var v vector
	for r := range v {
		v[r] = absent
		for _, a := range list {
			if a.Name == resourceNames[r] {
				v[r] = a.Value
			}
		}
	}
	return v
}
