package oracle

import (
	"fmt"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// Verdict is the judgement about one pending job.
type Verdict struct {
	Number   int
	Job      string
	TooLarge bool // too large to try everything; the fields from Relevant to Minimal are not set
	// Relevant reports that the job cannot simply be placed, and that a plan exists.
	// Minimal reports that no cheaper plan exists than that of the engine.
	Relevant, Placed, Minimal bool
	LastResort                bool   // only the rules of the last resort allow a plan
	Unchecked                 int    // number of rules of the last resort that were too large to check
	Did                       string // the plan of the engine
	Best                      string // the cheapest plan, if the engine did not find it
	Why                       string // why the engine did not find the cheapest plan
	Illegal                   []Violation
}

// Engine returns an engine with the standard profile, from which the plugins that make room
// and are not of the kind are removed. For Costs it adds the plugin with the costs of
// victims.
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

// Judge runs a session of the engine on the case, and compares each turn with the best
// possible plan.
func (c *Case) Judge(e *engine.Engine) ([]Verdict, error) {
	before := c.State.Clone()
	s := e.Open(c.State, engine.Options{Now: c.Now})
	out, err := s.Run()
	s.Close()
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", c.Kind, c.Number, err)
	}
	g := newChecker(c.Kind, before, c.Now)
	var all []Verdict
	for _, t := range turns(out) {
		v := g.verdict(t)
		v.Number, v.Job = c.Number, t.job
		all = append(all, v)
	}
	return all, nil
}

// verdict checks the turn, applies it to the boards and returns the verdict.
func (g *checker) verdict(t *turn) Verdict {
	broken, unchecked := len(g.broken), g.unchecked
	var v Verdict
	p := g.judge(t)
	if p != nil {
		v = g.compare(t, p)
		v.Did = p.plan.String(g.booked)
		g.carryOut(t, p)
		if v.Relevant && !v.Placed && t.refusal != nil && t.refusal.Permanent {
			v.Why += ", and the refusal is permanent"
		}
	}
	v.Illegal, v.Unchecked = g.broken[broken:], g.unchecked-unchecked
	return v
}

// compare compares the turn with the best possible plan, before the turn is applied to the
// boards.
func (g *checker) compare(t *turn, p *turnResult) (v Verdict) {
	j := g.booked.find(t.job)
	if g.booked.hasAnyMinimum(j) {
		return v // no plan is required for surplus
	}
	if g.kind == Allocate {
		relevant, err := g.booked.needsSearch(j)
		placed := len(t.placed) > 0
		return Verdict{Relevant: relevant, TooLarge: err != nil, Placed: placed, Minimal: placed, Why: "few placements of the tasks are possible"}
	}
	var spent *cost
	if p.plan.victims() != 0 {
		spent = &p.plan.cost
	}
	best, found, err := g.better(j, spent, p.last) // the last resort is allowed only if there is no other plan
	if v.LastResort = p.last; spent == nil && !found && err == nil {
		best, found, err = g.better(j, nil, true)
		v.LastResort = found
	}
	if v.TooLarge = err != nil; v.TooLarge {
		return v
	}
	v.Relevant, v.Placed, v.Minimal = found || spent != nil, spent != nil, !found
	if found {
		v.Best = best.String(g.booked)
		if v.Why = g.diagnose(t, best); spent != nil {
			v.Why = spent.excess(best.cost)
		}
	}
	return v
}

// better returns the cheapest plan for the job that costs less than spent or, if spent is
// nil, the cheapest one. If the job fits into the free room, there is no plan.
func (g *checker) better(j *job, spent *cost, last bool) (plan, bool, error) {
	b := g.booked
	b.steps = maxSteps
	if free, err := b.allocates(j); free || err != nil {
		return plan{}, false, err
	}
	return b.cheapest(g.kind, j, spent, last)
}

// relevant reports whether the job is a relevant case of the kind.
func (g *checker) relevant(j *job) bool {
	g.booked.steps = maxSteps
	if g.kind == Allocate {
		needed, err := g.booked.needsSearch(j)
		return needed && err == nil
	}
	best, found, err := g.better(j, nil, false)
	if !found || err != nil {
		return false
	}
	switch g.kind {
	case Combined:
		return g.booked.mixes(&best)
	case Costs:
		return g.costsDecide(j, &best)
	}
	return true
}

// mixes reports whether the plan needs more than one of Consolidate, Reclaim and Preempt.
func (b *board) mixes(p *plan) bool {
	if p.moved != 0 || p.evicted == 0 {
		return p.moved != 0 && p.evicted != 0
	}
	for _, plugin := range []Kind{Reclaim, Preempt} {
		given := map[*task]Kind{}
		for _, t := range b.members(p.evicted) {
			given[t] = plugin
		}
		if b.violation(p, given) == "" {
			return false
		}
	}
	return true
}

// String returns the plan as text, or "" if there is none.
func (p *plan) String(b *board) string {
	if p.request == nil {
		return ""
	}
	return fmt.Sprintf("%+v, evicted: %s, moved: %s, for: %s", p.cost, list(b.members(p.evicted)), list(b.members(p.moved)), list(p.request.minimum))
}
