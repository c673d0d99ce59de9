// Package keep protects jobs with the label "keep": they are neither evicted nor moved.
//
// It does not check which user sets the label. An admission policy of the cluster can do that.
package keep

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Keep"

// Kept is given for a victim that is protected because its job has the label.
const Kept engine.Reason = "Kept"

const label = "keep"

type plugin struct{}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return plugin{} })

func (plugin) Name() string { return Name }

func (plugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddReclaimable(protect)
	s.Hooks.AddPreemptable(protect)
	s.Hooks.AddMovable(protect)
}

// protect is called with the job that needs room and the tasks that it lacks. The answer
// does not depend on them.
func protect(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return judge }

func judge(v *engine.Victim) engine.Verdict {
	if _, marked := v.Job.Labels[label]; marked {
		return engine.Protect(Kept)
	}
	return engine.NoOpinion
}
