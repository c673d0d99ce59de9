package cluster

// setQueue puts the queue in the place of the old one, where either may be nil, and
// keeps the tree of queues in step.
func (s *State) setQueue(old, q *Queue) {
	s.tree.revision++
	s.tree.countTerms(old, -1)
	s.tree.countTerms(q, +1)
	if old != nil && q != nil && old.Parent == q.Parent && old.sameAccounts(q) {
		q.Used, q.Firm, q.children, q.loose = old.Used, old.Firm, old.children, old.loose
		s.tree.seat(q, old)
		s.tree.sumQuotas(q)
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
	below := s.tree.below(at.Name)
	s.chargeQueues(below, -1) // what is charged to the queues above is taken back
	above := s.tree.hang(old, q, below)
	s.chargeQueues(below, +1)
	for _, name := range below { // jobs are considered in leaves of the tree
		s.settleQueue(name)
	}
	for _, k := range above {
		if k != nil {
			s.settleQueue(k.Name)
		}
	}
}

// chargeQueues adds (sign +1) or takes back (-1) what the tasks in these queues hold.
func (s *State) chargeQueues(names []string, sign int64) {
	for _, name := range names {
		for _, j := range s.roster.byQueue[name] {
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
		s.tree.charge(t, sign)
	}
}

// settleQueue settles the jobs that name the queue.
func (s *State) settleQueue(name string) {
	for _, j := range s.roster.byQueue[name] {
		s.settle(j)
	}
}
