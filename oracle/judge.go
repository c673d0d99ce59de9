package oracle

import (
	"fmt"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// Verdict is how the engine did with one pending job.
type Verdict struct {
	Number   int
	Job      string
	TooLarge bool // to try everything: nothing else is said
	// Relevant: plain allocation does not do it, and there is a way.
	Relevant, Placed, Minimal bool
	Best                      string // the cheapest way, where the engine missed it
	Why                       string // where the engine missed it: what it would have taken
	Illegal                   []Violation
}

// Engine has the standard profile with no adapter but the kind's own: each is judged alone.
func Engine(k Kind) (*engine.Engine, error) {
	var out engine.Profile
	for _, c := range standard.Profile() {
		adapter := c.Name == string(Consolidate) || c.Name == string(Reclaim) || c.Name == string(Preempt)
		if !adapter || c.Name == string(k) {
			out = append(out, c)
		}
	}
	return engine.New(standard.Registry(), out)
}

// Judge lets the engine decide the case, and holds every pending job's turn
// against what could have been done.
func (c *Case) Judge(e *engine.Engine) ([]Verdict, error) {
	before := c.State.Clone()
	s := e.Open(c.State, engine.Options{Now: c.Now})
	out, err := s.Run()
	s.Close()
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", c.Kind, c.Number, err)
	}
	g := newGame(c.Kind, before, c.Now)
	var all []Verdict
	for _, t := range turns(out) {
		v := g.foresee(t)
		v.Number, v.Job = c.Number, t.job
		if v.Relevant && len(t.placed) == 0 {
			v.Why = g.diagnose(t, v.best)
		}
		broken := len(g.broken)
		p := g.play(t)
		v.Illegal = g.broken[broken:]
		v.Placed = p.stands
		v.Minimal = p.stands && !v.best.cost.less(p.cost)
		if v.Relevant && !v.Minimal {
			v.Best = fmt.Sprintf("%v %s", v.best.cost, list(g.promised.members(v.best.victims)))
		}
		if v.Relevant && v.Placed && !v.Minimal {
			v.Why = v.excess(p.cost)
		}
		if v.Relevant && !v.Placed && t.refusal != nil && t.refusal.Permanent {
			v.Why += ", and it is refused for good"
		}
		all = append(all, v.Verdict)
	}
	return all, nil
}

// foreseen is what could be done before the engine's moves are made.
type foreseen struct {
	Verdict
	best plan
}

// excess puts a plan that costs too much into a class.
func (v *foreseen) excess(spent cost) string {
	for i, tier := range []string{"Guaranteed ", "Standard ", "Scavenger ", ""} {
		if more := spent[i] - v.best.cost[i]; more > 0 {
			return fmt.Sprintf("%d %stasks too many for a minimum of %d", more, tier, len(v.best.minimum))
		}
	}
	return ""
}

func (g *game) foresee(t *turn) (v foreseen) {
	b := g.promised
	b.steps = maxSteps
	j := b.find(t.job)
	if j == nil || b.stands(j, 0) {
		return v // surplus has no right to room
	}
	var err error
	if g.kind == Allocate {
		v.Relevant, err = b.needsThought(j)
	} else if free, e := b.allocates(j); free || e != nil {
		err = e
	} else {
		v.best, v.Relevant, err = b.cheapest(g.kind, j, ^uint64(0))
	}
	v.TooLarge = err != nil
	return v
}
