// Package affinityrequiredfilter turns down nodes that miss what a task requires
// of their labels, and domains of nodes that miss what its job requires of its
// neighbours: to be near other jobs, or away from them.
//
// What is required fails closed: a domain that nobody knows is no domain. What
// is merely preferred is AffinityScorer's, plain node selectors LabelFilter's.
//
// Terms about jobs work as on Kubernetes. A job's own placed tasks count. A term
// to be near jobs that matches the job itself passes while no such job is
// placed anywhere, or the first of them could never start. To be kept away is
// mutual: a placed job keeps those away that its required anti-terms match. A job
// that was evicted has made room: others are placed, and start once it has left.
package affinityrequiredfilter

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/neighbours"
)

// Name is the plugin's name in a profile.
const Name = "AffinityRequiredFilter"

// The reasons.
const (
	AffinityMismatch engine.Reason = "AffinityMismatch" // the node's labels fulfil none of the required terms
	DomainUnknown    engine.Reason = "DomainUnknown"    // the node lacks the label that names the domain
	JobAffinityUnmet engine.Reason = "JobAffinityUnmet" // a job to be near is not in the domain
	JobAntiAffinity  engine.Reason = "JobAntiAffinity"  // a job to be away from is in the domain
)

const (
	other = engine.Grow | engine.Relax
	held  = engine.Wait | engine.Evict
)

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: AffinityMismatch, Cure: other, Phrase: "required affinity to {subject} not met", Meaning: "The node's labels fulfil none of the terms that the task requires. The subject is the label at which the first term fails."},
	{Reason: DomainUnknown, Cure: other, Phrase: "label {subject}, which names the domain, missing", Meaning: "The job must be near another in a domain that a label names, and the node lacks that label. The subject is the label."},
	{Reason: JobAffinityUnmet, Cure: engine.Wait, Phrase: "no job near it that matches {subject}", Meaning: "The job must be near another, and none that matches is placed in the node's domain. One may come; evicting somebody does not help. The subject is the term."},
	{Reason: JobAntiAffinity, Cure: held, Phrase: "too near to jobs that match {subject}", Meaning: "A job that this one must be away from, or that keeps it away, is placed in the node's domain; have counts its tasks. The subject is the term."},
}

type plugin struct {
	counter neighbours.Counter
	seen    view // of the job that was asked about last
}

// view is what the terms of one job come to.
type view struct {
	job     *cluster.Job
	changes uint64
	near    []*neighbours.Term
	away    []*neighbours.Term // its own anti-terms, then those of placed jobs that match it
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{counter: neighbours.Counter{Holders: true}} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.seen = view{}
	p.counter.Open(s)
	s.Hooks.AddStaticFilter(matters, admit)
	s.Hooks.AddPreFilter(p.before)
	s.Hooks.AddTaskFilter(p.matters, p.admit)
	s.Hooks.AddExclusion(p.exclusions)
}

func matters(s *cluster.Shape) bool { return len(s.Required) > 0 }

// admit judges the node's labels: one fulfilled term is enough.
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
	return &engine.Rejection{Reason: AffinityMismatch, Cure: other, Subject: subject, Precedence: engine.OtherKind}
}

// before turns a job down that must be near somebody who is nowhere: no node
// need be asked.
func (p *plugin) before(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
	if len(j.Affinity) == 0 {
		return nil
	}
	for _, t := range p.look(j).near {
		if t.Anywhere() == 0 && !t.Matches(j) {
			return unmet(t)
		}
	}
	return nil
}

func unmet(t *neighbours.Term) *engine.Rejection {
	return &engine.Rejection{Reason: JobAffinityUnmet, Cure: engine.Wait, Subject: t.Subject, Want: count(1), Have: count(0)}
}

func (p *plugin) matters(_ *cluster.Task, j *cluster.Job) bool {
	v := p.look(j)
	return len(v.near)+len(v.away) > 0
}

// admit judges the node's neighbours; what no waiting cures comes first.
func (p *plugin) admit(_ *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	v := p.look(j)
	var waiting *engine.Rejection
	for _, t := range v.near {
		tasks, known := t.In(n)
		if !known {
			return &engine.Rejection{Reason: DomainUnknown, Cure: other, Subject: t.Within(), Precedence: engine.OtherKind}
		}
		first := t.Anywhere() == 0 && t.Matches(j)
		if tasks == 0 && !first && waiting == nil {
			waiting = unmet(t)
		}
	}
	if waiting != nil {
		return waiting
	}
	for _, t := range v.away {
		if tasks, _ := t.In(n); tasks > 0 {
			return &engine.Rejection{Reason: JobAntiAffinity, Cure: held, Subject: t.Subject, Want: count(0), Have: count(tasks)}
		}
	}
	return nil
}

// exclusions are the anti-terms of the job that match the job itself.
func (p *plugin) exclusions(j *cluster.Job) []engine.Exclusion {
	var out []engine.Exclusion
	for i := range j.Affinity {
		if t := &j.Affinity[i]; t.Anti && t.Weight == 0 {
			if term := p.counter.Term(j, t); term.Matches(j) {
				out = append(out, engine.Exclusion{Level: t.Within, Reason: JobAntiAffinity, Subject: term.Subject})
			}
		}
	}
	return out
}

// look finds the counts that concern the job. Jobs are asked about many times in a row.
func (p *plugin) look(j *cluster.Job) *view {
	v := &p.seen
	if v.job == j && v.changes == p.counter.Changes() {
		return v
	}
	*v = view{job: j, changes: p.counter.Changes(), near: v.near[:0], away: v.away[:0]}
	for i := range j.Affinity {
		switch t := &j.Affinity[i]; {
		case t.Weight != 0:
		case t.Anti:
			v.away = append(v.away, p.counter.Term(j, t))
		default:
			v.near = append(v.near, p.counter.Term(j, t))
		}
	}
	v.away = append(v.away, p.counter.Against(j)...)
	return v
}

func count(n int) engine.Quantity { return engine.Quantity{Value: int64(n), Unit: engine.Count} }
