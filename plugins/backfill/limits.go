package backfill

import "github.com/berth-project/berth/cluster"

// totals is what limits depend on.
type totals struct {
	devices int // of the cluster
	largest int // the most devices of a node
}

// totals returns the totals of the cluster.
func (p *plugin) totals() totals {
	if p.cluster.devices == 0 {
		for _, n := range p.session.View.Nodes() {
			p.cluster.devices += len(n.Devices)
			p.cluster.largest = max(p.cluster.largest, len(n.Devices))
		}
	}
	return p.cluster
}

// spent reports whether the earmarks of other jobs keep so many devices idle that the job's may keep none.
func (p *plugin) spent(j *cluster.Job) bool {
	if p.kept < 0 {
		p.kept = 0
		for _, o := range cluster.EarmarksOf(p.session.View).Jobs() {
			p.kept += p.keptIdle(o.Earmarked)
		}
	}
	others := p.kept - p.keptIdle(j.Earmarked)
	return others > 0 && float64(others) >= p.idle*float64(p.totals().devices)
}

// keptIdle returns how many devices the earmark keeps idle now. A node of which no device is idle
// yet counts as one, unless one task holds all of it: when that task ends, the job starts.
func (p *plugin) keptIdle(e *cluster.Earmarked) (sum int) {
	if e == nil {
		return 0
	}
	for i := range e.Rooms {
		n := p.session.View.Node(e.Rooms[i].Node)
		if n == nil {
			continue
		}
		if idle := e.Rooms[i].Devices - newLack(n, &e.Rooms[i]).devices; idle > 0 || len(n.Tasks) > 1 {
			sum += min(max(idle, 1), e.Rooms[i].Devices)
		}
	}
	return sum
}

func earmarkedDevices(e *cluster.Earmarked) (sum int) {
	if e == nil {
		return 0
	}
	for i := range e.Rooms {
		sum += e.Rooms[i].Devices
	}
	return sum
}
