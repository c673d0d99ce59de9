// Package backfill earmarks room for jobs that have waited for long.
//
// Without it, a job that requests much may wait forever behind jobs that request little: whenever
// a part of its room becomes free, a smaller job takes it. A job that has waited for a set time
// gets an earmark on the nodes where it is expected to fit soonest: nodes of which the run times
// of tasks are known and end first or, where they are not known, nodes on which few tasks must
// end, and none of them has run for long. From then on other jobs are placed there only if they
// leave the room, or end before the job can start. The job itself is tried on all nodes, before other
// jobs of its queue and priority, and may start elsewhere.
//
// An earmark evicts nothing and holds nothing: tasks that run go on, and whatever may be evicted
// for a job stays as it is. docs/backfill.md says which jobs may take room that is earmarked
// for another.
//
// The plugin does not consider jobs without devices, jobs that no state of the cluster could
// hold, jobs that the limit or share of their queue keeps waiting, and surplus tasks. A job of
// which subgroups must each be in one domain gets an earmark only if its own topology requires a domain
// or none does.
//
// A configuration sets the limits:
//
//	plugins:
//	- name: Backfill
//	  arguments: {after: 1h, perQueue: 16, idle: 0.02}
package backfill

import (
	"cmp"
	"fmt"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "Backfill"

// RoomEarmarked is the reason for which a node is rejected.
const RoomEarmarked engine.Reason = "RoomEarmarked"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: RoomEarmarked, Cure: engine.Wait, Phrase: "its room is earmarked for a job that has waited for longer", Meaning: "The free room of the node is earmarked for another job, which has waited for long and requests more than is free. A task that leaves this room, or ends before the other job can start, is placed there."},
}

// Arguments are the plugin's arguments.
type Arguments struct {
	// After is how long a job has waited since its creation when it gets an earmark: a duration
	// of more than 0, such as 2h; 10m unless given.
	After string `json:"after"`
	// Later is the same for a job that lacks at most half of the devices of the largest node: 6h unless given. It
	// counts if it is longer than After.
	Later string `json:"later"`
	// PerQueue is how many jobs of a queue have an earmark at a time, at least 1; 32 unless given.
	PerQueue int `json:"perQueue"`
	// Share is which part of all devices of the cluster may be earmarked, from 0 to 1; 0.5 unless
	// given. The devices of one node may be earmarked in any case.
	Share float64 `json:"share"`
	// Idle is which part of all devices of the cluster earmarks may keep idle, from 0 to 1; 0.01 unless
	// given. If they keep as many, a further job gets an earmark only on nodes that one task each holds as a
	// whole. One job may have an earmark on other nodes in any case.
	Idle float64 `json:"idle"`
	// Review is how often the nodes of an earmark are compared with others: a duration of more
	// than 0; 10m unless given. The job changes to other nodes if it is expected to start there in at
	// most half of the time.
	Review string `json:"review"`
}

