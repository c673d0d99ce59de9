// Package doublebooking evicts the younger of two tasks that hold the same device.
//
// No decision books a device twice, but facts may report that: for a short time, a scheduler that
// lost its lease may have bound a task to a device that the next leader has given to another one.
// The task that started last is evicted, and is placed again elsewhere. The eviction is not for
// another job, and it does not matter whether the task is preemptible, because both tasks
// cannot use the device.
//
// If the devices of tasks are not reported, or the node chooses them, a conflict is a node that
// has fewer devices of one sort than its tasks hold. A device that a node does not report any more counts until the node changes again.
// As a further protection of nodes that lose devices, only tasks that started recently are
// evicted, and none from a node that reports no device at all. Cores and memory of nodes are not
// considered: the kubelet does not start a pod for which they do not suffice.
//
// A configuration sets the time:
//
//	plugins:
//	- name: DoubleBooking
//	  arguments: {within: 10m}
package doublebooking

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DoubleBooking"

// DeviceBookedTwice is the reason of the evictions.
const DeviceBookedTwice engine.Reason = "DeviceBookedTwice"

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: DeviceBookedTwice, Phrase: "its device was given to an older task as well", Meaning: "Of an eviction: facts report that the task holds a device that an older task holds as well, or that the tasks on its node hold more devices than the node has."},
}

// Arguments are the plugin's arguments.
type Arguments struct {
	// Within is how long ago a task may have started to be evicted: a duration above 0, such
	// as 5m; 10m unless given.
	Within string `json:"within"`
	// Exact is true if tasks get the devices that were chosen for them on all nodes, so that two
	// tasks with the same device are a conflict. Otherwise each device says whether that is so:
	// where a kubelet chooses the devices, two tasks with the same device are no conflict as long
	// as their node has enough devices of the sort for all its tasks.
	Exact bool `json:"exact"`
}

type plugin struct {
	session *engine.Session
	within  time.Duration
	finder  Finder       // its Exact is the argument
	hook    engine.Sweep // sweep; a method value is allocated each time that it is made
}

// New builds the plugin from its Arguments.
var New = engine.WithArguments(func() Arguments { return Arguments{Within: "10m"} }, build)

func build(a Arguments) (engine.Plugin, error) {
	within, err := time.ParseDuration(a.Within)
	if err != nil || within <= 0 {
		return nil, fmt.Errorf("within is %q; want a duration above 0 such as 10m", a.Within)
	}
	p := &plugin{within: within, finder: Finder{Exact: a.Exact}}
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

// sweep evicts the youngest task of each conflict, until no conflict is left that an eviction
// resolves.
func (p *plugin) sweep(stmt *engine.Statement) {
	for _, n := range p.finder.Nodes(p.session.View) {
		for p.evictOne(stmt, n) {
		}
	}
}

// evictOne evicts one task of a conflict on the node. It reports false if there is none to evict.
func (p *plugin) evictOne(stmt *engine.Statement, n *cluster.Node) bool {
	for _, c := range p.finder.Conflicts(n) {
		if t := c.Youngest(); p.mayEvict(t) && stmt.Evict(t, "", DeviceBookedTwice) == nil {
			return true
		}
	}
	return false
}

// mayEvict reports whether the youngest task of a conflict may be evicted. A task of a queue that
// does not exist was placed by another scheduler. A task that is only assumed on the node is not
// bound to it if its binding was not sent, and is found again when it was seen there.
func (p *plugin) mayEvict(t *cluster.Task) bool {
	now := p.session.Now
	if t.Status != cluster.Bound || p.session.View.Queue(t.Job.Queue) == nil || t.Started == 0 || now-t.Started > p.within.Nanoseconds() {
		return false
	}
	if t.ProtectedUntil() > now {
		p.session.WakeAt(t.ProtectedUntil())
		return false
	}
	return true
}

// Finder finds the nodes that have conflicts. It examines only the nodes that changed since the
// last call. The zero Finder is ready to use.
type Finder struct {
	Exact bool // see Arguments
	since cluster.Since
	slots map[int]bool // of the nodes that had a conflict when they changed last
}

// Nodes returns the nodes of the View that have conflicts, by slot.
func (f *Finder) Nodes(v cluster.View) []*cluster.Node {
	f.since.Nodes(v, func() { f.slots = nil }, func(slot int) {
		switch n := v.At(slot); {
		case n != nil && f.overbooked(n):
			if f.slots == nil {
				f.slots = map[int]bool{}
			}
			f.slots[slot] = true
		case f.slots[slot]:
			delete(f.slots, slot)
		}
	})
	if len(f.slots) == 0 {
		return nil
	}
	var out []*cluster.Node
	for _, slot := range slices.Sorted(maps.Keys(f.slots)) {
		if n := v.At(slot); n != nil {
			out = append(out, n)
		}
	}
	return out
}
