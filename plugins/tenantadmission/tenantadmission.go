// Package tenantadmission keeps queues within their limits, and within those of the queues
// above them. If a queue has a quota, jobs that are not preemptible run only within it,
// because what they hold cannot be reclaimed.
//
// With this plugin in the profile, no placement makes a queue exceed a limit. It does not
// order queues and does not consider fair shares.
//
// What a task costs its queue is mostly known before any node is looked at, and is then
// checked once for all nodes. What depends on the node is bounded from above for each node:
// the memory of a device, whole nodes, layers, the resource name of the node's devices, and
// their product if a queue has a quota, limit or weight for it. A MIG slice counts as its
// fraction of nvidia.com/gpu if the queue has no quota, limit or weight for the slice. On
// unified memory, what is claimed of devices counts as memory too.
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
	QueueForbidsResource engine.Reason = "QueueForbidsResource" // the limit is 0
	QueueLimitTooSmall   engine.Reason = "QueueLimitTooSmall"   // the job alone exceeds the limit
	QueueLimitReached    engine.Reason = "QueueLimitReached"    // the job exceeds the limit together with what the queue holds
	QueueQuotaTooSmall   engine.Reason = "QueueQuotaTooSmall"   // the job is not preemptible and alone exceeds the quota
	QueueQuotaReached    engine.Reason = "QueueQuotaReached"    // it exceeds the quota together with other jobs that are not preemptible
)

const cureWaitOrEvict = engine.Wait | engine.Evict

// reasons documents the reasons that the plugin gives.
var reasons = []engine.ReasonDoc{
	{Reason: QueueForbidsResource, Cure: engine.Relax, Phrase: "{subject} may not be used", Meaning: "The queue may not use the resource: its limit is 0. The subject is the queue and the resource."},
	{Reason: QueueLimitTooSmall, Cure: engine.Relax, Phrase: "{subject}: want {want}, the limit is {have}", Meaning: "The task, or the minimum of its job, takes more of the resource than the limit of the queue. Have is the limit; the subject is the queue and the resource."},
	{Reason: QueueLimitReached, Cure: cureWaitOrEvict, Phrase: "{subject}: want {want}, {have} left of the limit", Meaning: "With this task, the queue would hold more of the resource than its limit. Have is what is left of the limit; the subject is the queue and the resource."},
	{Reason: QueueQuotaTooSmall, Cure: engine.Relax, Phrase: "{subject}: not preemptible, want {want}, the quota is {have}", Meaning: "The job is not preemptible, so it runs only within the queue's quota, and it takes more of the resource than the quota. Have is the quota; the subject is the queue and the resource."},
	{Reason: QueueQuotaReached, Cure: engine.Wait, Phrase: "{subject}: not preemptible, want {want}, {have} left of the quota", Meaning: "The job is not preemptible, so it runs only within the queue's quota, and other jobs that are not preemptible hold too much of it. Have is what is left of the quota; the subject is the queue and the resource."},
}

type plugin struct {
	view     cluster.View
	job      cachedMinimum
	register func(*engine.Hooks) // registers the hooks; nil before the first session
}

// cachedMinimum caches the rejection for the minimum of the alternative that was last checked.
type cachedMinimum struct {
	alternative *cluster.Alternative
	rejection   *engine.Rejection
}

// New builds the plugin. It has no arguments: limits are part of the queues.
var New = engine.WithoutArguments(func() engine.Plugin { return &plugin{} })

func (p *plugin) Name() string              { return Name }
func (*plugin) Reasons() []engine.ReasonDoc { return reasons }

func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	if p.register == nil {
		p.register = p.registration()
	}
	p.register(s.Hooks)
}

// Reopen prepares the plugin for the session.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.view, p.job = s.View, cachedMinimum{}
	return true
}

// registration returns the function that registers the hooks. The functions of the hooks are made
// once, because each method value that is made allocates memory.
func (p *plugin) registration() func(*engine.Hooks) {
	preFilter, matters, admit := p.preFilter, p.matters, p.admit
	return func(h *engine.Hooks) {
		h.AddPreFilter(preFilter)
		h.AddTaskFilter(matters, admit)
	}
}

