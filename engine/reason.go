package engine

import (
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Reason says why a candidate was turned down. Reasons are API: each is a
// documented constant of the plugin that gives it, and renaming one breaks users.
type Reason string

// Reasons that the engine itself gives.
const (
	NoNodes         Reason = "NoNodes"         // the cluster, or what the request allows of it, is empty
	NoSuitableGroup Reason = "NoSuitableGroup" // no node group passed the group filters, or there is none
	GroupInUse      Reason = "GroupInUse"      // a group would do once some of its nodes are free again
	GroupGone       Reason = "GroupGone"       // the group that its set is on has no node any more
	NoDomainFits    Reason = "NoDomainFits"    // no domain of the required level has room for the minimum
	TasksFailed     Reason = "TasksFailed"     // too few tasks are left for the minimum
	StillLeaving    Reason = "StillLeaving"    // members of the gang were evicted and are not gone yet
	ScaledDown      Reason = "ScaledDown"      // its set has enough replicas without it
)

// ReasonDoc documents a reason for the reference.
type ReasonDoc struct {
	Reason  Reason
	Cure    Cure
	Meaning string
}

// Reasons documents those that the engine itself gives.
var Reasons = []ReasonDoc{
	{NoNodes, Grow, "There is no node at all."},
	{NoSuitableGroup, Grow, "No node group passed the group filters, even with every node free, or there is none: no node has devices."},
	{GroupInUse, Wait | Evict, "A node group would do once enough of its nodes are free."},
	{GroupGone, Wait | Grow, "The node group that the replicas of its set were placed on, or that this form of the job is for, is not there, or there is no form of the job for it. The job is placed again when it is back. The subject is the group."},
	{ScaledDown, 0, "Why a task is evicted: its set has more replicas than are desired, and the others are worth more. It does not come back."},
	{NobodyConsents, 0, "Why a victim stays: no plugin of the profile says that it may go."},
	{NoDomainFits, Wait | Evict | Grow, "The job, or a subgroup of it, must be in one domain of a level (one rack, say), and no domain has room for its minimum. Waiting helps where some domain would do if it were empty; where none would, nodes are missing."},
	{TasksFailed, 0, "So many tasks of the job failed that those left do not make its minimum. It waits until failed ones are put anew."},
	{StillLeaving, Wait, "Members of the gang were evicted and have not left yet; the gang is placed again when they have."},
}

// Cure is a bit set of what would make a rejection go away. An empty Cure means
// that nothing but a changed request helps.
type Cure uint8

// The cures.
const (
	Wait  Cure = 1 << iota // others may finish
	Evict                  // others may be made to go
	Grow                   // more or different nodes
	Relax                  // a softer request
)

// Transient reports whether waiting may help, with or without a push.
func (c Cure) Transient() bool { return c&(Wait|Evict) != 0 }

// unheld reports whether waiting may help though no task holds what is waited for.
func (c Cure) unheld() bool { return c&Wait != 0 && c&Evict == 0 }

// Names lists the cures in the set.
func (c Cure) Names() []string {
	var out []string
	for i, name := range [...]string{"Wait", "Evict", "Grow", "Relax"} {
		if c&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (c Cure) String() string {
	if c == 0 {
		return "None"
	}
	return strings.Join(c.Names(), "|")
}

// Unit says what a Quantity counts.
type Unit uint8

// The units.
const (
	NoUnit  Unit = iota // nothing was counted
	Count               // plain things: devices, nodes, cores, units of an extended resource
	Bytes               // memory
	Cores               // thousandths of a core
	Devices             // thousandths of a device
)

// Quantity is a number with its unit.
type Quantity struct {
	Value int64
	Unit  Unit
}

// AmountOf is a quantity in the unit that the named resource is counted in.
func AmountOf(resource string, v int64) Quantity {
	switch resource {
	case cluster.CPU:
		return Quantity{v, Cores}
	case cluster.Memory:
		return Quantity{v, Bytes}
	}
	return Quantity{v, Count}
}

// Rejection is one candidate turned down: by whom, why, and what would cure it.
type Rejection struct {
	Plugin string // filled in by the engine
	Reason Reason
	Cure   Cure
	// Subject is what it is about: a label, a taint, a resource, a queue.
	Subject    string
	Want, Have Quantity
	// Precedence decides which of several reasons names a refusal: the higher one
	// says more about the request. It is below 0 where the node is not of the kind
	// that the request meant, and above where a plugin's own reasons need an order.
	Precedence int8
	// Queue is the queue whose bound is in the way, of a rejection before any node
	// is looked at: it stands until what the queue uses or its terms change. "":
	// it may depend on anything.
	Queue string
}

// OtherKind is the Precedence of rejections of nodes that the request did not mean.
const OtherKind int8 = -1

// gap is how far the candidate is from passing, in parts of a million: 0 is
// nearest. What cannot be measured is far.
func (r *Rejection) gap() int64 {
	const far = 1_000_000
	if r.Want.Unit == NoUnit || r.Want.Unit != r.Have.Unit || r.Want.Value <= 0 || r.Have.Value < 0 {
		return far
	}
	if r.Have.Value >= r.Want.Value {
		return 0
	}
	return cluster.MulDiv(r.Want.Value-r.Have.Value, far, r.Want.Value)
}
