// Package affinityscorer scores nodes by what tasks prefer of their labels and
// jobs of their neighbours.
//
// Every preference has a weight; a negative one, or one to be away, counts
// against a node. A node's score is
//
//	(Σ weights of what holds − least) × 100 ÷ (most − least)
//
// where least is the sum of all negative weights and most that of all positive
// ones: 100 is everything that was wished for and nothing that was not. A term
// about jobs holds where at least one task that it matches is placed in the
// node's domain; a node that is in no domain fulfils none. Labels and neighbours
// are two scores, each left out where nothing is preferred.
//
// What is required is AffinityRequiredFilter's; this plugin turns nothing down.
package affinityscorer

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/internal/neighbours"
)

// Name is the plugin's name in a profile.
const Name = "AffinityScorer"

type plugin struct {
	counter neighbours.Counter
	job     *cluster.Job // that was asked about last
	wishes  []wish
}

// wish is one preference about neighbours.
type wish struct {
	term   *neighbours.Term
	weight int64
}

// New builds the plugin. It has no arguments.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.job = nil
	p.counter.Open(s)
	s.Hooks.AddStaticScore(prefersNodes, scoreNode)
	s.Hooks.AddTaskScore(prefersJobs, p.scoreJobs)
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
		p.job, p.wishes = j, p.wishes[:0]
		for i := range j.Affinity {
			if t := &j.Affinity[i]; t.Weight != 0 {
				w := wish{p.counter.Term(j, t), int64(t.Weight)}
				if t.Anti {
					w.weight = -w.weight
				}
				p.wishes = append(p.wishes, w)
			}
		}
	}
	var sum scale
	for _, w := range p.wishes {
		tasks, _ := w.term.In(n)
		sum.add(w.weight, tasks > 0)
	}
	return sum.score()
}

// scale is a sum of weights and the bounds it may have.
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

// score is 100 where nothing is preferred.
func (s *scale) score() float64 {
	if s.most == s.least {
		return 100
	}
	return float64((s.sum-s.least)*100) / float64(s.most-s.least)
}
