package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// helped reports whether something changed that may let the bucket's first job be placed.
func (k *bucket) helped(b *backlog) bool {
	if k.wokenByHint(b) {
		return true
	}
	if k.version == b.view.Version() {
		return false
	}
	found := false
	openShapes(k.toTry.job, func(t *cluster.Task) bool {
		found = k.changedFor(b, t)
		return !found
	})
	return found
}

// changedFor reports whether something changed that may let the task be placed. If a
// PreFilter rejects the task, it returns false and records what may cure that.
func (k *bucket) changedFor(b *backlog, t *cluster.Task) bool {
	if before := b.finder.before(t); before != nil { // no node can help
		if k.recheck = true; before.Before.Queue == "" {
			was := k.waits()
			if k.heed(b.finder.hooks.hints.wakes(before.Before.Plugin)); k.waits() && !was {
				k.lane.alwaysExamined++
			}
		} else {
			b.block(k, before.Before.Queue)
		}
		return false
	}
	if k.before || k.examineAlways {
		return true
	}
	slots := b.asked[t.Shape].freshNodes
	if k.recheck {
		slots = slots[:0:0]
		b.view.Recent().Nodes(k.version, func(slot int) { slots = append(slots, slot) })
	}
	return slices.ContainsFunc(slots, func(slot int) bool {
		n := b.view.At(slot)
		if n == nil || n.Freed() <= k.version {
			return false
		}
		r, _ := b.finder.rejectAt(nil, t, n)
		if r == nil {
			return k.permanent || !b.finder.keeper.rejects(t, n)
		}
		return k.permanent && r.Cure.Transient()
	})
}

// homeOf returns the node group that the replicas of the job's Set are kept on. It returns the
// zero key if there is none.
func homeOf(s cluster.View, j *cluster.Job) cluster.GroupKey {
	if j.Set.Name != "" {
		if home := s.Sets().Home(j.Set.Name); home != nil {
			return *home
		}
	}
	return cluster.GroupKey{}
}
