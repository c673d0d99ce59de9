// Package fairshare decides which queue is next. It compares siblings by what each would hold
// with its next job, in this order: the stronger tier is first; then queues within their fair
// share before queues above it; then queues within their quota before queues that are beyond
// it or have none; then the higher priority of the queue; then, of queues above their shares,
// the lower ratio of what is held to the share; then the smaller fraction of the cluster's
// total that is held now; then the older queue. It also decides which queues must give room
// back (see Reclaim).
//
// It divides what the cluster has among the queues and compares what they hold with
// their shares. It does not look at nodes. Of a job it reads only the queue, the priority and
// the request: other plugins decide what a queue may hold at all, and where its tasks are placed.
//
// Devices are always divided. Other resources are divided if some queue names them in its
// quota, its limits or its over-quota weights. The argument divide, such as [cpu, memory],
// adds further resources. Resources that are not divided count neither for shares nor for
// the order of queues, and are not reclaimed.
//
// With the argument halfLife, such as 24h, past use counts too: a queue that used more
// than its weight gets less of what is left after quotas for some time. The argument
// pastWeight is how strongly the past counts, from 0 to 10; 1 unless given. While shares
// change with time, each session that needs shares requests the next one after 1/64 of the
// half-life.
package fairshare

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
)

// Name is the plugin's name in a profile.
const Name = "FairShare"

// wakes is how many sessions are requested in a half-life while shares change with time.
const wakes = 64

type plugin struct {
	session  *engine.Session
	view     cluster.View
	settings fairshare.Settings
	keeper   fairshare.Keeper
	tree     *fairshare.Tree // nil until a session needs it
	cache    []queueCache    // by slot of the queue
	highest  highestRatios
	register func(*engine.Hooks) // registers the hooks; nil before the first session
	shared   *reclaimer          // the last one of the session that reclaimer returned

	changed     []*cluster.Queue // queues whose bids have changed since the last call of bidChanges
	changedTree *fairshare.Tree  // the tree as of that call
}

// New builds the plugin. Quotas and weights are part of the queues. The arguments set
// whether past use counts, and which further resources are divided.
func New(args engine.Arguments) (engine.Plugin, error) {
	settings, err := ReadSettings(args)
	if err != nil {
		return nil, err
	}
	return &plugin{settings: settings}, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	if p.register == nil {
		p.register = p.registration()
		p.keeper.Changed, p.keeper.JobChanged = p.dropKeys, p.dropRequests
	}
	p.register(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session, p.view, p.tree, p.shared, p.settings.Decay.Now = s, s.View, nil, nil, s.Now
	return true
}

// registration returns the function that registers the hooks. The functions of the hooks are made
// once, because each method value that is made allocates memory.
func (p *plugin) registration() func(*engine.Hooks) {
	compare, freeze, bidChanges, withinQuota, standings := p.compare, p.freeze, p.bidChanges, p.withinQuota, p.standings
	reclaimable, classes, queues, last := p.reclaimable, p.classes, p.queues, p.lastResort()
	first := engine.FirstVictims{Classes: p.firstClasses, Queues: p.firstQueues}
	moved := engine.EventHandler{AllocateFunc: p.moved, DeallocateFunc: p.moved}
	return func(h *engine.Hooks) {
		h.AddSiblingOrder(compare)
		h.AddFrozenOrder(freeze)
		h.AddBidChanges(bidChanges)
		h.AddSurplus(withinQuota)
		h.AddReclaimable(reclaimable)
		h.NarrowVictims(engine.Reclaim, classes)
		h.NarrowQueues(engine.Reclaim, queues)
		h.NarrowFirst(engine.Reclaim, first)
		h.AddLastResort(engine.Reclaim, last)
		h.AddStanding(standings)
		h.AddEventHandler(moved)
	}
}

// moved drops what is cached of the task's queue, because its use has changed.
func (p *plugin) moved(e *engine.Event) {
	if p.tree == nil {
		return
	}
	if leaf := p.tree.ByName[e.Task.Job.Queue]; leaf != nil {
		p.dropRequests(leaf)
	}
}

func (p *plugin) OnSessionClose(*engine.Session) { p.tree = nil }

// shares returns the tree with up-to-date shares. They are computed once a session, when
// they are first needed; a session with one queue does not need them. They hold for the
// whole session: placing a task turns a pending request into one that is met, and the sum
// stays the same. What queues use is read from State after every placement.
func (p *plugin) shares() *fairshare.Tree {
	if p.tree == nil {
		p.tree = p.keeper.Follow(p.view, p.settings)
		if p.keeper.Moving() {
			p.session.WakeAt(p.session.Now + max(1, p.settings.Decay.HalfLife/wakes))
		}
	}
	return p.tree
}

// standings returns the shares of the queue, for explanations.
func (p *plugin) standings(q *cluster.Queue) []engine.Standing {
	known := p.shares().ByName[q.Name]
	if known == nil {
		return nil
	}
	if len(known.Shares) == 0 {
		return nil
	}
	out := make([]engine.Standing, 0, len(known.Shares))
	for i := range known.Shares {
		sh := &known.Shares[i]
		out = append(out, engine.Standing{Queue: q.Name, Resource: sh.Resource, Used: q.Used.Of(sh.Resource), Request: sh.Request, Share: sh.Share(), Quota: sh.Quota})
	}
	return out
}
