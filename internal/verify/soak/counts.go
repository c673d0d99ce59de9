package soak

import "fmt"

// Counts has the number of events of one or more simulations, so that a test can check
// that enough happened.
type Counts struct {
	Steps, Sessions, Decisions, Refusals int
	Evictions, Moves, StaleTasks         int // StaleTasks: evicted tasks of gangs below their minimum
	ScaledDown, Retired                  int // evicted tasks of retired jobs, and retired jobs
	Earmarks, PlacedBeside               int // jobs that got an earmark, or other nodes; placements on nodes of earmarks of other jobs
	WholeNodes                           int // nodes that replicas on whole nodes were placed on
	Crashes, LostDecisions               int // LostDecisions: decisions that were never carried out because of a crash
	Changes, Replays, CutLogs            int // changes in logs, logs that were replayed, and logs that a crash cut off
	Restarts, EarlierEvictions           int // sessions that were repeated by a restarted engine, and how many of these evicted earlier
	RefusedActions, LateAnswers          int // bindings and evictions that failed, and bindings that were answered late
	Untried                              int // refused jobs that a patient session did not try
	Settled, MaxRounds                   int // MaxRounds: the largest number of sessions until a cluster settled
}

// Add adds the counts of another simulation. MaxRounds becomes the larger of both.
func (c *Counts) Add(o Counts) {
	c.Steps += o.Steps
	c.Sessions += o.Sessions
	c.Decisions += o.Decisions
	c.Refusals += o.Refusals
	c.Evictions += o.Evictions
	c.Moves += o.Moves
	c.StaleTasks += o.StaleTasks
	c.ScaledDown += o.ScaledDown
	c.Retired += o.Retired
	c.WholeNodes += o.WholeNodes
	c.Earmarks += o.Earmarks
	c.PlacedBeside += o.PlacedBeside
	c.Crashes += o.Crashes
	c.LostDecisions += o.LostDecisions
	c.Changes += o.Changes
	c.Replays += o.Replays
	c.CutLogs += o.CutLogs
	c.Restarts += o.Restarts
	c.EarlierEvictions += o.EarlierEvictions
	c.RefusedActions += o.RefusedActions
	c.LateAnswers += o.LateAnswers
	c.Untried += o.Untried
	c.Settled += o.Settled
	c.MaxRounds = max(c.MaxRounds, o.MaxRounds)
}

func (c Counts) String() string {
	return fmt.Sprintf("%d steps, %d sessions, %d decisions, %d refusals, %d evictions (%d moves, %d of stale gangs, %d scaled down), %d retired, %d whole nodes of sets, %d earmarks, %d tasks placed beside them, %d crashes that lost %d decisions, %d changes, %d logs replayed and %d cut off, %d sessions also run after a restart (%d evicted earlier), %d bindings and evictions refused, %d bindings answered late, %d jobs not tried by patient sessions, settled %d times in %d rounds at most",
		c.Steps, c.Sessions, c.Decisions, c.Refusals, c.Evictions, c.Moves, c.StaleTasks, c.ScaledDown, c.Retired, c.WholeNodes, c.Earmarks, c.PlacedBeside, c.Crashes, c.LostDecisions, c.Changes, c.Replays, c.CutLogs, c.Restarts, c.EarlierEvictions, c.RefusedActions, c.LateAnswers, c.Untried, c.Settled, c.MaxRounds)
}
