// Package tenantadmission keeps queues within their limits: what a queue may
// never have, and what it may not have more of while its tasks hold so much.
//
// It is a hard filter: with it in the profile no placement takes a queue beyond
// a limit. It refuses to know whose turn it is and what a fair share would be.
//
// What a task costs its queue is mostly known before any node is looked at, and
// is then refused there. What depends on the node is bounded from above on each
// node: memory of a device, whole nodes, layers, and the name under which the
// node's devices are booked.
package tenantadmission

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "TenantAdmission"

// The reasons.
const (
	QueueForbidsResource engine.Reason = "QueueForbidsResource" // the limit is 0: not theirs to use
	QueueLimitTooSmall   engine.Reason = "QueueLimitTooSmall"   // the job alone is beyond the limit
	QueueLimitReached    engine.Reason = "QueueLimitReached"    // together with what the queue holds it is
)

const held = engine.Wait | engine.Evict

// Reasons documents what the plugin gives as reasons.
var Reasons = []engine.ReasonDoc{
	{Reason: QueueForbidsResource, Cure: engine.Relax, Meaning: "The queue may not use the resource at all: its limit is 0. The subject is the queue and the resource."},
	{Reason: QueueLimitTooSmall, Cure: engine.Relax, Meaning: "The task, or the least that must run of its job, takes more of the resource than the queue may ever hold. Have is the limit; the subject is the queue and the resource."},
	{Reason: QueueLimitReached, Cure: held, Meaning: "The queue's tasks hold so much of the resource that this one would go beyond the limit. Have is what is left of it; the subject is the queue and the resource."},
}

type plugin struct {
	state *cluster.State
	names []offer
	job   verdict
}

// verdict is what was found out about the minimum of the form that was asked about last.
type verdict struct {
	alternative *cluster.Alternative
	rejection   *engine.Rejection
}

// New builds the plugin. It has no arguments: limits are the queues'.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return &plugin{}, nil
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.state, p.names, p.job = s.State, nil, verdict{}
	s.AddPrePredicateFn(p.before)
	s.AddPredicateFn(p.matters, p.admit)
}

func (p *plugin) OnSessionClose(*engine.Session) {}

// before judges by what the task costs at least, wherever it goes.
func (p *plugin) before(t *cluster.Task, j *cluster.Job) *engine.Rejection {
	q := p.state.Queue(j.Queue)
	if q == nil || len(q.Limits) == 0 {
		return nil
	}
	devices, name := p.least(t.Shape)
	var waiting *engine.Rejection
	for i := range q.Limits {
		l := &q.Limits[i]
		c := cost{name: l.Name, most: t.Shape.Resources.Of(l.Name)}
		if devices > 0 && l.Name == name {
			c.most, c.device = devices, true
		}
		c.least = c.most
		if r := c.judge(q, j, l.Value); r != nil && !r.Cure.Transient() {
			return r
		} else if waiting == nil {
			waiting = r
		}
	}
	if r := p.minimum(t, j, q); r != nil {
		return r
	}
	return waiting
}

// minimum judges the least that must run of the job, all together.
func (p *plugin) minimum(t *cluster.Task, j *cluster.Job, q *cluster.Queue) *engine.Rejection {
	if p.job.alternative != nil && slices.Contains(p.job.alternative.Tasks, t) {
		return p.job.rejection
	}
	i := slices.IndexFunc(j.Alternatives, func(a cluster.Alternative) bool { return slices.Contains(a.Tasks, t) })
	alt := &j.Alternatives[i]
	p.job = verdict{alternative: alt}
	if alt.Min < 2 {
		return nil // the task itself was judged already
	}
	for _, l := range q.Limits {
		if c := p.together(alt.Tasks, alt.Min, l.Name); l.Value > 0 && c.least > l.Value {
			p.job.rejection = c.reject(q, QueueLimitTooSmall, engine.Relax, c.least, l.Value)
			break
		}
	}
	return p.job.rejection
}

// matters where the queue limits something whose cost is not known before.
func (p *plugin) matters(t *cluster.Task, j *cluster.Job) bool {
	need := &t.Shape.Need
	if need.None() || (exact(t.Shape) && p.nameOf(need) != "") {
		return false // known before any node is looked at
	}
	q := p.state.Queue(j.Queue)
	if q == nil {
		return false
	}
	for i := range q.Limits {
		switch q.Limits[i].Name {
		case cluster.CPU:
		case cluster.Memory:
			if need.Layers != nil {
				return true // layers may spill into it
			}
		default:
			return true
		}
	}
	return false
}

// admit judges by what the task would cost at most on this node.
func (p *plugin) admit(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	q := p.state.Queue(j.Queue)
	var layers []cluster.Claim
	if t.Shape.Need.Layers != nil && t.Shape.Need.Devices == 0 {
		ok := false
		if layers, ok = n.Choose(t.Shape, nil); !ok {
			return nil // it does not fit, which is not for us to say
		}
	}
	var waiting *engine.Rejection
	for i := range q.Limits {
		l := &q.Limits[i]
		c := costOn(t.Shape, n, l.Name, layers)
		if r := c.judge(q, j, l.Value); r != nil && !r.Cure.Transient() {
			return r
		} else if waiting == nil {
			waiting = r
		}
	}
	return waiting
}

// cost is what a task takes of one resource, as far as that is known.
type cost struct {
	name        string
	device      bool // it is counted in thousandths of devices
	least, most int64
}

// judge compares the cost with the limit and with what is left of it. It says
// never where even the least is too much, or nobody but the job holds anything.
func (c *cost) judge(q *cluster.Queue, j *cluster.Job, limit int64) *engine.Rejection {
	used := q.Used.Of(c.name)
	left := limit - used
	switch {
	case c.most <= 0 || (c.most <= left && limit > 0):
		return nil
	case limit <= 0:
		return c.reject(q, QueueForbidsResource, engine.Relax, c.most, 0)
	case c.least > limit:
		return c.reject(q, QueueLimitTooSmall, engine.Relax, c.least, limit)
	}
	if own := holds(j, c.name); own == used { // nobody to wait for
		return c.reject(q, QueueLimitTooSmall, engine.Relax, own+c.most, limit)
	}
	return c.reject(q, QueueLimitReached, held, c.most, left)
}

func (c *cost) reject(q *cluster.Queue, reason engine.Reason, cure engine.Cure, want, have int64) *engine.Rejection {
	r := &engine.Rejection{Reason: reason, Cure: cure, Subject: "queue " + q.Name + ": " + c.name,
		Want: engine.AmountOf(c.name, want), Have: engine.AmountOf(c.name, max(0, have))}
	if c.device {
		r.Want.Unit, r.Have.Unit = engine.Devices, engine.Devices
	}
	return r
}
