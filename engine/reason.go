package engine

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Reason names why a node was rejected, a job was refused or a task was evicted. Reasons are
// API: each is a documented constant of the plugin that uses it, and renaming one breaks
// users.
type Reason string

// Reasons that the engine itself uses.
const (
	NoNodes         Reason = "NoNodes"         // the cluster, or the part of it that the request allows, has no node
	NoSuitableGroup Reason = "NoSuitableGroup" // no node group passes the group filters, or there is no node group
	GroupInUse      Reason = "GroupInUse"      // a node group is suitable once enough of its nodes are free
	GroupMissing    Reason = "GroupGone"       // the node group that the job must be placed on does not exist any more
	NoDomainFits    Reason = "NoDomainFits"    // no domain of the required topology level has room for the minimum
	TasksFailed     Reason = "TasksFailed"     // so many tasks failed that the rest do not make up the minimum
	StillReleasing  Reason = "StillLeaving"    // tasks of the gang were evicted and still hold their room
	ScaledDown      Reason = "ScaledDown"      // the set has more replicas than desired, and this one is worth least

	VictimNotPreemptible Reason = "VictimNotPreemptible" // the job of the task is not preemptible
	VictimCannotMove     Reason = "VictimCannotMove"     // the task does not run undisturbed, or its job takes whole nodes
)

// ReasonDoc documents a reason: its meaning for the reference, and the phrases for messages
// to users. If Phrase is empty, messages are made from the words of the reason's name.
type ReasonDoc struct {
	Reason  Reason // the constant
	Cure    Cure   // what makes a rejection for this reason go away
	Meaning string // one or two sentences for the reference

	// Phrase says why a node is rejected or a task is evicted. {subject}, {want} and
	// {have} are replaced by those of the rejection.
	Phrase string
	One    string // is used instead of Phrase if Want is a count of 1, so that there is none
	About  string // is used instead of Phrase if the rejection has a Subject

	// Protects says which jobs this reason protects from eviction. It completes a sentence
	// that begins "2 workloads …", such as "in the same queue". It is empty for reasons that
	// protect no job.
	Protects string
	// Span returns for how long after its start a job is protected, in nanoseconds. It is
	// nil if the protection does not end with time. {time} in Protects is replaced by it, or
	// by Spans if the span is not the same for all jobs.
	Span  func(s cluster.View, victim *cluster.Job, p Purpose) int64
	Spans string // replaces {time} if Span differs from job to job
}

// Documented is a plugin that documents the reasons that it uses.
type Documented interface {
	Reasons() []ReasonDoc
}

// Reasons returns the documentation of the engine's own reasons, followed by those of its
// plugins in profile order.
func (e *Engine) Reasons() []ReasonDoc {
	out := slices.Clone(Reasons)
	for i := range e.plugins {
		if d, ok := e.plugins[i].Plugin.(Documented); ok && !e.plugins[i].earlier {
			out = append(out, d.Reasons()...)
		}
	}
	return out
}

