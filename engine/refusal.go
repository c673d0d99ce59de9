package engine

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Refusal is why a job was not placed: the rejections of all nodes, summed up. It has names
// and copies, so that it does not change with the State. The only pointers that it shares with
// the State are those to shapes (Unplaced.Shape), which are interned and never change.
type Refusal struct {
	Job string // the ID of the job
	// Reason is the most important reason of all rejections. A reason that waiting or
	// evicting can cure comes before one that they cannot, then the higher Precedence
	// counts, then the number of nodes.
	Reason Reason
	// Permanent means that neither waiting nor evicting can cure the refusal.
	Permanent bool
	// Surplus means that the minimum of the job is placed and only surplus tasks are not.
	Surplus bool
	// Attempts has one entry for each alternative that was tried. Alternatives that form
	// one choice between node groups share an entry.
	Attempts []Attempt
	// Retry is when the back-off of the job ends, in nanoseconds since 1970: a patient
	// session tries the job again at the latest then. 0 means that the job is tried again
	// only if something changes that may help.
	Retry int64
	// Delayed is when the preemption delay of the job ends, in nanoseconds since 1970, if
	// the delay kept the job from evicting and moving other tasks. 0 means that it did not.
	Delayed int64
	// Protected lists, by purpose, the jobs that were protected from being victims.
	Protected []ProtectedVictims
	// Settled means that waiting does not help, because no running task ends by itself and
	// sessions decide nothing any more. The engine does not set it; a simulation over time
	// does.
	Settled bool
}

// saysSame reports whether both refusals are equal except for Retry.
func (r *Refusal) saysSame(o *Refusal) bool {
	x, y := *r, *o
	x.Retry, y.Retry = 0, 0
	return reflect.DeepEqual(&x, &y)
}

// Refusal returns the latest refusal of a pending job by a patient session, with the time of
// its next retry. It returns nil if no patient session has refused the job.
func (e *Engine) Refusal(job *cluster.Job) *Refusal {
	if e.backlog == nil || job.Slot() >= e.backlog.waiters.Len() {
		return nil
	}
	n := e.backlog.waiters.At(job.Slot())
	if n == nil || n.job != job || n.bucket == nil {
		return nil
	}
	r := *n.refusal
	if n.bucket.refusalNumber > n.refusalNumber {
		r = *n.bucket.refusal.about(job) // an equivalent job was tried later, and its refusal holds for this one
	}
	r.Retry = n.bucket.parked.RetryAt
	return &r
}

// Attempt is why one alternative of a job could not be placed.
type Attempt struct {
	Alternative string      // the name of the alternative, if the job has several
	Task        Unplaced    // the first task that could not be placed
	Placed, Min int         // how many tasks were placed before it, and how many must be
	Nodes       int         // how many nodes were considered
	Before      *Rejection  // set if the task was rejected before any node was considered
	Counts      []Tally     // how many nodes were rejected for each reason, in filter order
	Nearest     []Miss      // rejected nodes, nearest first: ten, or all if the session explains
	Whole       bool        // the job requests whole nodes of one node group
	Groups      []GroupMiss // for whole nodes: each node group and why it is rejected; may be empty
	// Subgroup is the subgroup that lacks its minimum. Placed and Min then count tasks of
	// that subgroup.
	Subgroup string
	// Level is the topology label if none of its domains has enough room. Nodes, Counts and
	// Nearest are then about the first of Domains.
	Level   string
	Domains []DomainMiss // the best domains of Level, at most ten
	// Never means that there is no room for the minimum even if no other task held
	// anything.
	Never bool
	// Apart says why, if tasks of the job must be in different domains and there are too few.
	Apart *TooFewDomains

	from, to        int  // the alternatives that the attempt covers: from is included, to is not
	nearestDeferred bool // Nearest is not collected yet: that is done if the job stays refused
}

// Unplaced is a task that could not be placed, and what it requests.
type Unplaced struct {
	cluster.TaskRef
	Role     string
	Index    int
	Subgroup int            // its index among the subgroups of the alternative, from 1; 0: in none
	Shape    *cluster.Shape // interned by the State; shapes never change
}

// unplaced copies what a refusal needs of the task. The task may be nil if the session failed.
func unplaced(t *cluster.Task) Unplaced {
	if t == nil {
		return Unplaced{}
	}
	return Unplaced{t.Ref(), t.Role, t.Index, t.Subgroup, t.Shape}
}

// Tally is how many nodes one plugin rejected for one reason.
type Tally struct {
	Plugin string
	Reason Reason
	Cure   Cure
	Nodes  int

	precedence int8
}

// Miss is a node that was rejected.
type Miss struct {
	Node      string
	Rejection Rejection
}

// GroupMiss is a node group on which a job could not be placed. Rejection is nil if the group
// is suitable once enough of its nodes are free.
type GroupMiss struct {
	Key       cluster.GroupKey
	Nodes     int // how many nodes of the group could take a task if no other task held anything
	Rejection *Rejection
}

// DomainMiss is a domain that has no room for all tasks that must be in one domain.
type DomainMiss struct {
	Value string // the value of the topology label
	Nodes int    // how many nodes the domain has
	Fits  int    // how many tasks it would hold, including those that are there
	Lacks int    // how many more nodes would hold the rest; 0: no node is known that could take a task
}

// Cure returns everything that would help at least one of the attempts.
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

// cause is a tally with its importance.
type cause struct {
	Tally
	rank int // higher is more important
}

// tallies returns all rejections of the attempt, including those of node groups, of domains
// and before any node was considered. The caller must not change the result.
func (a *Attempt) tallies() []Tally {
	out := slices.Clip(a.Counts) // what is appended is not written into Counts
	if b := a.Before; b != nil {
		out = append(out, Tally{b.Plugin, b.Reason, b.Cure, a.Nodes, b.Precedence})
	}
	if a.Whole {
		out = nil
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

// Unheld returns the rejection of most nodes that only waiting cures because no task holds
// what is missing, such as that a node is not ready. It returns nil if evicting cures some
// rejection, or if waiting cures none.
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

// newRefusal sums up the attempts as a refusal of the job.
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
				rank = 1 // some node could take the task later
			case c.Cure.Transient():
				rank = -1 // the nodes are in use by the gang itself, which is not the cause
			}
			all = append(all, cause{c, rank})
		}
	}
	r.Reason = mainReason(all)
	return r
}

// mainReason returns the most important reason: one that waiting or evicting can cure before
// one that they cannot, then the one with the highest precedence, then the one of most nodes.
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
