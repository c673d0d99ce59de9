package scheduler

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Digest returns what the State knows from objects of Kubernetes, one line of JSON for each
// queue, node, budget, job, task that is on a node or has ended, and report about a task that
// is not known. The loop answers between two turns, so Run must be running.
//
// Two schedulers that have read the same objects have equal digests, whatever each of them read
// and decided before: bindings and evictions that are under way are in the digest until the
// watch has confirmed them. What only the scheduler that decided knows is left out: times of
// sessions, past use of queues, numbers of attempts, back-off, reservations, when a job fell
// below its minimum, which jobs it displaced, whether a pod is being deleted because of a
// decision, and which nodes are avoided after a rejection.
func (s *Scheduler) Digest(ctx context.Context) (string, error) {
	answer := make(chan string, 1)
	select {
	case s.questions <- func() { answer <- digest(s.leader.State()) }:
		return <-answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// digest returns the lines of the State.
func digest(state *cluster.State) string {
	var text strings.Builder
	lines := json.NewEncoder(&text)
	write := func(record any) { _ = lines.Encode(record) } // every record of a snapshot can be encoded
	snapshot := state.Snapshot()
	for _, r := range snapshot.Queues {
		r.Queue.Past = nil
		write(cluster.QueueRecord{Queue: r.Queue})
	}
	for _, r := range snapshot.Nodes {
		r.Revision, r.Node.Avoids = 0, nil
		write(r)
	}
	for _, b := range snapshot.Budgets {
		write(b)
	}
	for _, r := range snapshot.Jobs {
		r.Revision, r.Tasks = 0, nil
		r.Job.Retired = false
		d := r.Job.OwnDetails()
		d.Displaced, d.BelowMinimumSince, d.Evicted, d.Parked, d.BindRefused, d.Earmarked = nil, 0, 0, nil, nil, nil
		write(r)
	}
	for _, r := range snapshot.Tasks {
		if r.Status != cluster.Pending && r.Status != cluster.Nominated {
			write(cluster.TaskRecord{
				Task: r.Task, Status: r.Status, Node: r.Node, Devices: r.Devices, DevicesUnknown: r.DevicesUnknown,
				Held: r.Held, NotRequested: r.NotRequested, Started: r.Started, Sent: r.Sent,
			})
		}
	}
	for _, r := range snapshot.Unseen {
		write(r)
	}
	return text.String()
}