// Reasons documents the reasons that the engine itself uses.
var Reasons = []ReasonDoc{
	{Reason: NoNodes, Cure: Grow, Phrase: "there is no node at all", Meaning: "There is no node at all."},
	{Reason: NoSuitableGroup, Cure: Grow, Phrase: "no node group is suitable", Meaning: "No node group passes the group filters, even with every node free, or there is no node group because no node has devices."},
	{Reason: GroupInUse, Cure: Wait | Evict, Phrase: "the node group is suitable once enough of its nodes are free", Meaning: "A node group is suitable once enough of its nodes are free."},
	{Reason: GroupMissing, Cure: Wait | Grow, Phrase: "its group is gone", Meaning: "The node group that the replicas of its set were placed on, or that this alternative of the job names, does not exist, or the job has no alternative for it. The job is placed once the group exists again. The subject is the group."},
	{Reason: ScaledDown, Phrase: "its set has enough replicas without it", Meaning: "Why a task is evicted: its set has more replicas than desired, and the other replicas are worth more. The task is not placed again."},
	{Reason: NoPluginAllows, Phrase: "no plugin allows its eviction", Protects: "that no plugin allows to be evicted", Meaning: "Why a victim is not evicted: no plugin of the profile allows its eviction."},
	{Reason: VictimNotPreemptible, Phrase: "its job is not preemptible", Protects: "that are not preemptible", Meaning: "Why a task is not moved: its job is not preemptible."},
	{Reason: VictimCannotMove, Phrase: "its job takes whole nodes, or does not run undisturbed", Protects: "that take whole nodes or do not run undisturbed", Meaning: "Why a task is not moved: its job takes whole nodes of one node group, runs below its minimum or in an alternative that its spec does not have any more, or has reservations; or the eviction of the task was refused a short time ago."},
	{Reason: NoDomainFits, Cure: Wait | Evict | Grow, Phrase: "no domain that it must be in has room for its minimum", Meaning: "The job, or a subgroup of it, must be in one domain of a topology level (such as one rack), and no domain has room for its minimum. Waiting helps if some domain would have room if it were empty; otherwise more nodes are needed."},
	{Reason: TasksFailed, Phrase: "too many of its tasks failed", Meaning: "So many tasks of the job failed that the rest do not make up its minimum. The job waits until failed tasks are created again."},
	{Reason: StillReleasing, Cure: Wait, Phrase: "its evicted tasks still hold their room", Meaning: "Tasks of the gang were evicted and still hold their room. The gang is placed again when they have released it."},
}

// Cure is a bit set of what would make a rejection go away. An empty Cure means that only
// another request helps.
type Cure uint8

// The cures.
const (
	Wait  Cure = 1 << iota // waiting, such as for other tasks to end
	Evict                  // evicting other tasks
	Grow                   // adding nodes, or nodes of another kind
	Relax                  // weakening a constraint of the request
)

// Transient reports whether waiting or evicting may help.
func (c Cure) Transient() bool { return c&(Wait|Evict) != 0 }

// unheld reports whether waiting may help and evicting does not, because no task holds what is
// missing.
func (c Cure) unheld() bool { return c&Wait != 0 && c&Evict == 0 }

// Names returns the names of the cures in the set.
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

// Unit is what a Quantity counts.
type Unit uint8

// The units.
const (
	NoUnit  Unit = iota // the quantity is not set
	Count               // whole things: devices, nodes, cores, units of an extended resource
	Bytes               // bytes of memory
	Cores               // thousandths of a core
	Devices             // thousandths of a device
)

// Quantity is a number with its unit.
type Quantity struct {
	Value int64 // the number
	Unit  Unit  // what it counts: Count, Bytes and so on
}

// AmountOf returns a quantity in the unit of the named resource.
func AmountOf(resource string, v int64) Quantity {
	switch resource {
	case cluster.CPU:
		return Quantity{v, Cores}
	case cluster.Memory:
		return Quantity{v, Bytes}
	}
	return Quantity{v, Count}
}

// Rejection is why a node, a node group or, before any node is considered, the whole cluster
// cannot take a task.
type Rejection struct {
	Plugin string // set by the engine
	Reason Reason // a constant of the plugin; a rejection without a reason fails the session
	Cure   Cure   // what would make the rejection go away
	// Subject is what the rejection is about, such as a label, a taint, a resource or a
	// queue.
	Subject    string
	Want, Have Quantity // how much was requested, and how much is available
	// WantBytes and HaveBytes are Want and Have in bytes of memory, if these are shares of a
	// device; 0: they are not known.
	WantBytes, HaveBytes int64
	// Precedence decides which of several reasons becomes the reason of a refusal: the
	// highest. It is below 0 if the request was not meant for this kind of node (see
	// OtherKind). A plugin may use values above 0 to order its own reasons.
	Precedence int8
	// Queue is set by a PreFilter that rejects a task because of the limit or share of a
	// queue. The job is then not tried again until what the queue uses, or its spec,
	// change. If Queue is empty, the rejection may depend on anything.
	Queue string
	// Own is set by a PreFilter whose answer for other jobs may differ although they differ from
	// this job only in name and age. They do not share the refusal then.
	Own bool
}

// OtherKind is the Precedence of rejections of nodes that the request was not meant for, such
// as nodes with devices of another kind.
const OtherKind int8 = -1

// gap returns how far the node is from passing, in millionths of what is requested. 0 is
// nearest. A rejection without comparable quantities counts as farthest.
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
