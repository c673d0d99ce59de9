package cluster

import "slices"

// setQueue puts the queue in the place of the old one, where either may be nil, and
// keeps the tree of queues in step.
func (s *State) setQueue(old, q *Queue) {
	s.revision++
	s.countTerms(old, -1)
	s.countTerms(q, +1)
	if old != nil && q != nil && old.Parent == q.Parent && old.sameAccounts(q) {
		q.Used, q.Firm, q.children, q.loose = old.Used, old.Firm, old.children, old.loose
		s.seatQueue(q, old)
		s.sumQuotas(q)
	} else {
		s.rehang(old, q)
	}
	s.nameAgain()
}

// rehang is setQueue for a queue that is new, is removed, gets another parent or is
// charged for slices under another name. Its cost depends on the queue and those below it, and on no other.
func (s *State) rehang(old, q *Queue) {
	at := old
	if at == nil {
		at = q
	}
	below := s.below(at.Name)
	// 1. Off the tree: what is charged to the queues above is taken back.
	s.chargeQueues(below, -1)
	var above [2]*Queue // before and after
	if old != nil {
		above[0] = s.Parent(old)
		s.listHeir(old, false)
	}
	// 2. The queue in its new place. One that names a queue below itself as its parent
	// is in no tree, and neither are those below it.
	s.seatQueue(q, old)
	if q != nil {
		s.listHeir(q, true)
	}
	for i, name := range below {
		k := s.queues[name]
		if k == nil {
			continue // the one that is removed
		}
		parent := s.queues[k.Parent]
		k.loose = k.Parent != "" && (parent == nil || parent.loose || i == 0 && slices.Contains(below, k.Parent))
		k.Used, k.Firm, k.children = nil, nil, nil
	}
	if q != nil {
		above[1] = s.Parent(q)
	}
	// 3. What the queues are made of: children, quotas, use.
	for _, k := range above {
		if k != nil {
			s.listChildren(k)
		}
	}
	for _, name := range slices.Backward(below) { // children before their parents
		if k := s.queues[name]; k != nil {
			s.listChildren(k)
			s.sumQuota(k)
			s.recentQueues.touch(k.slot)
		}
	}
	for _, k := range above {
		for s.sumQuotas(k); k != nil; k = s.Parent(k) {
			s.recentQueues.touch(k.slot)
		}
	}
	s.chargeQueues(below, +1)
	// 4. Jobs are considered in leaves of the tree.
	for _, name := range below {
		s.settleQueue(name)
	}
	for _, k := range above {
		if k != nil {
			s.settleQueue(k.Name)
		}
	}
}

// below are the queue and all queues below it, by name, known or not: parents come
// before their children.
func (s *State) below(name string) []string {
	out := []string{name}
	if len(s.heirs[name]) == 0 {
		return out
	}
	seen := map[string]bool{name: true}
	for i := 0; i < len(out); i++ {
		for _, heir := range s.heirs[out[i]] {
			if !seen[heir] {
				seen[heir] = true
				out = append(out, heir)
			}
		}
	}
	return out
}

// chargeQueues adds (sign +1) or takes back (-1) what the tasks in these queues hold.
func (s *State) chargeQueues(names []string, sign int64) {
	for _, name := range names {
		for _, j := range s.jobsIn[name] {
			for a := range j.Alternatives {
				for _, t := range j.Alternatives[a].Tasks {
					s.chargePlaced(t, sign)
					s.chargePlaced(t.landing, sign)
				}
			}
		}
	}
}

func (s *State) chargePlaced(t *Task, sign int64) {
	if t != nil && t.Node != nil && !t.leaves() {
		s.chargeTask(t, sign)
	}
}

// settleQueue settles the jobs that name the queue.
func (s *State) settleQueue(name string) {
	for _, j := range s.jobsIn[name] {
		s.settle(j)
	}
}

// listHeir adds the queue to those that name its parent, or takes it out.
func (s *State) listHeir(q *Queue, add bool) {
	if q.Parent == "" {
		return
	}
	list := s.heirs[q.Parent]
	switch i, found := slices.BinarySearch(list, q.Name); {
	case add && !found:
		s.heirs[q.Parent] = slices.Insert(list, i, q.Name)
	case !found:
	case !add && len(list) == 1:
		delete(s.heirs, q.Parent)
	case !add:
		s.heirs[q.Parent] = slices.Delete(list, i, i+1)
	}
}

// listChildren takes the queue's children from those that name it as their parent.
func (s *State) listChildren(q *Queue) {
	if q.children = nil; !q.loose {
		q.children = slices.Clone(s.heirs[q.Name])
	}
}

// hangAll works the tree of queues out. Nothing is in them yet.
func (s *State) hangAll() {
	for _, q := range s.queues {
		q.loose = s.astray(q)
		s.recentQueues.touch(q.slot)
	}
	for _, q := range s.queues {
		s.listChildren(q)
	}
	for _, q := range s.queues {
		if q.Leaf() {
			s.sumQuotas(q)
		}
	}
}

// astray reports whether the way up from the queue does not end at the top.
func (s *State) astray(q *Queue) bool {
	for steps := 0; q.Parent != ""; steps++ {
		if q = s.queues[q.Parent]; q == nil || steps > len(s.queues) {
			return true
		}
	}
	return false
}
