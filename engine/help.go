package engine

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// helped reports whether something changed that may let the bucket's job be placed.
func (s *Session) helped(k *bucket) bool {
	if k.version == s.State.Version() {
		return false
	}
	found := false
	openShapes(k.pick.job, func(t *cluster.Task) bool {
		found = s.news(k, t)
		return !found
	})
	return found
}

// news reports whether anything changed for the task.
func (s *Session) news(k *bucket, t *cluster.Task) bool {
	b := s.engine.backlog
	if before := s.finder.before(t); before != nil { // whatever nodes have, it may not have it
		if k.recheck = true; before.Before.Queue == "" {
			if !k.loose {
				k.loose = true
				k.lane.loose++
			}
		} else {
			b.block(k, before.Before.Queue)
		}
		return false
	}
	if k.before || k.loose {
		return true
	}
	slots := b.asked[t.Shape].fresh
	if k.recheck {
		slots = slots[:0:0]
		s.State.Changed(k.version, func(slot int) { slots = append(slots, slot) })
	}
	return slices.ContainsFunc(slots, func(slot int) bool {
		n := s.State.At(slot)
		if n == nil || n.Freed() <= k.version {
			return false
		}
		r, _ := s.finder.rejectAt(nil, t, n)
		return r == nil || k.permanent && r.Cure.Transient()
	})
}

// homeOf is the group that the job's set is kept on, the zero key where it has none.
func (s *Session) homeOf(j *cluster.Job) cluster.Key {
	if j.Set.Name != "" {
		if home := s.State.Home(j.Set.Name); home != nil {
			return *home
		}
	}
	return cluster.Key{}
}
