// Package affinityscorer scores nodes by the labels that tasks prefer, and by the
// other jobs that a job prefers to be near or away from.
//
// Each preference has a weight. The weight of an anti-term counts as negative. The
// score of a node is
//
//	(Σ weights of what holds − least) × 100 ÷ (most − least)
//
// where least is the sum of all negative weights and most the sum of all positive
// weights. So 100 means that every preferred term holds and no avoided one does. A term
// about jobs holds if at least one task that it matches is placed in the node's
// domain. On a node that is in no domain, no term about jobs holds. Labels and jobs
// are two separate scores, and each is omitted if nothing is preferred.
//
// AffinityRequiredFilter checks required terms. This plugin rejects no node.
package affinityscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/neighbours"
)

// Name is the plugin's name in a profile.
const Name = "AffinityScorer"

type plugin struct {
	counter     neighbours.Counter
	job         *cluster.Job // for which the preferences were computed
	preferences []preference
	score       engine.TaskScore // scoreJobs
}

// preference is one preference about other jobs. The weight of an anti-term is negative.
type preference struct {
	term   *neighbours.Term
	weight int64
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	p.counter.Open(s)
	s.Hooks.AddStaticScore(prefersNodes, scoreNode)
	if p.score == nil {
		p.score = p.scoreJobs // a method value is allocated each time that it is made
	}
	s.Hooks.AddTaskScore(prefersJobs, p.score)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.job = nil
	p.counter.Reopen(s)
	return true
}

func prefersNodes(s *cluster.Shape) bool {
	for i := range s.Preferred {
		if s.Preferred[i].Weight != 0 {
			return true
		}
	}
	return false
}

func scoreNode(s *cluster.Shape, n *cluster.Node) float64 {
	var sum scale
	for i := range s.Preferred {
		w := &s.Preferred[i]
		sum.add(int64(w.Weight), w.Term.Matches(n.Labels))
	}
	return sum.score()
}

func prefersJobs(_ *cluster.Task, j *cluster.Job) bool {
	for i := range j.Affinity {
		if j.Affinity[i].Weight != 0 {
			return true
		}
	}
	return false
}

func (p *plugin) scoreJobs(_ *cluster.Task, j *cluster.Job, n *cluster.Node) float64 {
	if p.job != j {
		p.job, p.preferences = j, p.preferences[:0]
		for i := range j.Affinity {
			if t := &j.Affinity[i]; t.Weight != 0 {
				w := preference{p.counter.Term(j, t), int64(t.Weight)}
				if t.Anti {
					w.weight = -w.weight
				}
				p.preferences = append(p.preferences, w)
			}
		}
	}
	var sum scale
	for _, w := range p.preferences {
		tasks, _ := w.term.TasksIn(n)
		sum.add(w.weight, tasks > 0)
	}
	return sum.score()
}

// scale is a sum of weights with its lowest and highest possible value.
type scale struct{ sum, least, most int64 }

func (s *scale) add(weight int64, holds bool) {
	if weight < 0 {
		s.least += weight
	} else {
		s.most += weight
	}
	if holds {
		s.sum += weight
	}
}

// score returns the sum on a scale from 0 to 100. It is 100 if nothing is preferred.
func (s *scale) score() float64 {
	if s.most == s.least {
		return 100
	}
	return float64((s.sum-s.least)*100) / float64(s.most-s.least)
}
