// Package tenantadmission keeps queues within their limits, and within those of
// the queues above them: what a queue may never have, and what it may not have
// more of while its tasks hold so much. Where a queue has a quota, what is not
// preemptible runs only inside it: what nobody can take back must be deserved.
//
// It is a hard filter: with it in the profile no placement takes a queue beyond
// a limit. It refuses to know whose turn it is and what a fair share would be.
//
// What a task costs its queue is mostly known before any node is looked at, and
// is then refused there. What depends on the node is bounded from above on each
// node: memory of a device, whole nodes, layers, the name under which the node's
// devices are booked, and their product, where a queue has terms for it. A MIG
// slice counts as its fraction of nvidia.com/gpu where the queue has no terms for
// the slice. On unified memory what is claimed of devices counts as memory too.
package tenantadmission

import (
	"iter"
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
	QueueQuotaTooSmall   engine.Reason = "QueueQuotaTooSmall"   // it is not preemptible, and alone is beyond the quota
	QueueQuotaReached    engine.Reason = "QueueQuotaReached"    // it is, together with others that are not preemptible
)

const held = engine.Wait | engine.Evict

// reasons documents what the plugin gives as reasons.
var reasons = []engine.ReasonDoc{
	{Reason: QueueForbidsResource, Cure: engine.Relax, Phrase: "{subject} is not theirs to use", Meaning: "The queue may not use the resource at all: its limit is 0. The subject is the queue and the resource."},
	{Reason: QueueLimitTooSmall, Cure: engine.Relax, Phrase: "{subject}: want {want}, the limit is {have}", Meaning: "The task, or the least that must run of its job, takes more of the resource than the queue may ever hold. Have is the limit; the subject is the queue and the resource."},
	{Reason: QueueLimitReached, Cure: held, Phrase: "{subject}: want {want}, {have} left of the limit", Meaning: "The queue's tasks hold so much of the resource that this one would go beyond the limit. Have is what is left of it; the subject is the queue and the resource."},
	{Reason: QueueQuotaTooSmall, Cure: engine.Relax, Phrase: "{subject}: not preemptible, want {want}, the quota is {have}", Meaning: "The job is not preemptible, so it runs only inside the queue's quota, and it takes more of the resource than that. Have is the quota; the subject is the queue and the resource."},
	{Reason: QueueQuotaReached, Cure: engine.Wait, Phrase: "{subject}: not preemptible, want {want}, {have} left of the quota", Meaning: "The job is not preemptible, so it runs only inside the queue's quota, and others that are not preemptible hold too much of it. Have is what is left of the quota; the subject is the queue and the resource."},
}

type plugin struct {
	view cluster.View
	job  verdict
}

// verdict is what was found out about the minimum of the form that was asked about last.
type verdict struct {
	alternative *cluster.Alternative
	rejection   *engine.Rejection
}

// New builds the plugin. It has no arguments: limits are the queues'.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.view, p.job = s.View, verdict{}
	s.Hooks.AddPreFilter(p.before)
	s.Hooks.AddTaskFilter(p.matters, p.admit)
}

// before judges by what the task costs at least, wherever it goes.
func (p *plugin) before(t *cluster.Task, j *cluster.Job) *engine.Rejection {
	if !p.limited(j) {
		return nil
	}
	r := p.judge(j, func(b bound) cost {
		c := cost{name: b.name, most: t.Shape.Resources.Of(b.name)}
		if devices := p.least(t.Shape, &b); devices > 0 {
			c.most, c.device = devices, true
		}
		c.least = c.most
		return c
	})
	if r != nil && !r.Cure.Transient() {
		return r
	}
	if never := p.minimum(t, j); never != nil {
		return never
	}
	return r
}

// limited reports whether the job's queue, or one above it, bounds anything for the job.
func (p *plugin) limited(j *cluster.Job) bool {
	for range p.bounds(j) {
		return true
	}
	return false
}

// bound is the most of a resource that a queue's tasks may hold: of all of them
// its limit, of those that are not preemptible its quota.
type bound struct {
	queue *cluster.Queue
	name  string
	value int64
	used  int64
	quota bool
}

// bounds are all that the job is under: its own queue's first, then those above.
func (p *plugin) bounds(j *cluster.Job) iter.Seq[bound] {
	return func(yield func(bound) bool) {
		for q := p.view.Queue(j.Queue); q != nil; q = p.view.Parent(q) {
			for i := range q.Limits {
				l := &q.Limits[i]
				if !yield(bound{q, l.Name, l.Value, q.Used.Of(l.Name), false}) {
					return
				}
			}
			for i := range q.Quota {
				l := &q.Quota[i]
				if !j.Preemptible && !yield(bound{q, l.Name, l.Value, q.Firm.Of(l.Name), true}) {
					return
				}
			}
		}
	}
}

