package command

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/sim"
)

// event is one line of the event stream. It is API: fields are added, never renamed.
type event struct {
	Seq      int      `json:"seq"`            // counted from 1
	Time     string   `json:"time,omitempty"` // the time of the virtual clock; only with --cycles
	Kind     string   `json:"kind"`           // what happened, such as Bound, Evicted or Refused
	Workload string   `json:"workload"`
	Task     string   `json:"task,omitempty"`    // empty for Refused, Retired, Arrived and Ended, which are about the whole workload
	Node     string   `json:"node,omitempty"`    // only for Bound, Nominated and Evicted
	For      string   `json:"for,omitempty"`     // only for Evicted: the workload that the task is evicted for
	Nodes    []string `json:"nodes,omitempty"`   // only for Earmarked: the nodes with the earmarked room
	Landing  string   `json:"landing,omitempty"` // only for Evicted: the node that the task moves to
	Reason   string   `json:"reason,omitempty"`  // only for Refused, Evicted and Retired
	Message  string   `json:"message,omitempty"`
	// Only for Refused: true if waiting does not help.
	Permanent *bool `json:"permanent,omitempty"`
	// Only for Refused: what would help, which is Wait, Evict, Grow (more or other nodes)
	// or Relax (a request with fewer conditions). If the list is empty, only another
	// request helps.
	Cure         []string `json:"cure,omitempty"`
	AwaitedNodes int      `json:"awaits,omitempty"` // only for Refused: the number of nodes that a provisioner is expected to create for the workload's model
}

// Kinds of events that the engine does not have. They occur only with --cycles.
const (
	arrived = "Arrived"
	left    = "Left"
	ended   = "Ended"
)

// EventKinds lists the kinds of events and their meaning, for the generated reference.
var EventKinds = []struct{ Kind, Meaning string }{
	{string(engine.BoundTo), "The task starts on the node."},
	{string(engine.NominatedTo), "The node is reserved for the task. Another task still releases its room there; the task starts when the room is free."},
	{string(engine.Evicted), "The task is evicted from the node. It still holds its room until it has stopped."},
	{string(engine.Withdrawn), "The task loses its reservation and is pending again."},
	{string(engine.Earmarked), "Room is earmarked for the workload, which has waited for long, or other room than before. Without `nodes`, none is earmarked any more. Not with `--cycles`."},
	{string(engine.Refused), "The workload is pending. The event is written again only if the reason changes and, with `--cycles`, if the refusal becomes permanent or is no longer permanent."},
	{string(engine.Retired), "The workload is a replica that its model does not need any more. It is removed permanently."},
	{arrived, "The workload is created. Only with `--cycles`."},
	{left, "The task, which was evicted before, has stopped and holds nothing. Only with `--cycles`."},
	{ended, "The workload is complete. Only with `--cycles`."},
}

// writeEvents writes the events to standard output if to is "-", and to a file otherwise.
func (p *program) writeEvents(to string, inputs []string, events iter.Seq[event]) error {
	if to == "-" {
		return encodeEvents(p.stdout, events)
	}
	return writeFile("--events", to, inputs, func(w io.Writer) error { return encodeEvents(w, events) })
}

func encodeEvents(w io.Writer, events iter.Seq[event]) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	seq := 0
	for line := range events {
		seq++
		line.Seq = seq
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// simulationEvents returns the events of a simulation of one session.
func simulationEvents(s *sim.Simulation, results explain.Results) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, ev := range s.Events {
			line := event{Kind: string(ev.Kind), Workload: ev.Job, Task: ev.Task.Name}
			if d := ev.Decision; d != nil {
				line.Node, line.For, line.Landing, line.Reason, line.Message = d.Node, d.For, d.Landing, string(d.Reason), makesRoom(d.For)
			}
			for i := range ev.Rooms {
				line.Nodes = append(line.Nodes, ev.Rooms[i].Node)
			}
			if ev.Score != nil {
				line.Reason, line.Message = string(engine.ScaledDown), explain.ReplicaScoreText(ev.Score)
			}
			if r := ev.Refusal; r != nil {
				refusal := results.Refusal(r, false)
				line.Reason, line.Message = refusal.Reason, refusal.Message
				line.Permanent, line.Cure, line.AwaitedNodes = &refusal.Permanent, refusal.Cure, refusal.AwaitedNodes
			}
			if !yield(line) {
				return
			}
		}
	}
}

func makesRoom(workload string) string {
	if workload == "" {
		return ""
	}
	return "makes room for " + workload
}
