package explain

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Kind says which part of the world a change is made to.
type Kind string

// The kinds of changes.
const (
	AddNodes      Kind = "AddNodes"
	EvictOthers   Kind = "EvictOthers"
	SmallerAsk    Kind = "SmallerRequest"
	LiftCondition Kind = "LiftCondition"
	RaiseLimit    Kind = "RaiseLimit"
	OpenNodes     Kind = "OpenNodes" // that are cordoned or not ready
	// HigherPriority is the workload's own, and Wait is for the clock.
	HigherPriority Kind = "HigherPriority"
	Wait           Kind = "Wait"
)

// change is one thing done to the books before a session is run on them.
type change struct {
	kind Kind
	text string // completes "It would fit …"
	// cost orders what helps: roughly how much of the request, of other people's
	// work or of the purse it takes, in percent.
	cost  int
	apply func(*cluster.State) error
}

// verdict is what a session said about the workload after changes.
type verdict struct {
	fits    bool
	refusal *engine.Refusal
}

// lab tries changes: it applies them, runs a session and undoes both. The budget
// counts tries, never time, so that answers do not depend on the machine.
type lab struct {
	engine  *engine.Engine
	phrases Phrases
	probe   *engine.Engine // for clusters of its own; nil until one is asked about
	end     *cluster.State // what is tried on it is undone
	id      string
	refusal *engine.Refusal
	attempt *engine.Attempt
	tries   int
	budget  int
	now     int64
	claims  *claim
	knobs   []Knob
	at      map[*change]int64    // when a change is tried, where that is not now
	evicted map[*change][]string // who has to go where it fits
	err     error                // the engine failed: nothing that was tried counts
}

// job is the workload in question, as it stands at the end of the simulation.
func (l *lab) job() *cluster.Job { return l.end.Job(l.id) }

// shape is what the task that found no place asks for.
func (l *lab) shape() *cluster.Shape { return l.attempt.Task.Shape }

// spent reports whether no further try is allowed.
func (l *lab) spent() bool { return l.tries >= l.budget || l.err != nil }

// try makes the changes, runs a full session and undoes both: all that is pending
// competes, as it would. A change that cannot be made does not fit.
func (l *lab) try(changes ...*change) verdict { return l.tryAnd(nil, changes...) }

// tryAnd is try, with a look at the State after the session.
func (l *lab) tryAnd(look func(*cluster.State), changes ...*change) verdict {
	if l.spent() {
		return verdict{}
	}
	l.tries++
	mark := l.end.Mark()
	defer func() {
		l.end.Undo(mark)
		l.end.Release(mark)
	}()
	for _, c := range changes {
		if err := c.apply(l.end); err != nil {
			return verdict{}
		}
	}
	now := l.now
	for _, c := range changes {
		now = max(now, l.at[c])
	}
	out, err := run(l.engine, l.end, engine.Options{Now: now})
	if err != nil {
		l.err = err
		return verdict{}
	}
	var v verdict
	for _, r := range out.Refusals {
		if r.Job == l.id {
			v.refusal = r
		}
	}
	v.fits = l.satisfied(l.end.Job(l.id))
	if v.fits && len(changes) == 1 {
		l.evicted[changes[0]] = evictedFor(out.Decisions, l.id)
	}
	if look != nil {
		look(l.end)
	}
	return v
}

// evictedFor are the workloads that have to go for this one.
func evictedFor(decisions []engine.Decision, id string) []string {
	var out []string
	for i := range decisions {
		d := &decisions[i]
		if who := d.Task.Job; d.Action == engine.EvictIt && d.For == id && d.Landing == "" && !slices.Contains(out, who) {
			out = append(out, who)
		}
	}
	return out
}

// satisfied: the minimum has its place; where only surplus was missing, all has.
func (l *lab) satisfied(j *cluster.Job) bool {
	if l.refusal.Surplus {
		return j.Missing() == 0
	}
	return j.Stands()
}

// missing is how many tasks must still find a place.
func (l *lab) missing() int {
	j := l.job()
	alt := &j.Alternatives[l.alternative()]
	if l.refusal.Surplus {
		return max(1, j.Missing())
	}
	if sub := l.short(); sub >= 0 {
		return max(1, l.attempt.Min-l.attempt.Placed)
	}
	if j.Chosen < 0 {
		return alt.Min
	}
	return max(1, alt.Min-j.Placed())
}

// alternative is the form of the job that the attempt was about.
func (l *lab) alternative() int {
	for i := range l.refusal.Attempts {
		if &l.refusal.Attempts[i] == l.attempt {
			if j := l.job(); j.Chosen >= 0 {
				return j.Chosen
			}
			return i
		}
	}
	return 0
}

// rewrite gives the job another request: what runs of it stays where it is, and
// edit may change all that is pending.
func rewrite(s *cluster.State, id string, edit func(*cluster.Job)) error {
	j := s.Job(id)
	if j == nil {
		return fmt.Errorf("no workload %q", id)
	}
	spec := j.Spec()
	edit(&spec)
	return s.Apply(cluster.JobPut{Job: spec})
}

// reshape edits the shape of the job's tasks like the one that found no place.
// Those that run keep theirs.
func (l *lab) reshape(edit func(*cluster.Shape)) func(*cluster.State) error {
	role, alternative := l.attempt.Task.Role, l.alternative()
	return func(s *cluster.State) error {
		running := map[string]bool{}
		for _, t := range s.Job(l.id).Alternatives[alternative].Tasks {
			running[t.Name] = t.Node != nil
		}
		return rewrite(s, l.id, func(j *cluster.Job) {
			for _, t := range j.Alternatives[alternative].Tasks {
				if t.Role == role && !running[t.Name] {
					shape := *t.Shape
					edit(&shape)
					t.Shape = &shape
				}
			}
		})
	}
}

// reshapeAll edits the shape of every task of the job that does not run, in
// every form it may take: conditions on nodes are the whole job's.
func (l *lab) reshapeAll(edit func(*cluster.Shape)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		known := s.Job(l.id).Alternatives
		return rewrite(s, l.id, func(j *cluster.Job) {
			for a := range j.Alternatives {
				for i, t := range j.Alternatives[a].Tasks {
					if known[a].Tasks[i].Node == nil {
						shape := *t.Shape
						edit(&shape)
						t.Shape = &shape
					}
				}
			}
		})
	}
}

// largest finds the highest i in [0, n) for which the change made from it fits;
// the smaller i is, the easier it must be. It returns nil if not even 0 fits,
// with the verdict on that.
func (l *lab) largest(n int, at func(i int) *change) (*change, verdict) {
	if n == 0 {
		return nil, verdict{}
	}
	best := at(0)
	easiest := l.try(best)
	if !easiest.fits {
		return nil, easiest
	}
	low, high := 0, n // low fits, high is not known to
	for high-low > 1 && !l.spent() {
		mid := (low + high) / 2
		if c := at(mid); l.try(c).fits {
			low, best = mid, c
		} else {
			high = mid
		}
	}
	return best, easiest
}
