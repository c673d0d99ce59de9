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

// company is the crowd that a task of the job would find: others of its own tasks,
// too, are there before it.
func company(j *cluster.Job, n *cluster.Node) (same, others int) {
	same, others = crowd(j, n)
	for _, t := range n.Tasks {
		if t.Job.ID == j.ID && booked(t) {
			return same, others + 1
		}
	}
	return same, others
}

// guests counts all replicas on the node, whatever they are of.
func guests(n *cluster.Node) int {
	count := 0
	var last *cluster.Job
	for _, t := range n.Tasks {
		if t.Job != last && booked(t) && t.Shape.Served() {
			last = t.Job
			count++
		}
	}
	return count
}

// seclusion is what a node with so much company is worth, from 0 to 1. Conversions
// keep machines that would fuse a product and a sum from rounding differently.
func seclusion(same, others int, device float64) float64 {
	most, least := 1/float64(1+same), 1/float64(2+same)
	within := float64(0.85/float64(1+others)) + float64(0.15*device)
	return least + float64((most-least)*within)
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
