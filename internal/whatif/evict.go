package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// Bounds of the search for victims.
const (
	mostNear    = 10 // nodes of which the workloads are considered, nearest miss first
	mostSingles = 10
	mostPairs   = 8
	mostVictims = 16 // workloads among which more than two victims are looked for
)

// evictor looks for the fewest workloads that would free enough room if they were removed.
type evictor struct {
	lab      *lab
	workload *workload
	found    *finder
}

// rivals returns the workloads that hold the room, the cheapest to remove first: preemptible
// before firm, then by lower tier, lower priority, and fewer devices.
func (e *evictor) rivals() []*cluster.Job {
	seen := map[string]bool{e.workload.id: true}
	var out []*cluster.Job
	add := func(j *cluster.Job) {
		if !seen[j.ID] {
			seen[j.ID] = true
			out = append(out, j)
		}
	}
	if b := e.workload.attempt.Before; b != nil {
		if b.Cure&engine.Evict == 0 {
			return nil
		}
		for _, j := range e.workload.state.Jobs() {
			if j.Queue == e.workload.job().Queue && j.Placed() > 0 {
				add(j)
			}
		}
	}
	near := 0
	for i := range e.workload.attempt.Nearest {
		m := &e.workload.attempt.Nearest[i]
		n := e.workload.state.Node(m.Node)
		if m.Rejection.Cure&engine.Evict == 0 || n == nil {
			continue
		}
		for _, t := range n.Tasks {
			add(t.Job)
		}
		if near++; near == mostNear {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b *cluster.Job) int {
		return cmp.Or(
			cmp.Compare(preemptible(b), preemptible(a)),
			cmp.Compare(e.tier(b).Rank(), e.tier(a).Rank()),
			cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(heldDevices(a), heldDevices(b)),
			strings.Compare(a.ID, b.ID))
	})
	return out
}

func preemptible(j *cluster.Job) int {
	if j.Preemptible {
		return 1
	}
	return 0
}

func (e *evictor) tier(j *cluster.Job) cluster.Tier {
	if q := e.workload.state.Queue(j.Queue); q != nil {
		return q.Tier
	}
	return cluster.TierStandard
}

// heldDevices is how much the job holds, in thousandths of a device.
func heldDevices(j *cluster.Job) int64 {
	total := int64(0)
	for _, t := range j.Tasks() {
		for _, c := range t.Claims {
			total += int64(c.Milli)
		}
	}
	return total
}

// eviction is the change that removes the jobs permanently: their room is free, and they
// do not compete for it.
func (e *evictor) eviction(jobs ...*cluster.Job) *change {
	c := &change{kind: wire.EvictOthers, cost: 30}
	var names, ids []string
	for i, j := range jobs {
		held := heldDevices(j)
		c.cost += int(held / 1000)
		if !j.Preemptible {
			c.cost += 40
		}
		if i > 0 {
			c.cost += 50
		}
		names = append(names, fmt.Sprintf("%s (%s)", j.ID, e.holdingText(j)))
		ids = append(ids, j.ID)
	}
	c.text = "with " + explain.List(names, 3) + " removed"
	c.apply = func(s *cluster.State) error {
		for _, id := range ids {
			if err := s.Apply(cluster.JobGone{Job: id}); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// holdingText is the tier of a rival and what it holds: "Scavenger, 2 devices on gpu-17".
func (e *evictor) holdingText(j *cluster.Job) string {
	var nodes []string
	for _, t := range j.Tasks() {
		if t.Node != nil && !slices.Contains(nodes, t.Node.Name) {
			nodes = append(nodes, t.Node.Name)
		}
	}
	text := string(e.tier(j))
	if !j.Preemptible {
		text += ", not preemptible"
	}
	if held := heldDevices(j); held > 0 {
		text += ", " + quantity.Of(engine.Quantity{Value: held, Unit: engine.Devices}, 1)
	}
	if len(nodes) > 0 {
		text += " on " + explain.List(nodes, 2)
	}
	return text
}

// evict tries to remove one workload, then two, then as few as possible of more.
func (e *evictor) evict() {
	rivals := e.rivals()
	if len(rivals) == 0 {
		return
	}
	helped := 0
	for i, j := range rivals {
		// Once one helps, only other preemptible workloads are worth naming.
		if i == mostSingles || helped == 2 || helped == 1 && !j.Preemptible || e.lab.spent() {
			break
		}
		c := e.eviction(j)
		v := e.found.try(c)
		switch {
		case v.fits:
			helped++
		case i == 0:
			e.found.addFailure(c, v)
		}
	}
	if helped > 0 || len(rivals) == 1 {
		return
	}
	pairs := 0
	for i := 1; i < len(rivals); i++ {
		for j := range i {
			if pairs == mostPairs || e.lab.spent() {
				break
			}
			pairs++
			if e.found.try(e.eviction(rivals[j], rivals[i])).fits {
				return
			}
		}
	}
	e.evictSeveral(rivals[:min(len(rivals), mostVictims)])
}

// evictSeveral removes all of the workloads, and then keeps every workload that need not be
// removed, the most expensive first. If the tries are used up, it stops there: more workloads
// are then removed than are needed.
func (e *evictor) evictSeveral(gone []*cluster.Job) {
	if len(gone) < 3 || !e.lab.try(e.eviction(gone...)).fits {
		return
	}
	for i := len(gone) - 1; i >= 0 && !e.lab.spent(); i-- {
		fewer := slices.Delete(slices.Clone(gone), i, i+1)
		if len(fewer) > 0 && e.lab.try(e.eviction(fewer...)).fits {
			gone = fewer
		}
	}
	e.found.addHelp(e.eviction(gone...))
}