// judge holds a cost against all that the job is under. What can never be had is
// said before what cannot be had now.
func (p *plugin) judge(j *cluster.Job, of func(bound) cost) *engine.Rejection {
	var waiting *engine.Rejection
	for b := range p.bounds(j) {
		c := of(b)
		if r := c.judge(&b, j); r != nil && !r.Cure.Transient() {
			return r
		} else if waiting == nil {
			waiting = r
		}
	}
	return waiting
}

// minimum judges the least that must run of the job, all together.
func (p *plugin) minimum(t *cluster.Task, j *cluster.Job) *engine.Rejection {
	if p.job.alternative != nil && slices.Contains(p.job.alternative.Tasks, t) {
		return p.job.rejection
	}
	i := slices.IndexFunc(j.Alternatives, func(a cluster.Alternative) bool { return slices.Contains(a.Tasks, t) })
	alt := &j.Alternatives[i]
	p.job = verdict{alternative: alt}
	if alt.Min < 2 {
		return nil // the task itself was judged already
	}
	for b := range p.bounds(j) {
		if c := p.together(alt.Tasks, alt.Min, &b); b.value > 0 && c.least > b.value {
			p.job.rejection = c.reject(&b, b.tooSmall(), engine.Relax, c.least, b.value)
			break
		}
	}
	return p.job.rejection
}

// matters where a bound is on something whose cost is not known before.
func (p *plugin) matters(t *cluster.Task, j *cluster.Job) bool {
	need := &t.Shape.Need
	if need.None() {
		return false
	}
	_, exact := t.Shape.Cheapest()
	known := exact && p.nameOf(need) != "" // before any node is looked at
	for b := range p.bounds(j) {
		_, product := cluster.SplitProduct(b.name)
		switch {
		case b.name == cluster.CPU:
		case b.name == cluster.Memory:
			if need.Layers != nil || p.pots() {
				return true // layers may spill into it, and devices share it
			}
		case product != "":
			if some, all := p.product(need, b.name); some && !(known && all) {
				return true
			}
		case !known || p.varies(need, &b):
			return true
		}
	}
	return false
}

// admit judges by what the task would cost at most on this node.
func (p *plugin) admit(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	var layers []cluster.Claim
	if t.Shape.Open() {
		ok := false
		if layers, ok = n.Choose(t.Shape, nil); !ok {
			return nil // it does not fit, which is not for us to say
		}
	}
	return p.judge(j, func(b bound) cost { return costOn(t.Shape, n, &b, layers) })
}

// cost is what a task takes of one resource, as far as that is known.
type cost struct {
	name        string
	device      bool // it is counted in thousandths of devices
	least, most int64
}

// judge compares the cost with the bound and with what is left of it. It says
// never where even the least is too much, or nobody but the job holds anything.
func (c *cost) judge(b *bound, j *cluster.Job) *engine.Rejection {
	left := b.value - b.used
	switch {
	case c.most <= 0 || (c.most <= left && b.value > 0):
		return nil
	case b.value <= 0 && !b.quota:
		return c.reject(b, QueueForbidsResource, engine.Relax, c.most, 0)
	case b.value <= 0:
		return c.reject(b, QueueQuotaTooSmall, engine.Relax, c.most, 0)
	case c.least > b.value:
		return c.reject(b, b.tooSmall(), engine.Relax, c.least, b.value)
	}
	if own := holds(j, b); own == b.used { // nobody to wait for
		return c.reject(b, b.tooSmall(), engine.Relax, own+c.most, b.value)
	}
	if b.quota {
		return c.reject(b, QueueQuotaReached, engine.Wait, c.most, left)
	}
	return c.reject(b, QueueLimitReached, held, c.most, left)
}

// tooSmall is the reason why the job can never stay within the bound.
func (b *bound) tooSmall() engine.Reason {
	if b.quota {
		return QueueQuotaTooSmall
	}
	return QueueLimitTooSmall
}

func (c *cost) reject(b *bound, reason engine.Reason, cure engine.Cure, want, have int64) *engine.Rejection {
	r := &engine.Rejection{Reason: reason, Cure: cure, Subject: "queue " + b.queue.Name + ": " + c.name, Queue: b.queue.Name,
		Want: engine.AmountOf(c.name, want), Have: engine.AmountOf(c.name, max(0, have))}
	if c.device {
		r.Want.Unit, r.Have.Unit = engine.Devices, engine.Devices
	}
	return r
}