type plugin struct {
	session *engine.Session
	left    map[string]bool // the nodes of earmarks that this sweep has withdrawn
	sweeper engine.Sweep    // sweep
	meanAge int64           // of running tasks, in this sweep; -1 if it was not needed yet
	kept    int             // how many devices all earmarks keep idle, in this sweep; -1 if that is to be counted
	cluster totals          // in this sweep; zero if they were not needed yet

	after, later, review int64
	perQueue             int
	share, idle          float64
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(func() Arguments {
	return Arguments{After: "10m", Later: "6h", PerQueue: 32, Share: 0.5, Idle: 0.01, Review: "10m"}
}, build)

func build(a Arguments) (engine.Plugin, error) {
	after, err := time.ParseDuration(a.After)
	if err != nil || after <= 0 {
		return nil, fmt.Errorf("after is %q; want a duration of more than 0 such as 30m", a.After)
	}
	later, err := time.ParseDuration(a.Later)
	if err != nil || later <= 0 {
		return nil, fmt.Errorf("later is %q; want a duration of more than 0 such as 6h", a.Later)
	}
	review, err := time.ParseDuration(a.Review)
	if err != nil || review <= 0 {
		return nil, fmt.Errorf("review is %q; want a duration of more than 0 such as 10m", a.Review)
	}
	if a.PerQueue < 1 {
		return nil, fmt.Errorf("perQueue is %d; want at least 1, or disable the plugin", a.PerQueue)
	}
	if !(a.Share >= 0 && a.Share <= 1) {
		return nil, fmt.Errorf("share is %v; want a number from 0 to 1 such as 0.1", a.Share)
	}
	if !(a.Idle >= 0 && a.Idle <= 1) {
		return nil, fmt.Errorf("idle is %v; want a number from 0 to 1 such as 0.01", a.Idle)
	}
	p := &plugin{left: map[string]bool{}, after: int64(after), later: int64(max(after, later)), review: int64(review), perQueue: a.PerQueue, share: a.Share, idle: a.Idle}
	p.sweeper = p.sweep // once, because a session would allocate it
	return p, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddJobOrder(compare)
	s.Hooks.AddSweep(p.sweeper)
}

// compare puts jobs with an earmark first: of several, the one that has had it for longest and, of those, the
// one for which more devices are earmarked.
func compare(l, r *cluster.Job) int {
	x, y := l.Earmarked, r.Earmarked
	switch {
	case x == nil && y == nil:
		return 0
	case y == nil:
		return -1
	case x == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(x.Since, y.Since), cmp.Compare(earmarkedDevices(y), earmarkedDevices(x)))
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.session = s
	s.Earmarks.Keep(RoomEarmarked)
	return true
}

// maxQueues is for jobs of how many queues a sweep looks for room. Each queue has perQueue plans.
const maxQueues = 64

// sweep reviews the earmarks, and gives further ones to jobs that have waited for long.
func (p *plugin) sweep(stmt *engine.Statement) {
	view := p.session.View
	perQueue, devices := map[string]int{}, 0
	clear(p.left)
	p.meanAge, p.kept, p.cluster = -1, -1, totals{}
	for _, j := range cluster.EarmarksOf(view).Jobs() {
		if refusal := p.session.Earmarks.Refusal(j); !view.IsPending(j) || j.HasMinimum() || refusal != nil && !lacksRoom(refusal) {
			for _, r := range j.Earmarked.Rooms {
				p.left[r.Node] = true
			}
			p.change(stmt, j, nil)
			continue
		}
		switch {
		case p.void(j):
			p.replace(stmt, j)
		case p.session.Now-j.Earmarked.Reviewed >= p.review:
			p.reviewEarmark(stmt, j)
		}
		if j.Earmarked != nil {
			perQueue[j.Queue]++
			devices += earmarkedDevices(j.Earmarked)
		}
	}
	plans := map[string]int{}
	for _, c := range p.candidates() {
		queue := c.job.Queue
		if perQueue[queue] >= p.perQueue || plans[queue] >= p.perQueue {
			continue
		}
		limit := int(p.share * float64(p.totals().devices))
		if devices > 0 && devices >= limit {
			break
		}
		if devices+c.devices > limit && (devices > 0 || c.tasks > 1) {
			continue
		}
		if plans[queue]++; len(plans) > maxQueues {
			break // a plan looks at all nodes
		}
		e := p.plan(c.job)
		if e == nil || devices+earmarkedDevices(e) > limit && !(devices == 0 && len(e.Rooms) == 1) {
			continue
		}
		if p.change(stmt, c.job, e) == nil {
			perQueue[queue]++
			devices += earmarkedDevices(e)
		}
	}
}

// change gives the job the earmark; nil withdraws the one that it has.
func (p *plugin) change(stmt *engine.Statement, j *cluster.Job, e *cluster.Earmarked) error {
	p.kept = -1
	return stmt.Earmark(j, e)
}

// void reports whether the job cannot start any more when its earmark says: another scheduler has
// placed a task on one of the nodes, or a task runs for longer than its run time.
func (p *plugin) void(j *cluster.Job) bool {
	e := j.Earmarked
	if e.Start == 0 {
		return false
	}
	d := p.expected(j, e)
	return d.unknown > 0 || d.until > e.Start
}

// replace gives the job the earmark that it would get now, or none.
func (p *plugin) replace(stmt *engine.Statement, j *cluster.Job) {
	e := p.plan(j)
	if e != nil {
		if e.Since = j.Earmarked.Since; earmarkedDevices(e) > earmarkedDevices(j.Earmarked) {
			e = nil // the sweep gives it one if the share allows that
		}
	}
	p.change(stmt, j, e)
}

// reviewEarmark gives the job other nodes if it is expected to start much sooner there.
func (p *plugin) reviewEarmark(stmt *engine.Statement, j *cluster.Job) {
	e := *j.Earmarked
	e.Reviewed = p.session.Now
	if better := p.plan(j); better != nil && p.expected(j, better).muchSooner(p.expected(j, &e), p.session.Now) && earmarkedDevices(better) <= earmarkedDevices(&e) {
		better.Since = e.Since
		e = *better
	}
	p.change(stmt, j, &e)
}

// lacksRoom reports whether the job was refused for lack of room in at least one of its
// alternatives, and not by a PreFilter such as the limit of its queue.
func lacksRoom(r *engine.Refusal) bool {
	for i := range r.Attempts {
		if r.Attempts[i].Before == nil {
			return true
		}
	}
	return false
}
