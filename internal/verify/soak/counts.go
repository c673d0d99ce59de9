package soak

import "fmt"

// Counts has the number of events of a run, so that a test can check that enough
// happened.
type Counts struct {
	Steps, Sessions, Decisions, Refusals int
	Evictions, Moves, Stale              int // Stale: evicted tasks of gangs below their minimum
	ScaledDown, Retired                  int // evicted tasks of retired jobs, and retired jobs
	WholeNodes                           int // nodes that replicas on whole nodes were placed on
	Crashes, Lost                        int // Lost: decisions that were never carried out because of a crash
	Changes, Replays, Torn               int // changes in logs, logs that were replayed, and logs that a crash cut off
	Restarts, Earlier                    int // sessions that were repeated by a restarted engine, and how many of these evicted earlier
	Refused, Unanswered                  int // bindings and evictions that failed, and bindings that were answered late
	Waits                                int // refused jobs that a patient session did not try
	Settled, Rounds                      int // Rounds: the largest number of sessions until a cluster settled
}

// Add adds the counts of another run. Rounds becomes the larger of both.
func (c *Counts) Add(o Counts) {
	c.Steps += o.Steps
	c.Sessions += o.Sessions
	c.Decisions += o.Decisions
	c.Refusals += o.Refusals
	c.Evictions += o.Evictions
	c.Moves += o.Moves
	c.Stale += o.Stale
	c.ScaledDown += o.ScaledDown
	c.Retired += o.Retired
	c.WholeNodes += o.WholeNodes
	c.Crashes += o.Crashes
	c.Lost += o.Lost
	c.Changes += o.Changes
	c.Replays += o.Replays
	c.Torn += o.Torn
	c.Restarts += o.Restarts
	c.Earlier += o.Earlier
	c.Refused += o.Refused
	c.Unanswered += o.Unanswered
	c.Waits += o.Waits
	c.Settled += o.Settled
	c.Rounds = max(c.Rounds, o.Rounds)
}

func (c Counts) String() string {
	return fmt.Sprintf("%d steps, %d sessions, %d decisions, %d refusals, %d evictions (%d moves, %d of stale gangs, %d scaled down), %d retired, %d whole nodes of sets, %d crashes that lost %d decisions, %d changes, %d logs replayed and %d torn, %d sessions also run after a restart (%d evicted earlier), %d bindings and evictions refused, %d bindings answered late, %d waits, settled %d times in %d rounds at most",
		c.Steps, c.Sessions, c.Decisions, c.Refusals, c.Evictions, c.Moves, c.Stale, c.ScaledDown, c.Retired, c.WholeNodes, c.Crashes, c.Lost, c.Changes, c.Replays, c.Torn, c.Restarts, c.Earlier, c.Refused, c.Unanswered, c.Waits, c.Settled, c.Rounds)
}
