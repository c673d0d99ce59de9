// Package disruptionbudget protects a victim if, without its tasks, fewer tasks would run
// than a disruption budget requires. It protects victims of every purpose: reclaim, preempt
// and move. A task that moves does not run until it is placed on its new node.
//
// For each budget, the plugin counts the tasks of the jobs that the budget covers. Running
// tasks are those that are assumed or bound. Desired tasks are all tasks that have not
// ended; tasks that were never placed count. With minAvailable, that many tasks must run.
// With maxUnavailable, at most that many of the desired tasks may not run. Percentages are
// percentages of the desired tasks.
//
// If a running task ends, both counts fall by one. Under minAvailable as a number, one task
// fewer may then be evicted. Under maxUnavailable as a number, nothing changes.
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
	{Reason: InBudget, Cure: engine.Relax, Phrase: "protected by a disruption budget", Protects: "protected by a disruption budget", Meaning: "If the victim were evicted, fewer tasks would keep running than a disruption budget requires, or fewer are running already. The reason protects a victim and rejects no node."},
}

type plugin struct {
	counts counts
	view   cluster.View
	judges bool // whether hooks are registered
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (*plugin) Name() string                { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

// OnSessionOpen registers the hooks, unless there are no budgets. The hooks only protect
// victims, and the verdict does not depend on the job for which a victim would be evicted.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	if p.view, p.judges = s.View, len(s.View.Budgets()) > 0; !p.judges {
		return
	}
	judge := func(v *engine.Victim) engine.Verdict { return p.counts.judge(p.view, v) }
	veto := func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return judge }
	s.Hooks.AddReclaimable(veto)
	s.Hooks.AddPreemptable(veto)
	s.Hooks.AddMovable(veto)
	for _, p := range [...]engine.Purpose{engine.Reclaim, engine.Preempt, engine.Move} {
		s.Hooks.NarrowVictims(p, engine.NoClass)
	}
}

// Reopen returns false if the first budget was added or the last one removed.
func (p *plugin) Reopen(s *engine.Session) bool { return p.judges == (len(s.View.Budgets()) > 0) }

// judge protects a victim if, without its tasks, any budget that covers its job would be
// violated.
func (c *counts) judge(s cluster.View, v *engine.Victim) engine.Verdict {
	for _, b := range c.covering(s, v.Job) {
		if b.running-len(v.Tasks) < b.Required(b.desired) {
			return engine.Protect(InBudget)
		}
	}
	return engine.NoOpinion
}
