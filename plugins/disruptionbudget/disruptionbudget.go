// Package disruptionbudget keeps tasks from being evicted or moved where too few
// would be left running of those that a budget is about.
//
// It counts and refuses to know who asks for the room. A task that moves is gone
// for a while like any other. Tasks that fail or end by themselves are nobody's
// eviction, but once they are missing, the rest is bounded all the same.
package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DisruptionBudget"

// InBudget is given for a victim that a budget keeps.
const InBudget engine.Reason = "VictimInBudget"

// reasons documents what the plugin says about victims.
var reasons = []engine.ReasonDoc{
	{Reason: InBudget, Cure: engine.Relax, Phrase: "a disruption budget keeps it", Spared: "that a disruption budget keeps", Meaning: "With what would have to go, fewer tasks would be left running than a disruption budget asks for, or there are fewer already. It spares a victim and turns no node down."},
}

type plugin struct{ counts counts }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers nothing where there are no budgets.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	if len(s.View.Budgets()) == 0 {
		return
	}
	judge := func(v *engine.Victim) engine.Verdict { return p.counts.judge(s.View, v) }
	veto := func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return judge }
	s.Hooks.AddReclaimable(veto)
	s.Hooks.AddPreemptable(veto)
	s.Hooks.AddMovable(veto)
	for _, p := range [...]engine.Purpose{engine.Reclaim, engine.Preempt, engine.Move} {
		s.Hooks.NarrowVictims(p, engine.NoClass)
	}
}

// judge spares a victim that any budget needs.
func (c *counts) judge(s cluster.View, v *engine.Victim) engine.Verdict {
	for _, b := range c.of(s, v.Job) {
		if b.running-len(v.Tasks) < b.Required(b.desired) {
			return engine.Protect(InBudget)
		}
	}
	return engine.NoOpinion
}
