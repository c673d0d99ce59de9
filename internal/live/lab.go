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

// Lab answers questions on a State and with an Engine of its own, and undoes all that it
// tries. Before each answer it applies the changes that the leader made since. Its engine
// keeps the ranking of nodes from one question to the next. It answers one question at a
// time: concurrent callers wait for each other, or use several labs.
type Lab struct {
	follower *Follower
	engine   *engine.Engine

	mutex    sync.Mutex
	state    *cluster.State // nil: not copied yet, or a change could not be applied
	position uint64
}

// Why says why a workload is where it is or is pending, and what would help. It sets the
// Engine and the State of the question. The answer holds at the returned position.
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

// WhatIf says which tasks would gain and lose if the changes were made one after another.
// The answer holds at the returned position.
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
		entries, _ = l.follower.ring.Since(l.position) // none if the ring has overtaken the copy already, which is then new enough
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
