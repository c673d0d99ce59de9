// Package stalegang evicts the remaining tasks of a gang that has run below its minimum
// for too long: they do no work and hold room.
//
// The evictions are not for another job. It does not matter why tasks of the gang were lost.
// The gang is then placed again as a whole. While its missing tasks are nominated, it is not
// evicted.
//
// A configuration sets the grace period, and a job may set its own with staleGrace:
//
//	plugins:
//	- name: StaleGang
//	  arguments: {grace: 5m}
package stalegang

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "StaleGang"

// GangBelowMinimum is the reason of the evictions.
const GangBelowMinimum engine.Reason = "GangBelowMinimum"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: GangBelowMinimum, Phrase: "it ran below its minimum for too long", Meaning: "Of an eviction: the gang has run below its minimum for longer than the grace period. It is placed again as a whole."},
}

// Arguments are the plugin's arguments.
type Arguments struct {
	// Grace is how long a gang may run below its minimum while its missing tasks are being
	// placed again: a duration of 0 or more, such as 5m; 60s unless given. A job may
	// override it with staleGrace.
	Grace string `json:"grace"`
}

type plugin struct {
	session *engine.Session
	grace   time.Duration
	hook    engine.Sweep // sweep; a method value is allocated each time that it is made
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(func() Arguments { return Arguments{Grace: "60s"} }, build)

func build(a Arguments) (engine.Plugin, error) {
	grace, err := time.ParseDuration(a.Grace)
	if err != nil || grace < 0 {
		return nil, fmt.Errorf("grace is %q; want a duration of at least 0 such as 60s", a.Grace)
	}
	p := &plugin{grace: grace}
	p.hook = p.sweep
	return p, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddSweep(p.hook)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	return true
}

// sweep evicts gangs that have run below their minimum for longer than their grace period.
// A gang without a pending task is not evicted, because its missing tasks are nominated.
func (p *plugin) sweep(stmt *engine.Statement) {
	for _, j := range p.session.View.BelowMinimum() {
		grace := p.grace.Nanoseconds()
		if j.StaleGrace != nil {
			grace = *j.StaleGrace
		}
		if grace < 0 {
			continue
		}
		if !p.session.View.IsPending(j) || p.session.Now-j.BelowMinimumSince < grace {
			p.session.WakeAt(j.BelowMinimumSince + grace)
			continue
		}
		for _, t := range j.Tasks() {
			if t.Runs() {
				stmt.Evict(t, "", GangBelowMinimum)
			}
		}
	}
}
