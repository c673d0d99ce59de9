package engine

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Refusal is a job turned down in this session, with its rejections summed up. It
// holds names and copies, so that it stays true while the State changes.
type Refusal struct {
	Job string // its ID
	// Reason is the one that matters most: see headline.
	Reason Reason
	// Permanent refusals stay until something changes; waiting does not help.
	Permanent bool
	// Surplus: the job's minimum is placed, only tasks beyond it are not.
	Surplus bool
	// Attempts has one entry for each alternative that was tried; those that are one
	// choice between groups share one.
	Attempts []Attempt
	// Retry is when a patient session tries it again at the latest; 0: when something
	// changes that may help.
	Retry int64
	// Delayed is until when the job evicts and moves nothing, where its preemption
	// delay was what kept it from making room; 0: it tried.
	Delayed int64
	// Spared are the jobs that might have been victims and were protected, by purpose.
	Spared []Sparing
	// Settled: nothing that runs ends by itself, and sessions decide nothing any more,
	// so time alone does not help. The engine does not know that; a course does.
	Settled bool
}

// saysSame reports whether the other refusal says the same of the job.
func (r *Refusal) saysSame(o *Refusal) bool {
	x, y := *r, *o
	x.Retry, y.Retry = 0, 0
	return reflect.DeepEqual(&x, &y)
}

// Refusal is what a patient session said last of a job that waits, and when it is
// tried again at the latest; nil where none has refused it.
func (e *Engine) Refusal(job *cluster.Job) *Refusal {
	if e.backlog == nil || job.Slot() >= len(e.backlog.waiters) {
		return nil
	}
	n := e.backlog.waiters[job.Slot()]
	if n == nil || n.job != job || n.bucket == nil {
		return nil
	}
	r := *n.refusal
	if n.bucket.said > n.said {
		r = *n.bucket.refusal.about(job) // another like it was tried for it
	}
	r.Retry = n.bucket.parked.RetryAt
	return &r
}

// Attempt is one alternative that could not be placed.
type Attempt struct {
	Alternative string      // the form of the job, where it has several
	Task        Unplaced    // the first that found no place
	Placed, Min int         // tasks that had found one before, and how many must
	Nodes       int         // that were looked at
	Before      *Rejection  // turned down before any node was looked at
	Counts      []Tally     // nodes turned down, in filter order
	Nearest     []Miss      // nearest first: ten, or all where the session explains
	Whole       bool        // whole nodes of one group are asked for
	Groups      []GroupMiss // for whole nodes: each group, and what is wrong with it; there may be none
	// Subgroup is the one that is short; Placed and Min are then its own.
	Subgroup string
	// Level is the label whose domains are all too small; Domains are the best
	// of them, ten at most, and Nodes, Counts and Nearest are about the first.
	Level   string
	Domains []DomainMiss // what they hold
	// Never: even if no other task held anything, there is no room for the minimum.
	Never bool

	from, to int  // the alternatives that it is about
	untold   bool // the nearest misses are found once the job stays refused
}

// Unplaced is a task that found no place, and what it asks for.
type Unplaced struct {
	cluster.TaskRef
	Role     string
	Index    int
	Subgroup int            // its place among the alternative's, counted from 1; 0: in none
	Shape    *cluster.Shape // shapes never change
}

// unplaced copies what a refusal says of the task; there may be none where the session failed.
func unplaced(t *cluster.Task) Unplaced {
	if t == nil {
		return Unplaced{}
	}
	return Unplaced{t.Ref(), t.Role, t.Index, t.Subgroup, t.Shape}
}

// Tally counts rejections of one kind.
type Tally struct {
	Plugin string
	Reason Reason
	Cure   Cure
	Nodes  int

	precedence int8
}

// Miss is a node that was turned down.
type Miss struct {
	Node      string
	Rejection Rejection
}

// GroupMiss is a group that was turned down. Rejection is nil where the group
// would do once enough of its nodes are free.
type GroupMiss struct {
	Key       cluster.Key
	Nodes     int // of the group that passed the node filters
	Rejection *Rejection
}

