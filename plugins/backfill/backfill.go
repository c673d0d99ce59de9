// Package backfill earmarks room for jobs that have waited for long.
//
// Without it, a job that requests much may wait forever behind jobs that request little: whenever
// a part of its room becomes free, a smaller job takes it. A job that has waited for a set time
// gets an earmark on the nodes where it is expected to fit soonest: nodes of which the run times
// of tasks are known and end first or, where they are not known, nodes on which few tasks must
// end, and none of them has run for long. From then on other jobs are placed there only if they
// leave the room, or end before the job can start. The job itself is tried on all nodes, and may
// start elsewhere.
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
//	  arguments: {after: 1h, perQueue: 16, share: 0.2}
package backfill

import (
	"cmp"
	"fmt"
	"slices"
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
	// PerQueue is how many jobs of a queue have an earmark at a time, at least 1; 8 unless given.
	PerQueue int `json:"perQueue"`
	// Share is which part of all devices of the cluster may be earmarked, from 0 to 1; 0.1 unless
	// given. The devices of one node may be earmarked in any case.
	Share float64 `json:"share"`
	// Review is how often the nodes of an earmark are compared with others: a duration of more
	// than 0; 10m unless given. The job changes to other nodes if it is expected to start there in at
	// most half of the time.
	Review string `json:"review"`
}

type plugin struct {
	session       *engine.Session
	left          map[string]bool // the nodes of earmarks that this sweep has withdrawn
	sweeper       engine.Sweep    // sweep
	meanAge       int64           // of running tasks, in this sweep; -1 if it was not needed yet
	after, review int64
	perQueue      int
	share         float64
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(func() Arguments { return Arguments{After: "10m", PerQueue: 8, Share: 0.1, Review: "10m"} }, build)

func build(a Arguments) (engine.Plugin, error) {
	after, err := time.ParseDuration(a.After)
	if err != nil || after <= 0 {
		return nil, fmt.Errorf("after is %q; want a duration of more than 0 such as 30m", a.After)
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
	p := &plugin{left: map[string]bool{}, after: int64(after), review: int64(review), perQueue: a.PerQueue, share: a.Share}
	p.sweeper = p.sweep // once, because a session would allocate it
	return p, nil
}

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

// SharedByProfiles marks the plugin as one that decides about the jobs of all profiles.
func (*plugin) SharedByProfiles() {}

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddSweep(p.sweeper)
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
	p.meanAge = -1
	for _, j := range cluster.EarmarksOf(view).Jobs() {
		if refusal := p.session.Earmarks.Refusal(j); !view.IsPending(j) || j.HasMinimum() || refusal != nil && !lacksRoom(refusal) {
			for _, r := range j.Earmarked.Rooms {
				p.left[r.Node] = true
			}
			stmt.Earmark(j, nil)
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
	limit, plans := -1, map[string]int{}
	for _, c := range p.candidates() {
		queue := c.job.Queue
		if perQueue[queue] >= p.perQueue || plans[queue] >= p.perQueue {
			continue
		}
		if limit < 0 {
			limit = p.limit()
		}
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
		if stmt.Earmark(c.job, e) == nil {
			perQueue[queue]++
			devices += earmarkedDevices(e)
		}
	}
}

// candidate is a job that has waited for long, and what it lacks; see plugin.wants.
type candidate struct {
	job            *cluster.Job
	devices, tasks int
	waited         int64 // in seconds
}

// candidates returns the jobs that may get an earmark, in the order in which they get one: by
// priority, then by the devices that they lack multiplied by the time that they have waited. A job
// that lacks few devices finds room sooner without an earmark than one that lacks many. Because the
// product grows with time, it also gets one at last.
func (p *plugin) candidates() (out []candidate) {
	for _, w := range p.session.Earmarks.Starving(p.after) {
		if lacksRoom(w.Refusal) {
			devices, tasks := p.wants(w.Job)
			out = append(out, candidate{w.Job, devices, tasks, (p.session.Now - w.Job.Created) / int64(time.Second)})
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), cmp.Compare(int64(b.devices)*b.waited, int64(a.devices)*a.waited))
	})
	return out
}

// wants returns the least number of devices that an alternative of the job lacks, and for how many tasks.
func (p *plugin) wants(j *cluster.Job) (devices, tasks int) {
	for i := range j.Alternatives {
		alt := &j.Alternatives[i]
		if j.Chosen >= 0 && i != j.Chosen || alt.Running {
			continue
		}
		sum, n := 0, 0
		for _, t := range p.session.Lacking(alt) {
			sum, n = sum+t.Shape.Need.Devices, n+1
		}
		if tasks == 0 || sum < devices {
			devices, tasks = sum, n
		}
	}
	return devices, tasks
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
	stmt.Earmark(j, e)
}

// reviewEarmark gives the job other nodes if it is expected to start much sooner there.
func (p *plugin) reviewEarmark(stmt *engine.Statement, j *cluster.Job) {
	e := *j.Earmarked
	e.Reviewed = p.session.Now
	if better := p.plan(j); better != nil && p.expected(j, better).muchSooner(p.expected(j, &e), p.session.Now) && earmarkedDevices(better) <= earmarkedDevices(&e) {
		better.Since = e.Since
		e = *better
	}
	stmt.Earmark(j, &e)
}

// limit returns how many devices may be earmarked.
func (p *plugin) limit() int {
	sum := 0
	for _, n := range p.session.View.Nodes() {
		sum += len(n.Devices)
	}
	return int(p.share * float64(sum))
}

func earmarkedDevices(e *cluster.Earmarked) (sum int) {
	for i := range e.Rooms {
		sum += e.Rooms[i].Devices
	}
	return sum
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
