package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Ranking is a set of which some had to go: who went, who stayed, and what each
// was worth, those worth most first.
type Ranking struct {
	Set     string
	Desired int
	Jobs    []Ranked
}

// Ranked is one job of a ranking.
type Ranked struct {
	Job     string // its ID
	Score   Score  // what it is worth to keep
	Retired bool
}

// retirement takes jobs out of sets that have more of them than are desired.
type retirement struct {
	clerk  *clerk
	finder *finder
}

// run takes jobs out of sets that have more of them than are desired, those
// worth least first. No budget is asked: whoever owns the set wants fewer. It
// comes before promises are kept, so that nobody starts only to be told to go.
func (r *retirement) run(out *Outcome) {
	r.evictRetired(out)
	for _, name := range r.clerk.view.Sets().Excess() {
		stmt := r.clerk.begin()
		ranking := r.shrink(stmt, name)
		if r.clerk.fault.err != nil {
			stmt.Discard()
			return
		}
		out.Decisions = append(out.Decisions, stmt.Commit()...)
		out.Rankings = append(out.Rankings, ranking)
	}
}

// shrink retires jobs of the set one by one. What a job is worth may depend on
// those that are left, so they are ranked again each time; each is shown with what
// it was worth when last compared.
func (r *retirement) shrink(stmt *Statement, name string) Ranking {
	ranking := Ranking{Set: name, Desired: r.clerk.view.Sets().Desired(name)}
	for jobs := slices.Clone(r.clerk.view.Sets().Jobs(name)); len(jobs) > ranking.Desired; {
		line := r.rank(jobs)
		if r.clerk.fault.err != nil {
			break
		}
		goes := line[0]
		goes.Retired = true
		ranking.Jobs = append(ranking.Jobs, goes)
		job := r.clerk.view.Job(goes.Job)
		stmt.withdraw(job, true)
		if stmt.retire(job, goes.Score); r.clerk.fault.err != nil {
			break
		}
		if len(line)-1 == ranking.Desired {
			ranking.Jobs = append(ranking.Jobs, line[1:]...)
		}
		jobs = without(jobs, job)
	}
	slices.Reverse(ranking.Jobs)
	return ranking
}

// evictRetired evicts what still runs of jobs that were retired before: whoever
// was to see to it may have died before it was done.
func (r *retirement) evictRetired(out *Outcome) {
	stmt := r.clerk.begin()
	for _, j := range r.clerk.view.Retired() {
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

// rank says what each job is worth to keep, the first to go first:
// lowest sum, then newest, then by ID. It sorts the list that it is given.
func (r *retirement) rank(jobs []*cluster.Job) []Ranked {
	slices.SortFunc(jobs, func(a, b *cluster.Job) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
	})
	out := make([]Ranked, len(jobs))
	for i, j := range jobs {
		out[i].Job = j.ID
		for _, h := range r.clerk.hooks.instanceScores {
			out[i].Score.add(r.clerk.fault, h.plugin, h.weight, h.fn(j))
		}
	}
	slices.SortStableFunc(out, func(a, b Ranked) int { return cmp.Compare(a.Score.Total, b.Score.Total) })
	return out
}

// add counts one more part.
func (c *Score) add(x *fault, plugin string, weight int64, score float64) {
	c.Total += x.points(plugin, weight, score)
	c.Weight += weight
	c.Parts = append(c.Parts, Part{Plugin: plugin, Score: score, Weight: weight})
}

// retire has the job go for good: it is in no set any more, and what runs of it is evicted.
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
