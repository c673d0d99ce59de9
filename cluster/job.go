package cluster

// Job is tasks that stand or fall together. It may come in several
// alternatives, tried in order; the first that places wins.
type Job struct {
	// ID is kind and name, unique in a State: "job/train", "pod/default/web-0".
	ID        string
	Namespace string
	Queue     string
	Priority  int32
	// Created orders jobs by age, in nanoseconds; 0 is older than everything.
	Created      int64
	Preemptible  bool
	Labels       map[string]string
	Alternatives []Alternative
	// Affinity to other jobs; what concerns nodes alone is in the shapes.
	Affinity []JobTerm
	// Set is the set of replicas the job belongs to.
	Set Set

	// Chosen is the alternative its tasks were placed from; -1 while none is placed.
	Chosen int

	attached int // tasks that are on a node, however they stand there
}

// Set names the replicas a job is one of, and how many there should be.
type Set struct {
	Name    string
	Desired int
}

// Alternative is one form a job may take.
type Alternative struct {
	Name  string
	Tasks []*Task
	// Min of the tasks must be placed together, or none is. Tasks beyond it are
	// surplus: placed if there is room.
	Min int
	// Whole asks for whole nodes of one group; nil: nodes are chosen one by one.
	Whole *WholeNodes
}

// WholeNodes places replicas on whole nodes of one group, never two on a node.
type WholeNodes struct {
	Replicas        int
	NodesPerReplica int
	Memory          Bytes // device memory that one replica needs, over all its nodes
}

// Task is the smallest thing placed: it goes onto one node.
type Task struct {
	// ID is unique in a State: the job's ID, a slash and the task's name.
	ID    string
	Name  string // "worker-0"
	Role  string // "worker"
	Index int
	Job   *Job
	Shape *Shape

	Status Status
	Node   *Node // nil while pending
	Claims []Claim
}

// Status is where a task stands.
type Status uint8

// The states of a task.
const (
	Pending   Status = iota
	Bound            // on its node
	Nominated        // promised room that is still releasing
	Releasing        // evicted, but still there
)

func (s Status) String() string {
	return [...]string{"Pending", "Bound", "Nominated", "Releasing"}[s]
}

// Tasks are those of the chosen alternative, or of the first while none is chosen.
func (j *Job) Tasks() []*Task {
	if len(j.Alternatives) == 0 {
		return nil
	}
	return j.Alternatives[max(j.Chosen, 0)].Tasks
}

// Placed counts the tasks that hold room now or were promised some.
func (j *Job) Placed() int {
	n := 0
	for _, t := range j.Tasks() {
		if t.Status == Bound || t.Status == Nominated {
			n++
		}
	}
	return n
}
