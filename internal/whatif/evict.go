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
	mostSingles = 10 // workloads that are removed alone
	mostPairs   = 8  // pairs of workloads that are removed together
	mostVictims = 16 // workloads of which more than two are removed together
)

// evictor looks for the fewest workloads that would free enough room if they were removed.
type evictor struct {
	lab      *lab
	workload *workload
	found    *finder
}

// rivals returns the workloads that are removed in tries. Other replicas of the job's own set
// are not: if one is removed, the set has fewer replicas. If the job was rejected before any
// node was considered, these are the workloads with a placed task in the queue that the
// rejection is about and in the queues below it; there are none if neither evicting nor waiting
// can cure the rejection. Otherwise they are the workloads on the nearest
// nodes of which evicting cures the rejection. The cheapest to remove are first: preemptible
// before firm, then by weaker tier, lower priority, fewer devices, and ID.
func (e *evictor) rivals() []*cluster.Job {
	seen := map[string]bool{e.workload.id: true}
	own := e.workload.job().Set.Name
	var out []*cluster.Job
	add := func(j *cluster.Job) {
		if isSibling := own != "" && j.Set.Name == own; !seen[j.ID] && !isSibling {
			seen[j.ID] = true
			out = append(out, j)
		}
	}
	if b := e.workload.attempt.Before; b != nil {
		if b.Cure&(engine.Evict|engine.Wait) == 0 {
			return nil
		}
		queue := cmp.Or(b.Queue, e.workload.job().Queue)
		for _, j := range e.workload.state.Jobs() {
			if j.Placed() > 0 && explain.IsBelow(e.workload.state, j.Queue, queue) {
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
			cmp.Compare(explain.HeldDevices(a), explain.HeldDevices(b)),
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

// eviction returns the change that removes the jobs permanently: their room becomes free, and
// they do not compete for it. A replica is not removed by itself, because its set would replace
// it: the set gets fewer replicas instead, and is removed if none is left.
func (e *evictor) eviction(jobs ...*cluster.Job) *change {
	c := &change{kind: wire.EvictOthers, cost: 30, removes: len(jobs)}
	var names, briefs, removed []string
	replicas := map[string]int{} // how many replicas of a set are removed
	for i, j := range jobs {
		held := explain.HeldDevices(j)
		c.cost += int(held / 1000)
		if !j.Preemptible {
			c.cost += 40
		}
		if i > 0 {
			c.cost += 50
		}
		if set := j.Set.Name; set == "" {
			names, briefs = append(names, fmt.Sprintf("%s (%s)", j.ID, e.holdingText(j))), append(briefs, j.ID)
			removed = append(removed, j.ID)
		} else if replicas[set]++; replicas[set] == 1 {
			c.scaled = append(c.scaled, set)
		}
	}
	desired := map[string]int{}
	for _, set := range slices.Clone(c.scaled) {
		has := e.workload.state.View().Sets().Desired(set)
		switch desired[set] = max(0, has-replicas[set]); desired[set] {
		case 0:
			names, briefs = append(names, set), append(briefs, set)
			removed = append(removed, set)
			c.scaled = slices.DeleteFunc(c.scaled, func(s string) bool { return s == set })
		default:
			names = append(names, fmt.Sprintf("%d of the %d replicas of %s", replicas[set], has, set))
			briefs = append(briefs, names[len(names)-1])
		}
	}
	c.text, c.brief = "with "+explain.List(names, 3)+" removed", "remove "+explain.List(briefs, 3)
	for _, id := range removed {
		c.arguments = append(c.arguments, "--remove", id)
	}
	c.apply = func(s *cluster.State) error {
		for _, id := range removed {
			if err := Remove(s, id); err != nil {
				return err
			}
		}
		for _, set := range c.scaled {
			if err := s.Apply(cluster.SetScaled{Set: set, Desired: desired[set]}); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// Remove removes the job, or all replicas of the set, with the tasks. The tasks of an open job
// are reported one at a time, and do not leave with the job.
func Remove(s *cluster.State, id string) error {
	for _, replica := range slices.Clone(s.View().Sets().Jobs(id)) {
		if err := s.Apply(cluster.JobGone{Job: replica.ID}); err != nil {
			return err
		}
	}
	if s.Job(id) == nil {
		return nil
	}
	if j := s.Job(id); j != nil && j.Open {
		for _, t := range slices.Clone(j.Alternatives[0].Tasks) {
			if err := s.Apply(cluster.TaskGone{Task: t.Ref()}); err != nil {
				return err
			}
		}
	}
	return s.Apply(cluster.JobGone{Job: id})
}

// holdingText returns the tier of the job and what it holds: "Scavenger, 2 devices on gpu-17".
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
	if held := explain.HeldDevices(j); held > 0 {
		text += ", " + quantity.Of(engine.Quantity{Value: held, Unit: engine.Devices}, 1)
	}
	if len(nodes) > 0 {
		text += " on " + explain.List(nodes, 2)
	}
	return text
}

// evict tries to remove each of the first mostSingles rivals alone. If none of them is enough,
// it tries mostPairs pairs, until one is enough. If none is, it tries to remove the first
// mostVictims rivals together, and then as few of these as possible.
func (e *evictor) evict() {
	rivals := e.rivals()
	if len(rivals) == 0 {
		return
	}
	helped := 0
	for i, j := range rivals {
		// At most two workloads are reported, and the second only if it is preemptible. The
		// preemptible ones are first, so none follows a firm one.
		if i == mostSingles || helped == 2 || helped == 1 && !j.Preemptible || e.lab.noTriesLeft() {
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
			if pairs == mostPairs || e.lab.noTriesLeft() {
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

// evictSeveral tries to remove all of the workloads. If that helps, it tries for each of them,
// the most expensive first, whether it can be left out. If the tries are used up, the change
// may remove more workloads than are needed.
func (e *evictor) evictSeveral(removed []*cluster.Job) {
	best := e.eviction(removed...)
	if len(removed) < 3 || !e.lab.try(best).fits {
		return
	}
	for i := len(removed) - 1; i >= 0 && !e.lab.noTriesLeft(); i-- {
		fewer := slices.Delete(slices.Clone(removed), i, i+1)
		if len(fewer) == 0 {
			continue
		}
		if c := e.eviction(fewer...); e.lab.try(c).fits {
			removed, best = fewer, c
		}
	}
	e.found.addHelp(best)
}
