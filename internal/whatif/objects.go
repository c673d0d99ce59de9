package whatif

import (
	"encoding/json"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Objects says how the objects of the input are changed. Its methods return arguments of
// berth whatif, such as --set and job/train.spec.priority=10. They return nil if nothing
// differs, if no field of the object makes the change, or if the input has no such object.
type Objects interface {
	// EditJob returns the arguments that change what a job requests from was to is. If the job
	// is a replica, the fields are those of its set.
	EditJob(was, is *cluster.Job) []string
	// EditQueue returns the arguments that change the limits and quotas of a queue.
	EditQueue(was, is *cluster.Queue) []string
	// EditNode returns the arguments that change the taints of a node, whether it is cordoned
	// and whether it is ready.
	EditNode(was, is *cluster.Node) []string
	// Scale returns the arguments that set how many replicas a set should have.
	Scale(set string, desired int) []string
	// Changed makes a new State of the input after the changes of fields that the arguments
	// name. Other arguments are ignored. It returns an error if the changed input is not valid.
	Changed(arguments []string) (*cluster.State, error)
}

// textOf returns all that the spec of the job says.
func textOf(j *cluster.Job) string {
	text, err := json.Marshal(j)
	if err != nil {
		return err.Error() // no job has a value that JSON does not have
	}
	return string(text)
}

// arguments returns the arguments of berth whatif that make the change: those that the change
// has itself, and those for the fields that differ if the change is applied to the State before
// the simulation. It returns nil if a part of the change cannot be written as arguments.
func (l *lab) arguments(c *change) []string {
	for _, part := range c.parts {
		if len(l.arguments(part)) == 0 {
			return nil
		}
	}
	out := slices.Clone(c.arguments)
	if l.objects == nil {
		return out
	}
	job := l.state.Job(l.workload.id).Spec()
	var queues []cluster.Queue
	for q := l.state.Queue(job.Queue); q != nil; q = l.state.View().Parent(q) {
		queues = append(queues, *q)
	}
	var nodes []cluster.Node
	for _, name := range c.opened {
		nodes = append(nodes, *l.state.Node(name))
	}
	defer undoAtEnd(l.state)()
	if c.apply(l.state) != nil {
		return nil
	}
	if j := l.state.Job(job.ID); j != nil {
		edited := j.Spec()
		edits := l.objects.EditJob(&job, &edited)
		if len(edits) == 0 && job.Set.Name == "" && textOf(&job) != textOf(&edited) { // settings of models have arguments of their own
			return nil
		}
		out = append(out, edits...)
	}
	for i := range queues {
		out = append(out, l.objects.EditQueue(&queues[i], l.state.Queue(queues[i].Name))...)
	}
	for i := range nodes {
		out = append(out, l.objects.EditNode(&nodes[i], l.state.Node(nodes[i].Name))...)
	}
	for _, set := range c.scaled {
		out = append(out, l.objects.Scale(set, l.state.View().Sets().Desired(set))...)
	}
	return out
}
