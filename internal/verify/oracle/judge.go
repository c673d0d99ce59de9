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
	LastResort                bool   // only the last resort allows a plan
	Unchecked                 int    // rules of the last resort that were too large to judge
	Did                       string // the plan that was carried out
	Best                      string // the cheapest way, where the engine missed it
	Why                       string // where the engine missed it: what it would have taken
	Illegal                   []Violation
}

// Engine has the standard profile with no means to make room but those of the kind, and
// with the plugin that says what victims cost where the kind is about that.
func Engine(k Kind) (*engine.Engine, error) {
	var out engine.Profile
	for _, c := range standard.Profile() {
		if _, means := reasons[Kind(c.Name)]; !means || k.has(Kind(c.Name)) {
			out = append(out, c)
		}
	}
	registry := standard.Registry()
	if k == Costs {
		if err := registry.RegisterPluginBuilder(string(Costs), func(engine.Arguments) (engine.Plugin, error) { return costs{}, nil }); err != nil {
			return nil, err
		}
		out = append(out, engine.PluginConfig{Name: string(Costs)})
	}
	return engine.New(registry, out)
}

// Judge lets the engine decide the case, and compares every pending job's turn with
// what could have been done.
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
		v := g.verdict(t)
		v.Number, v.Job = c.Number, t.job
		all = append(all, v)
	}
	return all, nil
}

// verdict plays the turn and says how the engine did.
func (g *game) verdict(t *turn) Verdict {
	broken, unchecked := len(g.broken), g.unchecked
	var v Verdict
	p := g.judge(t)
	if p != nil {
		v = g.compare(t, p)
		v.Did = p.plan.String(g.promised)
		g.carryOut(t, p)
		if v.Relevant && !v.Placed && t.refusal != nil && t.refusal.Permanent {
			v.Why += ", and it is refused for good"
		}
	}
	v.Illegal, v.Unchecked = g.broken[broken:], g.unchecked-unchecked
	return v
}

// compare says what could have been done instead, before the moves of the turn are made.
func (g *game) compare(t *turn, p *played) (v Verdict) {
	j := g.promised.find(t.job)
	if g.promised.standsIn(j) {
		return v // surplus has no right to room
	}
	if g.kind == Allocate {
		relevant, err := g.promised.needsThought(j)
		placed := len(t.placed) > 0
		return Verdict{Relevant: relevant, TooLarge: err != nil, Placed: placed, Minimal: placed, Why: "the tasks fit in few arrangements"}
	}
	var spent *cost
	if p.plan.victims() != 0 {
		spent = &p.plan.cost
	}
	best, found, err := g.better(j, spent, p.last) // that there is no other plan is one of the rules of the last resort
	if v.LastResort = p.last; spent == nil && !found && err == nil {
		best, found, err = g.better(j, nil, true)
		v.LastResort = found
	}
	if v.TooLarge = err != nil; v.TooLarge {
		return v
	}
	v.Relevant, v.Placed, v.Minimal = found || spent != nil, spent != nil, !found
	if found {
		v.Best = best.String(g.promised)
		if v.Why = g.diagnose(t, best); spent != nil {
			v.Why = spent.excess(best.cost)
		}
	}
	return v
}

// better is a plan that the job could have had instead of one with this cost, or at all;
// there is none where the job fits as things are.
func (g *game) better(j *job, spent *cost, last bool) (plan, bool, error) {
	b := g.promised
	b.steps = maxSteps
	if free, err := b.allocates(j); free || err != nil {
		return plan{}, false, err
	}
	return b.cheapest(g.kind, j, spent, last)
}

// relevant reports whether the job would need what the kind is about.
func (g *game) relevant(j *job) bool {
	g.promised.steps = maxSteps
	if g.kind == Allocate {
		thought, err := g.promised.needsThought(j)
		return thought && err == nil
	}
	best, found, err := g.better(j, nil, false)
	if !found || err != nil {
		return false
	}
	switch g.kind {
	case Combined:
		return g.promised.mixes(&best)
	case Costs:
		return g.costsDecide(j, &best)
	}
	return true
}

// mixes reports whether victims of the plan leave for more than one purpose.
func (b *board) mixes(p *plan) bool {
	if p.moved != 0 || p.evicted == 0 {
		return p.moved != 0 && p.evicted != 0
	}
	for _, plugin := range []Kind{Reclaim, Preempt} {
		given := map[*task]Kind{}
		for _, t := range b.members(p.evicted) {
			given[t] = plugin
		}
		if b.objects(p, given) == "" {
			return false
		}
	}
	return true
}

// String shows the plan; "" where there is none.
func (p *plan) String(b *board) string {
	if p.request == nil {
		return ""
	}
	return fmt.Sprintf("%+v, evicted: %s, moved: %s, for: %s", p.cost, list(b.members(p.evicted)), list(b.members(p.moved)), list(p.request.minimum))
}
