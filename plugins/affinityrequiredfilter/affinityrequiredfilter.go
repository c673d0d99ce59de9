// Package affinityrequiredfilter rejects nodes with labels that do not match what a task
// requires, and nodes in domains that do not match what its job requires of other jobs:
// that they are in the same domain, or that they are not.
//
// A node without the label that names the domain is in no domain. It is rejected
// for a job that must be near another job. AffinityScorer handles preferred terms,
// and LabelFilter plain node selectors.
//
// Terms about jobs work as in Kubernetes. The placed tasks of the job itself count. A
// term to be near jobs that also matches the job itself is met while no such job is
// placed anywhere; otherwise the first of them could never start. Anti-affinity is
// mutual: the required anti-terms of a placed job also keep the jobs that they match
// away. An evicted job no longer counts: other jobs are placed, and start once its tasks
// have released their room.
package affinityrequiredfilter

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/neighbours"
)

// Name is the plugin's name in a profile.
const Name = "AffinityRequiredFilter"

// The reasons.
const (
	AffinityMismatch engine.Reason = "AffinityMismatch" // the node's labels match none of the required terms
	DomainUnknown    engine.Reason = "DomainUnknown"    // the node lacks the label that names the domain
	JobAffinityUnmet engine.Reason = "JobAffinityUnmet" // no job that this one must be near is in the domain
	JobAntiAffinity  engine.Reason = "JobAntiAffinity"  // a job that this one must be away from is in the domain
	TasksMustBeApart engine.Reason = "TasksMustBeApart" // another task of the replica is on the node
)

const (
	cureOtherNode   = engine.Grow | engine.Relax
	cureWaitOrEvict = engine.Wait | engine.Evict
)

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: AffinityMismatch, Cure: cureOtherNode, Phrase: "required affinity to {subject} not met", Meaning: "The node's labels match none of the terms that the task requires. The subject is the label at which the first term fails."},
	{Reason: DomainUnknown, Cure: cureOtherNode, Phrase: "label {subject}, which names the domain, missing", Meaning: "The job must be in the same domain as another job, and the node lacks the label that names the domain. The subject is the label."},
	{Reason: JobAffinityUnmet, Cure: engine.Wait, Phrase: "no job in its domain that matches {subject}", Meaning: "The job must be in the same domain as another job, and no job that matches is placed in the node's domain. Such a job may be placed later; evictions do not help. The subject is the term."},
	{Reason: JobAntiAffinity, Cure: cureWaitOrEvict, Phrase: "too near to jobs that match {subject}", Meaning: "The node's domain has a placed job that this job must be away from, or that must be away from this job. Have is the number of its tasks. The subject is the term."},
	{Reason: TasksMustBeApart, Cure: cureWaitOrEvict, Phrase: "its tasks must be on different nodes", Meaning: "The replica of a model is divided over several nodes, and another of its tasks is on the node."},
}

type plugin struct {
	counter  neighbours.Counter
	cached   jobTerms            // of the job that the plugin was last called for
	register func(*engine.Hooks) // registers the hooks; nil before the first session
}

// jobTerms holds the terms that apply to one job.
type jobTerms struct {
	job     *cluster.Job
	changes uint64
	near    []*neighbours.Term
	away    []*neighbours.Term // its own anti-terms, then those of placed jobs that match it
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{counter: neighbours.Counter{CountAntiTerms: true}} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	p.counter.Open(s)
	if p.register == nil {
		p.register = p.registration()
	}
	p.register(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.cached = jobTerms{}
	p.counter.Reopen(s)
	return true
}

// registration returns the function that registers the hooks. The functions of the hooks are made
// once, because each method value that is made allocates memory.
func (p *plugin) registration() func(*engine.Hooks) {
	preFilter, applies, admitTask, exclusions := p.preFilter, p.matters, p.admit, p.exclusions
	return func(h *engine.Hooks) {
		h.AddStaticFilter(matters, admit)
		h.AddPreFilter(preFilter)
		h.AddTaskFilter(applies, admitTask)
		h.AddExclusion(exclusions)
	}
}

func matters(s *cluster.Shape) bool { return len(s.Required) > 0 }

// admit accepts a node if its labels match at least one of the required terms.
func admit(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
	for _, t := range s.Required {
		if t.Matches(n.Labels) {
			return nil
		}
	}
	subject := ""
	for first, i := s.Required[0], 0; i < len(first); i++ {
		if !first[i].Matches(n.Labels) {
			subject = first[i].Key
			break
		}
	}
	return &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Subject: subject, Precedence: engine.OtherKind}
}

