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

// Lab answers questions on a State and with an Engine of its own: what it tries, it
// undoes. It follows the leader before each answer, and keeps its rankings warm from
// one to the next. It answers one question at a time; concurrent callers
// wait for each other, or use several labs.
type Lab struct {
	follower *Follower
	engine   *engine.Engine

	mutex    sync.Mutex
	state    *cluster.State // nil: it has none yet, or could not follow
	position uint64
}

// Why says why a workload is where it is or pending, and what would help. Engine and
// State of the question are the lab's. The position is the one at which the answer holds.
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

// WhatIf says which tasks would gain and lose by the changes, made one after the
// other. The position is the one at which the answer holds.
func (l *Lab) WhatIf(now int64, changes ...cluster.Change) (d *wire.Difference, position uint64, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.follow(); err != nil {
		return nil, 0, err
	}
	d, err = whatif.WhatIf(l.engine, l.state, sim.Options{Now: now}, func(s *cluster.State) error { return s.ApplyAll(changes) })
	return d, l.position, err
}

// follow takes the State to the newest position.
func (l *Lab) follow() error {
	entries, ok := l.follower.ring.Since(l.position)
	if l.state == nil || !ok {
		var err error
		if l.state, l.position, err = l.follower.copy(); err != nil {
			return err
		}
		entries, _ = l.follower.ring.Since(l.position) // none if that is too far back again: the copy is new enough
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
