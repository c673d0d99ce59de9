package live

import (
	"fmt"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
)

// Lab answers questions with a State and an Engine of its own, and undoes all changes that
// it tries. Before each answer it applies the changes that the leader has made since the
// last one. Its engine keeps the ranking of nodes from one question to the next. A Lab is
// safe for concurrent use and answers one question at a time; several labs answer several
// questions at once.
type Lab struct {
	follower *Follower
	engine   *engine.Engine

	mutex    sync.Mutex
	state    *cluster.State // nil: not copied yet, or a change could not be applied
	position uint64
}

// Why returns why a workload is placed where it is, or why it is pending and what would
// help. It sets the Engine and the State of the question. The report is about the State at
// the returned position.
func (l *Lab) Why(q whatif.Question) (report *explain.Report, position uint64, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.follow(); err != nil {
		return nil, 0, err
	}
	mark := l.state.Mark()
	defer func() {
		l.state.Undo(mark)
		l.state.Release(mark)
	}()
	q.Engine, q.State = l.engine, l.state
	report, err = whatif.Why(q)
	return report, l.position, err
}

// WhatIf returns which tasks would be placed, moved, evicted or pending if the changes were
// made one after another. The difference is about the State at the returned position.
func (l *Lab) WhatIf(now int64, changes ...cluster.Change) (d *wire.Difference, position uint64, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.follow(); err != nil {
		return nil, 0, err
	}
	d, err = whatif.WhatIf(l.engine, l.state, sim.Options{Now: now}, func(s *cluster.State) error { return s.ApplyAll(changes) })
	return d, l.position, err
}

// follow brings the State to the newest position.
func (l *Lab) follow() error {
	entries, ok := l.follower.ring.Since(l.position)
	if l.state == nil || !ok {
		var err error
		if l.state, l.position, err = l.follower.copy(); err != nil {
			return err
		}
		// If the ring has overwritten the entries after the copy already, there are none, and
		// the lab answers at the position of the copy.
		entries, _ = l.follower.ring.Since(l.position)
	}
	for _, e := range entries {
		if err := l.state.Apply(e.Change); err != nil {
			l.state = nil
			return fmt.Errorf("the lab cannot apply position %d: %w", e.Position, err)
		}
		l.position = e.Position
	}
	return nil
}