// preFilter rejects a job for all nodes if it must be near a job that is placed nowhere, so
// that no node has to be looked at.
func (p *plugin) preFilter(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
	if len(j.Affinity) == 0 {
		return nil
	}
	for _, t := range p.termsOf(j).near {
		if t.Total() == 0 && !t.Matches(j) {
			return unmet(t)
		}
	}
	return nil
}

func unmet(t *neighbours.Term) *engine.Rejection {
	return &engine.Rejection{Reason: JobAffinityUnmet, Cure: engine.Wait, Subject: t.Subject, Want: count(1), Have: count(0)}
}

func (p *plugin) matters(t *cluster.Task, j *cluster.Job) bool {
	v := p.termsOf(j)
	return len(v.near)+len(v.away) > 0 || mustBeApart(t, j)
}

// mustBeApart reports whether the tasks of a replica of a model must be on different nodes. A
// form with one task has no other task to be apart from.
func mustBeApart(t *cluster.Task, j *cluster.Job) bool {
	return len(j.Alternatives[t.Alternative].Tasks) > 1 && slices.ContainsFunc(j.Affinity, func(t cluster.JobTerm) bool { return t.KeepsReplicaApart() })
}

// admit checks the domain of the node. A rejection that waiting does not cure is returned first.
func (p *plugin) admit(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	if mustBeApart(t, j) && slices.ContainsFunc(n.Tasks, func(o *cluster.Task) bool { return o.Job == j && o.KeepsRoom() }) {
		return &engine.Rejection{Reason: TasksMustBeApart, Cure: cureWaitOrEvict}
	}
	v := p.termsOf(j)
	var waiting *engine.Rejection
	for _, t := range v.near {
		tasks, known := t.TasksIn(n)
		if !known {
			return &engine.Rejection{Reason: DomainUnknown, Cure: cureOtherNode, Subject: t.Within(), Precedence: engine.OtherKind}
		}
		first := t.Total() == 0 && t.Matches(j)
		if tasks == 0 && !first && waiting == nil {
			waiting = unmet(t)
		}
	}
	if waiting != nil {
		return waiting
	}
	for _, t := range v.away {
		if tasks, _ := t.TasksIn(n); tasks > 0 {
			return &engine.Rejection{Reason: JobAntiAffinity, Cure: cureWaitOrEvict, Subject: t.Subject, Want: count(0), Have: count(tasks)}
		}
	}
	return nil
}

// exclusions returns the required anti-terms of the job that match the job itself.
func (p *plugin) exclusions(j *cluster.Job) []engine.Exclusion {
	var out []engine.Exclusion
	for i := range j.Affinity {
		switch t := &j.Affinity[i]; {
		case !t.Anti || t.Weight != 0:
		case t.KeepsReplicaApart():
			out = append(out, engine.Exclusion{Level: t.Within, Reason: TasksMustBeApart})
		default:
			if term := p.counter.Term(j, t); term.Matches(j) {
				out = append(out, engine.Exclusion{Level: t.Within, Reason: JobAntiAffinity, Subject: term.Subject})
			}
		}
	}
	return out
}

// termsOf returns the terms that apply to the job. It remembers the last job, because
// filters are called for many nodes in a row with the same job.
func (p *plugin) termsOf(j *cluster.Job) *jobTerms {
	v := &p.cached
	if v.job == j && v.changes == p.counter.Changes() {
		return v
	}
	*v = jobTerms{job: j, changes: p.counter.Changes(), near: v.near[:0], away: v.away[:0]}
	for i := range j.Affinity {
		switch t := &j.Affinity[i]; {
		case t.Weight != 0 || t.KeepsReplicaApart():
		case t.Anti:
			v.away = append(v.away, p.counter.Term(j, t))
		default:
			v.near = append(v.near, p.counter.Term(j, t))
		}
	}
	v.away = append(v.away, p.counter.AntiTermsMatching(j)...)
	return v
}

func count(n int) engine.Quantity { return engine.Quantity{Value: int64(n), Unit: engine.Count} }
