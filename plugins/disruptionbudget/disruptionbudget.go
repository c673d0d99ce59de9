// Package disruptionbudget protects tasks from being evicted or moved if fewer tasks would
// keep running than a disruption budget requires.
//
// It does not matter for which job the room is needed. A task that is moved counts as
// missing for a while, like one that is evicted. A task that has ended counts neither as
// running nor as desired. It therefore reduces how many of the remaining tasks may be
// evicted under minAvailable as a number, and not under maxUnavailable as a number. A
// percentage is of the desired tasks that remain.
package disruptionbudget

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DisruptionBudget"

// InBudget is given for a victim that a budget protects.
const InBudget engine.Reason = "VictimInBudget"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: InBudget, Cure: engine.Relax, Phrase: "protected by a disruption budget", Spared: "protected by a disruption budget", Meaning: "If the victim were evicted, fewer tasks would keep running than a disruption budget requires, or fewer are running already. The reason protects a victim and rejects no node."},
}

type plugin struct{ counts counts }

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// OnSessionOpen registers no hook if there are no budgets.
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

// judge protects a victim if any budget that covers it would be violated.
func (c *counts) judge(s cluster.View, v *engine.Victim) engine.Verdict {
	for _, b := range c.covering(s, v.Job) {
		if b.running-len(v.Tasks) < b.Required(b.desired) {
			return engine.Protect(InBudget)
		}
	}
	return engine.NoOpinion
}
