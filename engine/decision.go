package engine

import "github.com/berth-project/berth/cluster"

// Action is what a decision asks to be done.
type Action string

// The actions.
const (
	Bind     Action = "Bind"     // start the task on the node
	Nominate Action = "Nominate" // hold room for the task that is still releasing
	EvictIt  Action = "Evict"    // make the task go
)

// Decision is one thing to do. It holds names and copies, so that it stays true
// while the State changes.
type Decision struct {
	Action      Action          // Bind, Nominate or EvictIt
	Task        cluster.TaskRef // which task
	Node        string          // where it is placed, or evicted from
	Claims      []cluster.Claim // what it holds of the node's devices
	Group       cluster.Key     // of the node
	Alternative string          // the form of the job, where it has several
	Score       Score           // of the node; of a task that is scaled down, what its job was worth to keep
	// Candidates are all nodes that were possible, best first, where the session explains.
	Candidates []Candidate
	GroupScore Score // of the group, where the form takes whole nodes
	// Groups are all groups that were possible, best first, where the form takes
	// whole nodes and the session explains. A job that belongs on a group already
	// has no other.
	Groups   []GroupCandidate
	Reason   Reason    // of an eviction
	For      string    // the job that an eviction makes room for
	Purpose  Purpose   // of an eviction that makes room
	Landing  string    // the node that an evicted task moves to; "": it has no place
	Weighing *Weighing // how the plan that an eviction belongs to was found
}

// Score is a candidate's score and its parts.
type Score struct {
	Total  int64 // weighted milli-points
	Weight int64 // sum of the weights in Total
	Parts  []Part
}

// Mean is the weighted mean of the parts, 0 to 100.
func (s Score) Mean() float64 {
	if s.Weight == 0 {
		return 0
	}
	// Rounded to thousandths, so that every machine prints the same digits.
	return float64((s.Total+s.Weight/2)/s.Weight) / 1000
}

// Part is one plugin's score, 0 to 100 before weighting.
type Part struct {
	Plugin string
	Score  float64
	Weight int64
}

// Candidate is a node that would have done.
type Candidate struct {
	Node  string
	Score Score
}

// GroupCandidate is a group that would have done, and the form that is for it.
type GroupCandidate struct {
	Group       cluster.Key
	Alternative string
	Score       Score
}