// preFilter checks the least that the task, and the minimum of its job, cost on any node.
func (p *plugin) preFilter(t *cluster.Task, j *cluster.Job) *engine.Rejection {
	if !p.hasBound(j) {
		return nil
	}
	r := p.judge(j, func(b bound) cost {
		c := cost{name: b.name, most: t.Shape.Resources.Of(b.name)}
		if devices := p.leastDeviceCost(t.Shape, &b); devices > 0 {
			c.most, c.device = devices, true
		}
		c.least = c.most
		return c
	})
	if r != nil && !r.Cure.Transient() {
		return r
	}
	if never := p.checkMinimum(t, j); never != nil {
		return never
	}
	return r
}

// hasBound reports whether the job's queue, or one above it, has any bound for the job.
func (p *plugin) hasBound(j *cluster.Job) bool {
	for range p.bounds(j) {
		return true
	}
	return false
}

// bound is the most of a resource that tasks of a queue may hold: all tasks together its
// limit, and the tasks that are not preemptible its quota.
type bound struct {
	queue *cluster.Queue
	name  string
	value int64
	used  int64
	quota bool
}

// bounds yields all bounds that apply to the job: those of its queue, then those of the
// queues above.
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
				if !j.Preemptible && !yield(bound{q, l.Name, l.Value, q.UsedByFirm.Of(l.Name), true}) {
					return
				}
			}
		}
	}
}

// judge compares a cost with all bounds of the job. A rejection that waiting does not cure
// is returned before one that it cures.
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

// checkMinimum checks what the minimum of the job costs at least.
func (p *plugin) checkMinimum(t *cluster.Task, j *cluster.Job) *engine.Rejection {
	if p.job.alternative != nil && slices.Contains(p.job.alternative.Tasks, t) {
		return p.job.rejection
	}
	i := slices.IndexFunc(j.Alternatives, func(a cluster.Alternative) bool { return slices.Contains(a.Tasks, t) })
	alt := &j.Alternatives[i]
	p.job = cachedMinimum{alternative: alt}
	if alt.Min < 2 {
		return nil // the task itself is already checked
	}
	for b := range p.bounds(j) {
		if c := p.costOfCheapest(alt.Tasks, alt.Min, &b); b.value > 0 && c.least > b.value {
			p.job.rejection = c.reject(&b, b.tooSmall(), engine.Relax, c.least, b.value)
			break
		}
	}
	return p.job.rejection
}

// matters reports whether the cost depends on the node for some bound.
func (p *plugin) matters(t *cluster.Task, j *cluster.Job) bool {
	need := &t.Shape.Need
	if need.None() {
		return false
	}
	_, exact := t.Shape.Cheapest()
	known := exact && p.nameOf(need) != "" // the cost is known before any node is looked at
	for b := range p.bounds(j) {
		_, product := cluster.SplitProduct(b.name)
		switch {
		case b.name == cluster.CPU:
		case b.name == cluster.Memory:
			if need.Layers != nil || p.hasUnified() {
				return true // layers may be put into it, and devices may share it
			}
		case product != "":
			if some, all := p.hasProduct(need, b.name); some && !(known && all) {
				return true
			}
		case !known || p.varies(need, &b):
			return true
		}
	}
	return false
}

// admit checks the most that the task would cost on this node.
func (p *plugin) admit(t *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
	var layers []cluster.Claim
	if t.Shape.HasOpenCount() {
		ok := false
		if layers, ok = n.Choose(t.Shape, nil); !ok {
			return nil // the task does not fit; NodeResourcesFit rejects the node
		}
	}
	return p.judge(j, func(b bound) cost { return costOn(t.Shape, n, &b, layers) })
}

// cost is what a task takes of one resource: the least and the most.
type cost struct {
	name        string
	device      bool // the amounts are thousandths of devices
	least, most int64
}

// judge compares the cost with the bound and with what is left of it. Waiting does not
// help if even the least is too much, or if only the job itself holds anything.
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
	if own := holds(j, b); own == b.used { // no other job holds anything
		return c.reject(b, b.tooSmall(), engine.Relax, own+c.most, b.value)
	}
	if b.quota {
		return c.reject(b, QueueQuotaReached, engine.Wait, c.most, left)
	}
	return c.reject(b, QueueLimitReached, cureWaitOrEvict, c.most, left)
}

// tooSmall returns the reason for a job that can never stay within the bound.
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
