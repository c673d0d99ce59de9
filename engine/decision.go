package engine

import "github.com/berth-project/berth/cluster"

// Action says what is to be done with the task of a decision.
type Action string

// The actions.
const (
	Bind      Action = "Bind"     // start the task on the node
	Nominate  Action = "Nominate" // reserve room for the task, which other tasks are still releasing
	EvictTask Action = "Evict"    // stop the task, so that it releases its room
)

// Decision is one decision about a task. It holds names and copies and no pointers into
// State, so that it does not change when State does.
type Decision struct {
	Action      Action           // Bind, Nominate or EvictTask
	Task        cluster.TaskRef  // the task
	Node        string           // the node on which it is placed, or from which it is evicted
	Claims      []cluster.Claim  // what the task holds of the node's devices
	Group       cluster.GroupKey // the node group of the node
	Alternative string           // the name of the job's alternative, if it has several
	Score       Score            // the score of the node; for a retired replica, its InstanceScore
	// Candidates has all feasible nodes, best first, if Options.Explain is set.
	Candidates []Candidate
	GroupScore Score // the score of the node group, if the alternative takes whole nodes
	// Groups has all feasible node groups, best first, if the alternative takes whole
	// nodes and Options.Explain is set. If the job's set has a group already, it is the
	// only one.
	Groups     []GroupCandidate
	Reason     Reason      // why the task is evicted
	For        string      // the ID of the job for which the task is evicted
	Purpose    Purpose     // of an eviction for another job
	Landing    string      // the node that an evicted task moves to; "" if no room is reserved for it
	PlanSearch *PlanSearch // how the plan of an eviction was found
}

// Score is the total score of a node or group, and the scores of the plugins in it.
type Score struct {
	Total  int64 // the weighted sum in thousandths of a point
	Weight int64 // the sum of the weights in Total
	Parts  []ScorePart
}

// Mean is the weighted mean of the parts, 0 to 100.
func (s Score) Mean() float64 {
	if s.Weight == 0 {
		return 0
	}
	// The result is rounded to thousandths, so that every machine prints the same digits.
	return float64((s.Total+s.Weight/2)/s.Weight) / 1000
}

// ScorePart is the score of one plugin.
type ScorePart struct {
	Plugin string
	Score  float64 // 0 to 100, before it is multiplied with the weight
	Weight int64   // the plugin's weight in the profile
}

// Candidate is a feasible node with its score.
type Candidate struct {
	Node  string
	Score Score
}

// GroupCandidate is a feasible node group with its score, and the alternative of the job
// that is for this group.
type GroupCandidate struct {
	Group       cluster.GroupKey
	Alternative string
	Score       Score
}
