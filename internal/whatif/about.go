package whatif

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// AboutNode simulates on the State, and says what is on the node at the end, and why pending
// workloads are not placed on it.
func AboutNode(e *engine.Engine, state *cluster.State, node string, now int64) (*wire.NodeReport, error) {
	simulation, err := sim.Simulate(e, state, sim.Options{Now: now})
	if err != nil {
		return nil, err
	}
	n := state.Node(node)
	if n == nil {
		return nil, fmt.Errorf("no node %q", node)
	}
	return explain.NewNodeReport(n, simulation.Refusals, explain.PhrasesOf(e)), nil
}

// AboutQueue simulates on the State, and says what the queue holds at the end, and why its
// workloads are pending.
func AboutQueue(e *engine.Engine, state *cluster.State, queue string, now int64) (*wire.QueueReport, error) {
	simulation, err := sim.Simulate(e, state, sim.Options{Now: now})
	if err != nil {
		return nil, err
	}
	q := state.Queue(queue)
	if q == nil {
		return nil, fmt.Errorf("no queue %q", queue)
	}
	session := e.Open(state, engine.Options{Now: now})
	standings := session.Standings(queue)
	if err := session.Close(); err != nil {
		return nil, err
	}
	return explain.NewQueueReport(state, q, standings, simulation.Refusals, explain.PhrasesOf(e)), nil
}
