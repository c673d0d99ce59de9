package placementscorer

import "github.com/berth-project/berth/cluster"

// replicasBeside counts the replicas on the node other than the job: those of its own Set, and
// all others. Tasks that are releasing do not count.
func replicasBeside(j *cluster.Job, n *cluster.Node) (same, others int) {
	var last *cluster.Job
	for _, t := range n.Tasks { // sorted by ID, so that tasks of one job are adjacent
		o := t.Job
		if o == last || !inUse(t) || !t.Shape.ServesModel() || o.ID == j.ID {
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

// replicasBefore is replicasBeside for a task of the job that is not placed yet. Other tasks
// of the job on the node count as one more replica in others.
func replicasBefore(j *cluster.Job, n *cluster.Node) (same, others int) {
	same, others = replicasBeside(j, n)
	for _, t := range n.Tasks {
		if t.Job.ID == j.ID && inUse(t) {
			return same, others + 1
		}
	}
	return same, others
}

// replicasOn counts all replicas on the node, of any model.
func replicasOn(n *cluster.Node) int {
	count := 0
	var last *cluster.Job
	for _, t := range n.Tasks {
		if t.Job != last && inUse(t) && t.Shape.ServesModel() {
			last = t.Job
			count++
		}
	}
	return count
}

// spreadValue returns the value, from 0 to 1, of a node with so many other replicas. The
// conversions prevent fused multiply-add, which rounds differently on some machines.
func spreadValue(same, others int, device float64) float64 {
	most, least := 1/float64(1+same), 1/float64(2+same)
	within := float64(0.85/float64(1+others)) + float64(0.15*device)
	return least + float64((most-least)*within)
}

// exclusivity returns how exclusively the task would have its devices, from 0 to 1.
func exclusivity(t *cluster.Task) float64 {
	if len(t.Claims) == 0 {
		return 1
	}
	sum := 0.0
	for i := range t.Claims {
		leases := t.Node.Devices[t.Claims[i].Device].Use.Leases
		if inUse(t) {
			leases--
		}
		sum += 1 / float64(1+max(0, leases))
	}
	return sum / float64(len(t.Claims))
}
