package engine

import (
	"slices"
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

// ReasonDoc documents a reason: what it means, for the reference, and how it is
// told in a sentence. Where Phrase is empty, words are made of the reason's name.
type ReasonDoc struct {
	Reason  Reason // the constant
	Cure    Cure   // what helps
	Meaning string // one or two sentences for the reference

	// Phrase says what is wrong with a candidate, or why a task is evicted. In it,
	// {subject}, {want} and {have} stand for those of the rejection.
	Phrase string
	One    string // replaces Phrase where the count that is wanted is 1, so that none is there
	About  string // replaces Phrase where the rejection has a subject

	// Spared says which jobs are protected for this reason from being evicted: it
	// completes "2 workloads …".
	Spared string
	// Span is how long after its start a job is protected; nil: the protection does
	// not end with time. In Spared, {time} stands for it, or for Spans where it is not
	// the same for all jobs.
	Span  func(s cluster.View, victim *cluster.Job, p Purpose) int64
	Spans string // stands for {time} where Span differs from job to job
}

// Documented is a plugin that documents the reasons which it gives.
type Documented interface {
	Reasons() []ReasonDoc
}

// Reasons are those of the engine itself, then those of its plugins in the profile's order.
func (e *Engine) Reasons() []ReasonDoc {
	out := slices.Clone(Reasons)
	for i := range e.plugins {
		if d, ok := e.plugins[i].Plugin.(Documented); ok {
			out = append(out, d.Reasons()...)
		}
	}
	return out
}

// Reasons documents those that the engine itself gives.
var Reasons = []ReasonDoc{
	{Reason: NoNodes, Cure: Grow, Phrase: "there is no node at all", Meaning: "There is no node at all."},
	{Reason: NoSuitableGroup, Cure: Grow, Phrase: "no group of nodes would do", Meaning: "No node group passed the group filters, even with every node free, or there is none: no node has devices."},
	{Reason: GroupInUse, Cure: Wait | Evict, Phrase: "the group would do once enough of its nodes are free", Meaning: "A node group would do once enough of its nodes are free."},
	{Reason: GroupGone, Cure: Wait | Grow, Phrase: "its group is gone", Meaning: "The node group that the replicas of its set were placed on, or that this form of the job is for, is not there, or there is no form of the job for it. The job is placed again when it is back. The subject is the group."},
	{Reason: ScaledDown, Phrase: "its set has enough replicas without it", Meaning: "Why a task is evicted: its set has more replicas than are desired, and the others are worth more. It does not come back."},
	{Reason: NobodyConsents, Phrase: "no plugin says that it may go", Spared: "that no plugin lets go", Meaning: "Why a victim stays: no plugin of the profile says that it may go."},
	{Reason: NoDomainFits, Cure: Wait | Evict | Grow, Phrase: "no domain that it must be in has room for its minimum", Meaning: "The job, or a subgroup of it, must be in one domain of a level (one rack, say), and no domain has room for its minimum. Waiting helps where some domain would do if it were empty; where none would, nodes are missing."},
	{Reason: TasksFailed, Phrase: "too many of its tasks failed", Meaning: "So many tasks of the job failed that those left do not make its minimum. It waits until failed ones are put anew."},
	{Reason: StillLeaving, Cure: Wait, Phrase: "tasks of its own have not left yet", Meaning: "Members of the gang were evicted and have not left yet; the gang is placed again when they have."},
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
	Value int64 // the number
	Unit  Unit  // what it counts: Count, Bytes and so on
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

// Rejection is one candidate turned down: by which plugin, why, and what would cure it.
type Rejection struct {
	Plugin string // filled in by the engine
	Reason Reason // a constant of the plugin
	Cure   Cure   // what would help
	// Subject is what it is about: a label, a taint, a resource, a queue.
	Subject    string
	Want, Have Quantity // how much was asked for, and how much there was
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
