package defrag

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fragmentation"
)

// Goal is what a plan is for.
type Goal string

// The goals.
const (
	Jobs    Goal = "jobs"    // room for pending jobs
	Devices Goal = "devices" // devices of which nothing is held
	Nodes   Goal = "nodes"   // nodes of which no device is held
	Room    Goal = "room"    // free room that tasks like those that arrived can use
)

// Options are the inputs of Make beside the State.
type Options struct {
	Goal Goal
	// Job is the ID of the only pending job to make room for; "": all pending jobs. It is for the
	// goal Jobs.
	Job string
	// MostMoves is how many tasks are moved at most.
	MostMoves int
	Now       int64 // in nanoseconds since 1970
	// Progress, if not nil, is called now and then with the number of moves that were found and of
	// steps that were taken.
	Progress func(moves, steps int)
}

// Plan is moves in the order in which they are to be carried out.
type Plan struct {
	Moves []Move
	// Starts are the pending jobs that fit: without a move or after some of them.
	Starts        []Start
	Before, After Sums
	// Refused are the jobs of the goal Jobs for which no room can be made.
	Refused []Refused
	// Stays counts the tasks that stay where they are, by reason.
	Stays []Stay
	// Tasks is how many tasks ran before.
	Tasks int
	Steps int // a measure of the work that is the same on every machine
	// Bounded means that the search ended because of the bound of its steps.
	Bounded bool
}

// Move is one task that is moved.
type Move struct {
	Task               cluster.TaskRef
	From, To           string // names of nodes
	FromClaims, Claims []cluster.Claim
	// For is the ID of the pending job that the task is moved for; "" if the goal is not Jobs.
	For   string
	Ran   int64 // for how long the task has run, in nanoseconds; 0: this is not known
	After Sums  // after the move, and after the jobs that fit then have started
	// Changes carry the move out in a State: the decision, and the facts that the task has stopped
	// and that it runs on the other node.
	Changes []cluster.Change
}

// Start is a pending job that fits.
type Start struct {
	Job   string
	After int // how many moves precede it
}

// Sums measure a State.
type Sums struct {
	FreeDevices int   // devices of which nothing is held
	FreeNodes   int   // nodes with devices of which none is held
	Pending     int   // jobs with a task to place
	Unusable    int64 // thousandths of devices that are free and that a task like those that arrived cannot use, on average
}

// Refused is a pending job for which no room can be made.
type Refused struct {
	Job     string
	Refusal *engine.Refusal
	// Moves is how many tasks would have to move, if they are more than may be moved; 0 otherwise.
	Moves int
	// Unordered means that moves would make room, but not one after the other.
	Unordered bool
	Alike     []string // other jobs that request the same
}

// Stay counts tasks that stay where they are.
type Stay struct {
	Reason engine.Reason // NoOtherPlace if no other node can take them
	Tasks  int
	First  cluster.TaskRef
}

// NoOtherPlace is the reason of tasks that may move, and that no other node can take.
const NoOtherPlace engine.Reason = "NoOtherPlace"

// maxSteps bounds how many moves are tried.
const maxSteps = 500_000

// Make returns a plan for the State. It carries the plan out in the State; the caller passes a copy or
// undoes the changes.
func Make(e *engine.Engine, s *cluster.State, o Options) (*Plan, error) {
	p := &planner{
		engine: e, state: s, view: s.View(), options: o, plan: &Plan{},
		workload: fragmentation.Popular(fragmentation.Counts(s.View().Demand().Requests)),
		moved:    map[*cluster.Task]bool{}, homeless: map[*cluster.Task]bool{},
	}
	if err := s.Apply(cluster.SessionOpened{Now: o.Now}); err != nil {
		return nil, err
	}
	p.measureAll()
	p.plan.Before = p.sums()
	var err error
	if o.Goal == Jobs {
		err = p.placePending()
	} else {
		err = p.free()
	}
	if err != nil {
		return nil, err
	}
	p.plan.After = p.sums()
	p.plan.Steps, p.plan.Bounded = p.steps, p.steps >= maxSteps
	return p.plan, p.countStays()
}
