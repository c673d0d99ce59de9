// Package fairshare decides whose turn it is: that of the queue which is
// furthest from what it should have.
//
// It divides what the cluster has among the queues, and compares what they hold
// with that. It refuses to know about nodes and jobs one by one: who may have
// something at all is decided elsewhere, and so is where it comes from.
//
// It divides devices, and of other resources those that the terms of some queue
// name: its quota, its limits or its over-quota weights. The argument divide, such
// as [cpu, memory], adds others. The rest is free for all: it counts neither for
// shares nor for the order of queues, and is not reclaimed.
//
// With the argument halfLife, such as 24h, what queues used in the past counts as
// well: who used more than its weight gets less of what quotas leave, for a
// while. The argument pastWeight says how strongly, from 0 to 10; 1 unless given.
// While shares move with time, the plugin asks for a session 64 times in a half-life.
package fairshare

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "FairShare"

type plugin struct {
	session  *engine.Session
	view     cluster.View
	settings Settings
	offer    offer
	kept     kept
	tree     *Tree // nil until a session asks for it
}

// New builds the plugin. Quotas and weights are the queues'; how their past
// counts, if it does, and what else is divided is the profile's.
func New(args engine.Arguments) (engine.Plugin, error) {
	settings, err := ReadSettings(args)
	if err != nil {
		return nil, err
	}
	return &plugin{settings: settings}, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.session, p.view, p.tree, p.settings.Decay.Now = s, s.View, nil, s.Now
	s.Hooks.AddSiblingOrder(p.compare)
	s.Hooks.AddFrozenOrder(p.freeze)
	s.Hooks.AddSurplus(p.deserved)
	s.Hooks.AddReclaimable(p.reclaimable)
	s.Hooks.NarrowVictims(engine.Reclaim, p.classes)
	s.Hooks.NarrowQueues(engine.Reclaim, p.queues)
	p.lastResort(s)
	s.Hooks.AddStanding(p.standings)
	s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: p.moved, DeallocateFunc: p.moved})
}

// moved forgets how the task's queue stood.
func (p *plugin) moved(e *engine.Event) {
	if p.tree == nil {
		return
	}
	p.tree.forget(e.Task.Job)
}

func (p *plugin) OnSessionClose(*engine.Session) { p.tree = nil }

// shares are brought up to date once a session, when they are first asked for: one
// queue alone is compared with none. They hold for the whole session, since placing
// a task turns a pending request into one that is met and leaves the sum as it
// is; what queues use is read from the State again after every placement.
func (p *plugin) shares() *Tree {
	if p.tree == nil {
		p.tree = p.kept.follow(p.view, p.offer.of(p.view), p.settings)
		if p.kept.moves() {
			p.session.WakeAt(p.session.Now + max(1, p.settings.Decay.HalfLife/wakes))
		}
	}
	return p.tree
}

// standings are how the queue stands with its shares, for those who explain.
func (p *plugin) standings(q *cluster.Queue) []engine.Standing {
	known := p.shares().byName[q.Name]
	if known == nil {
		return nil
	}
	var out []engine.Standing
	for i := range known.Shares {
		sh := &known.Shares[i]
		out = append(out, engine.Standing{Queue: q.Name, Resource: sh.Resource, Used: q.Used.Of(sh.Resource), Request: sh.Request, Share: sh.Share(), Quota: sh.Quota})
	}
	return out
}
