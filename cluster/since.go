package cluster

// Since remembers up to where a View has been read. A reader that keeps figures from
// session to session derives them from the View and keeps one Since for each list that
// it follows: it then takes in what changed, and begins anew where the View is of another
// State. So its figures are the same whether it was there from the beginning or started
// with the State as it is. The zero Since has read nothing.
type Since struct {
	view    View
	version uint64
	terms   uint64 // of queues: see Recent.Terms
}

// Nodes calls visit for the slot of every node that changed since the last call; see
// Recent.Nodes. Where the View is of another State than that of the last call, it calls
// begin first and then visits all slots.
func (s *Since) Nodes(v View, begin func(), visit func(slot int)) {
	s.follow(v, v.Version(), begin, func(since uint64) { v.Recent().Nodes(since, visit) })
}

// Jobs is Nodes for jobs; see Recent.Jobs.
func (s *Since) Jobs(v View, begin func(), visit func(slot int)) {
	s.follow(v, v.Recent().JobsVersion(), begin, func(since uint64) { v.Recent().Jobs(since, visit) })
}

// Queues is Nodes for queues; see Recent.Queues. It begins anew as well where a queue has
// other terms or is gone.
func (s *Since) Queues(v View, begin func(), visit func(*Queue)) {
	if s.terms != v.Recent().Terms() {
		*s = Since{terms: v.Recent().Terms()}
	}
	s.follow(v, v.Recent().QueuesVersion(), begin, func(since uint64) { v.Recent().Queues(since, visit) })
}

func (s *Since) follow(v View, now uint64, begin func(), read func(since uint64)) {
	if s.view != v {
		*s = Since{view: v, terms: s.terms}
		begin()
	}
	if s.version != now {
		read(s.version)
		s.version = now
	}
}
