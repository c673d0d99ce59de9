package placementscorer

import "github.com/berth-project/berth/cluster"

// crowd counts the replicas on the node besides the job: of its own set, and of
// other models. Who is leaving does not count.
func crowd(j *cluster.Job, n *cluster.Node) (same, others int) {
	var last *cluster.Job
	for _, t := range n.Tasks { // by ID, so that those of one job stand together
		o := t.Job
		if o == last || !booked(t) || !t.Shape.Served() || o.ID == j.ID {
			continue
		}
		if last = o; o.Set.Name != "" && o.Set.Name == j.Set.Name {
			same++
		} else {
			others++
		}
	}
	return same, others
}

// seclusion is what a node with so much company is worth, from 0 to 1.
func seclusion(same, others int) float64 {
	most, least := 1/float64(1+same), 1/float64(2+same)
	return least + (most-least)/float64(1+others)
}

// solitude is how much the task would have its devices to itself, from 0 to 1.
func solitude(t *cluster.Task) float64 {
	if len(t.Claims) == 0 {
		return 1
	}
	sum := 0.0
	for i := range t.Claims {
		leases := t.Node.Devices[t.Claims[i].Device].Use.Leases
		if booked(t) {
			leases--
		}
		sum += 1 / float64(1+max(0, leases))
	}
	return sum / float64(len(t.Claims))
}