// DomainMiss is a domain that has no room for all that must be in one.
type DomainMiss struct {
	Value string
	Nodes int
	Fits  int // tasks that it would hold, those that are there included
	Lacks int // nodes that are missing, as many as would hold the rest; 0: no node of the kind is known
}

// Cure is everything that would help one of the attempts.
func (r *Refusal) Cure() Cure {
	var out Cure
	for i := range r.Attempts {
		a := &r.Attempts[i]
		for _, c := range a.tallies() {
			if !a.transient() {
				c.Cure &^= Wait | Evict
			}
			out |= c.Cure
		}
	}
	return out
}

// cause is a tally and how much it matters.
type cause struct {
	Tally
	rank int
}

// tallies are the attempt's rejections, those of groups and of the job included.
func (a *Attempt) tallies() []Tally {
	out := slices.Clone(a.Counts)
	if b := a.Before; b != nil {
		out = append(out, Tally{b.Plugin, b.Reason, b.Cure, a.Nodes, b.Precedence})
	}
	if a.Whole {
		out = out[:0]
		for _, g := range a.Groups {
			x := g.Rejection
			if x == nil && a.Unheld() != nil {
				return []Tally{*a.Unheld()}
			} else if x == nil {
				return []Tally{{Reason: GroupInUse, Cure: Wait | Evict, Nodes: g.Nodes}}
			}
			if x.Cure.Transient() {
				out = append(out, Tally{x.Plugin, x.Reason, x.Cure, g.Nodes, x.Precedence})
			}
		}
		out = append(out, Tally{Reason: NoSuitableGroup, Cure: Grow, Nodes: a.Nodes})
	}
	if a.Level != "" {
		cure := Wait | Evict
		if a.Never {
			cure = Grow
		}
		return []Tally{{Reason: NoDomainFits, Cure: cure, Nodes: a.Nodes}}
	}
	if len(out) == 0 {
		out = append(out, Tally{Reason: NoNodes, Cure: Grow})
	}
	return out
}

// Unheld is what there is to wait for where no task holds what is waited for, such
// as a node that is not ready; nil where somebody does, or there is nothing. Of
// several it is what most nodes are waited for.
func (a *Attempt) Unheld() *Tally {
	var out *Tally
	for i := range a.Counts {
		switch c := &a.Counts[i]; {
		case c.Cure&Evict != 0:
			return nil
		case c.Cure.Transient() && (out == nil || c.Nodes > out.Nodes):
			out = c
		}
	}
	return out
}

func (a *Attempt) transient() bool {
	return !a.Never && slices.ContainsFunc(a.tallies(), func(c Tally) bool { return c.Cure.Transient() })
}

// newRefusal is the refusal of the job after these attempts.
func newRefusal(job *cluster.Job, attempts []Attempt, surplus bool) *Refusal {
	r := &Refusal{Job: job.ID, Attempts: attempts, Surplus: surplus, Permanent: true}
	var all []cause
	for i := range attempts {
		transient := attempts[i].transient()
		r.Permanent = r.Permanent && !transient
		for _, c := range attempts[i].tallies() {
			rank := 0
			switch {
			case c.Cure.Transient() && transient:
				rank = 1 // some node could
			case c.Cure.Transient():
				rank = -1 // the gang's own doing, and no cause
			}
			all = append(all, cause{c, rank})
		}
	}
	r.Reason = mainReason(all)
	return r
}

// mainReason picks the reason that matters most: what waiting can cure before what
// it cannot, since some node could; then the one that says more; then the one most nodes gave.
func mainReason(all []cause) Reason {
	best := slices.MaxFunc(all, func(a, b cause) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(a.precedence, b.precedence),
			cmp.Compare(a.Nodes, b.Nodes),
			-strings.Compare(string(a.Reason), string(b.Reason)),
		)
	})
	return best.Reason
}
