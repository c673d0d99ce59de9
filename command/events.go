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
	Seq      int    `json:"seq"`            // counted from 1
	Time     string `json:"time,omitempty"` // of the virtual clock, where there is one
	Kind     string `json:"kind"`           // see above
	Workload string `json:"workload"`
	Task     string `json:"task,omitempty"`    // Refused, Retired, Arrived and Ended are about the workload as a whole
	Node     string `json:"node,omitempty"`    // of Bound, Nominated and Evicted
	For      string `json:"for,omitempty"`     // the workload an eviction makes room for
	Landing  string `json:"landing,omitempty"` // the node that an evicted task moves to
	Reason   string `json:"reason,omitempty"`  // of Refused, Evicted and Retired
	Message  string `json:"message,omitempty"`
	// Permanent is of Refused: waiting does not help.
	Permanent *bool `json:"permanent,omitempty"`
	// Cure is of Refused, what would help: Wait, Evict, Grow (more or other nodes) or
	// Relax (a softer request). Without any, only a changed request helps.
	Cure   []string `json:"cure,omitempty"`
	Awaits int      `json:"awaits,omitempty"` // of Refused: nodes that are to be made for the workload's model
}

// Kinds of events that are not the engine's: a course over time has them.
const (
	arrived = "Arrived"
	left    = "Left"
	ended   = "Ended"
)

// EventKinds documents the kinds of events for the reference.
var EventKinds = []struct{ Kind, Meaning string }{
	{string(engine.BoundTo), "The task starts on the node."},
	{string(engine.NominatedTo), "The task has room on the node that another task is still leaving; it starts there once it is free."},
	{string(engine.Evicted), "The task has to leave the node."},
	{string(engine.Withdrawn), "The task loses room that it was nominated for, and is pending again."},
	{string(engine.Refused), "The workload is pending. It is written again only when its reason changes, in a course over time also when its permanence does."},
	{string(engine.Retired), "The workload is a replica that its model does not need any more; it does not come back."},
	{arrived, "The workload is created. Only in a course over time."},
	{left, "The task, evicted before, is gone. Only in a course over time."},
	{ended, "The workload is complete. Only in a course over time."},
}

// writeEvents writes the events to standard output for "-", else to a file.
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

// simulated are the events of a simulation.
func simulated(s *sim.Simulation, results explain.Results) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, ev := range s.Events {
			line := event{Kind: string(ev.Kind), Workload: ev.Job, Task: ev.Task.Name}
			if d := ev.Decision; d != nil {
				line.Node, line.For, line.Landing, line.Reason, line.Message = d.Node, d.For, d.Landing, string(d.Reason), makesRoom(d.For)
			}
			if ev.Score != nil {
				line.Reason, line.Message = string(engine.ScaledDown), explain.Worth(ev.Score)
			}
			if r := ev.Refusal; r != nil {
				said := results.Refusal(r, false)
				line.Reason, line.Message = said.Reason, said.Message
				line.Permanent, line.Cure, line.Awaits = &said.Permanent, said.Cure, said.Awaits
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
