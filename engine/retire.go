package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// RetirementOrder is a set that had more jobs than desired, with all its jobs: those that were
// retired and those that were kept.
type RetirementOrder struct {
	Set     string   // the name of the set
	Desired int      // how many jobs the set should have
	Jobs    []Ranked // the job that is most worth keeping first
}

// Ranked is one job of a RetirementOrder.
type Ranked struct {
	Job     string // the ID of the job
	Score   Score  // how much it is worth keeping, when it was last compared
	Retired bool   // false: the job is kept
}

// retirement retires jobs of sets that have more jobs than desired.
type retirement struct {
	clerk  *clerk
	finder *finder
}

// run retires jobs of sets that have more jobs than desired, the job that is worth least
// first. Disruption budgets do not apply, because the owner of the set asked for fewer jobs.
// It runs before nominated tasks are bound, so that no task starts and is evicted at once.
func (r *retirement) run(out *Outcome) {
	r.evictRetired(out)
	for _, name := range r.clerk.view.Sets().Excess() {
		stmt := r.clerk.begin()
		order := r.shrink(stmt, name)
		if r.clerk.fault.err != nil {
			stmt.Discard()
			return
		}
		out.Decisions = append(out.Decisions, stmt.Commit()...)
		out.RetirementOrders = append(out.RetirementOrders, order)
	}
}

// shrink retires jobs of the set one by one. The score of a job may depend on the jobs that
// are left, so the jobs are ranked again after each. The order has each job with its score
// when it was last compared.
func (r *retirement) shrink(stmt *Statement, name string) RetirementOrder {
	order := RetirementOrder{Set: name, Desired: r.clerk.view.Sets().Desired(name)}
	for jobs := slices.Clone(r.clerk.view.Sets().Jobs(name)); len(jobs) > order.Desired; {
		line := r.rank(jobs)
		if r.clerk.fault.err != nil {
			break
		}
		worst := line[0]
		worst.Retired = true
		order.Jobs = append(order.Jobs, worst)
		job := r.clerk.view.Job(worst.Job)
		stmt.withdraw(job, true)
		if stmt.retire(job, worst.Score); r.clerk.fault.err != nil {
			break
		}
		if len(line)-1 == order.Desired {
			order.Jobs = append(order.Jobs, line[1:]...)
		}
		jobs = without(jobs, job)
	}
	slices.Reverse(order.Jobs)
	return order
}

// evictRetired evicts tasks that still run of jobs that earlier sessions retired. The earlier
// eviction may not have been carried out.
func (r *retirement) evictRetired(out *Outcome) {
	retired := r.clerk.view.Retired()
	if len(retired) == 0 {
		return
	}
	stmt := r.clerk.begin()
	for _, j := range retired {
		if j.Placed() > 0 {
			stmt.withdraw(j, true)
			stmt.evictAll(j, r.rank([]*cluster.Job{j})[0].Score)
		}
	}
	if r.clerk.fault.err != nil {
		stmt.Discard()
		return
	}
	out.Decisions = append(out.Decisions, stmt.Commit()...)
}

// rank scores the jobs and returns them in the order in which they are retired: the lowest
// score first, then the newest, then by place, then by ID. A model on Kubernetes and the same
// model in a manifest have jobs of different IDs, but of the same places. It sorts the list that
// it is given.
func (r *retirement) rank(jobs []*cluster.Job) []Ranked {
	slices.SortFunc(jobs, func(a, b *cluster.Job) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), comparePlaces(a, b), strings.Compare(a.ID, b.ID))
	})
	out := make([]Ranked, len(jobs))
	for i, j := range jobs {
		out[i].Job = j.ID
		for k := range r.clerk.hooks.instanceScores {
			if h := &r.clerk.hooks.instanceScores[k]; h.profiles.decide(j) {
				out[i].Score.add(r.clerk.fault, h.plugin, h.weight, h.fn(j))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Ranked) int { return cmp.Compare(a.Score.Total, b.Score.Total) })
	return out
}

// comparePlaces orders jobs by their places. Jobs without a node are first.
func comparePlaces(a, b *cluster.Job) int {
	nodeA, deviceA := placeOf(a)
	nodeB, deviceB := placeOf(b)
	return cmp.Or(strings.Compare(nodeA, nodeB), cmp.Compare(deviceA, deviceB))
}

// placeOf returns the node and the first device of the first task of the job that is on a node;
// "" and -1 if there is none.
func placeOf(j *cluster.Job) (node string, device int) {
	for _, t := range j.Tasks() {
		if t.Node == nil {
			continue
		}
		if len(t.Claims) == 0 {
			return t.Node.Name, -1
		}
		return t.Node.Name, t.Claims[0].Device
	}
	return "", -1
}

// add adds the score of one plugin.
func (c *Score) add(x *fault, plugin string, weight int64, score float64) {
	c.Total += x.points(plugin, weight, score)
	c.Weight += weight
	c.Parts = append(c.Parts, ScorePart{Plugin: plugin, Score: score, Weight: weight})
}

// retire removes the job from its set permanently and evicts its running tasks.
func (st *Statement) retire(j *cluster.Job, worth Score) {
	st.logOperation(operation{kind: retired, at: st.position(), job: j, worth: &worth})
	st.tx.Retire(j)
	st.evictAll(j, worth)
}

func (st *Statement) evictAll(j *cluster.Job, worth Score) {
	for _, t := range j.Tasks() {
		if !t.Runs() {
			continue
		}
		if err := st.Evict(t, "", ScaledDown); err != nil {
			st.clerk.fault.fail("engine", "scaling down: %v", err)
			return
		}
		st.log[len(st.log)-1].worth = &worth
	}
}
