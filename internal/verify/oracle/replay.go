package oracle

import (
	"slices"

	"github.com/berth-project/berth/engine"
)

// replay applies the turns of a session to two placements, and checks where tasks are placed.
// After an eviction, reserved no longer has the task, so that other tasks can be nominated
// for its room. physical still has it until the session ends, so that no task can be bound
// to its room.
type replay struct {
	objects  *objects
	reserved *placement // bound and nominated tasks
	physical *placement // bound and releasing tasks
	history  *history
	findings *findings
}

// apply applies the turn to the placements and checks what was placed.
func (r *replay) apply(t *turn, p *turnPlan) {
	job := p.form.job.ID
	origins := map[*task]location{}
	for _, v := range r.objects.members(p.plan.victims()) {
		origins[v] = r.reserved.remove(v)
		r.history.addVictim(job, v)
	}
	r.reserved.barred |= p.plan.evicted
	r.placeTasks(t.placed)
	if len(t.placed) > 0 && !r.reserved.hasMinimum(p.form) {
		r.findings.add("placed below its minimum", job)
	}
	r.checkStarts(t, p.form)
	r.checkMoves(t, p.plan.moved, origins)
	if p.plan.victims() != 0 && len(t.placed) == 0 {
		r.findings.add("evictions for a job that is not placed", job)
	}
}

// placeTasks checks the placements and applies them.
func (r *replay) placeTasks(placed []*engine.Decision) {
	for _, d := range placed {
		t := r.objects.findTask(d.Task)
		if !r.reserved.isPending(t) {
			r.findings.add("placed, but it was not pending", t.task.ID)
			continue
		}
		n := r.objects.findNode(d.Node)
		if n < 0 {
			r.findings.add("placed on a node that does not exist", t.task.ID)
			continue
		}
		if why := r.reserved.queues.violation(t.form, t.amounts); why != "" {
			r.findings.add(why, t.task.ID)
		}
		if why := r.reserved.room.violation(t, n, d.Claims); why != "" {
			r.findings.add(why, t.task.ID)
		}
		if !r.reserved.inDomain(t, n) {
			r.findings.add("placed outside the domain of its job", t.task.ID)
		}
		r.reserved.place(t, location{node: n, claims: d.Claims, bound: d.Action == engine.Bind})
		r.history.placed |= t.bit()
		if d.Action != engine.Bind {
			continue
		}
		if why := r.physical.room.violation(t, n, d.Claims); why != "" {
			r.findings.add("bound before its room is free", t.task.ID+": "+why)
		}
		r.physical.place(t, location{node: n, claims: d.Claims})
	}
}

// checkStarts checks that tasks of the form are bound only if its minimum is bound.
func (r *replay) checkStarts(t *turn, f *form) {
	isBind := func(d *engine.Decision) bool { return d.Action == engine.Bind }
	if slices.ContainsFunc(t.placed, isBind) && !f.hasEnough(r.reserved.isBound) {
		r.findings.add("its tasks start although its minimum is not bound", f.job.ID)
	}
}

// checkMoves checks that every task that moves has a new location that differs from its
// former one, and applies the new locations.
func (r *replay) checkMoves(t *turn, moved taskSet, origins map[*task]location) {
	var landed taskSet
	for _, d := range t.landings {
		v := r.objects.findTask(d.Task)
		if d.Action == engine.Bind {
			r.findings.add("bound to another location before it has stopped", v.task.ID)
		}
		if o := origins[v]; r.objects.nodes[o.node].Name == d.Node && slices.Equal(o.claims, d.Claims) {
			r.findings.add("moved to its former location", v.task.ID)
		}
		landed |= v.bit()
	}
	if landed != moved {
		r.findings.add("moved, but it has no new location", list(r.objects.members(moved&^landed)))
	}
	for _, d := range t.extra {
		r.findings.add("surplus is placed together with a job that moves", d.Task.ID())
	}
	r.placeTasks(t.extra)
	r.placeTasks(t.landings)
	r.history.moved |= moved
}
