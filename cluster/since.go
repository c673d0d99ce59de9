package cluster

// Since remembers up to which version a reader has read a View. A plugin that keeps
// values from session to session derives them from the View, and keeps one Since for
// each list (nodes, jobs, queues) that it follows. Since then reports only what changed,
// and starts again from the beginning if the View is of another State. The values are
// therefore the same whether the plugin ran from the beginning or was started later. The
// zero Since has read nothing.
type Since struct {
	view    View
	version uint64
	terms   uint64 // Recent.QueueSpecsVersion at the last call of Queues
}

// Nodes calls visit for the slot of every node that changed since the last call; see
// Recent.Nodes. If the View is of another State than at the last call, it first calls
// begin and then visits all slots. begin must clear what the reader has kept.
func (s *Since) Nodes(v View, begin func(), visit func(slot int)) {
	s.follow(v, v.Version(), begin, func(since uint64) { v.Recent().Nodes(since, visit) })
}

// Jobs is Nodes for jobs; see Recent.Jobs.
func (s *Since) Jobs(v View, begin func(), visit func(slot int)) {
	s.follow(v, v.Recent().JobsVersion(), begin, func(since uint64) { v.Recent().Jobs(since, visit) })
}

// Queues is Nodes for queues; see Recent.Queues. It also starts again from the beginning
// if the spec of any queue changed or a queue was removed.
func (s *Since) Queues(v View, begin func(), visit func(*Queue)) {
	if s.terms != v.Recent().QueueSpecsVersion() {
		*s = Since{terms: v.Recent().QueueSpecsVersion()}
	}
	s.follow(v, v.Recent().QueuesVersion(), begin, func(since uint64) { v.Recent().Queues(since, visit) })
}

// follow calls read with the version of the last call, unless that is the version now.
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
