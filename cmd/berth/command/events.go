package command

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/explain"
)

// event is one line of the event stream. It is API.
type event struct {
	Seq      int    `json:"seq"`
	Time     string `json:"time,omitempty"` // of the virtual clock, where there is one
	Kind     string `json:"kind"`
	Workload string `json:"workload"`
	Task     string `json:"task,omitempty"`
	Node     string `json:"node,omitempty"`
	For      string `json:"for,omitempty"`     // the workload an eviction makes room for
	Landing  string `json:"landing,omitempty"` // the node that an evicted task moves to
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
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
func simulated(sim *explain.Simulation) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, ev := range sim.Events {
			line := event{Kind: string(ev.Kind), Workload: ev.Job, Task: ev.Task.Name}
			if d := ev.Decision; d != nil {
				line.Node, line.For, line.Landing, line.Reason, line.Message = d.Node, d.For, d.Landing, string(d.Reason), makesRoom(d.For)
			}
			if ev.Score != nil {
				line.Reason, line.Message = string(engine.ScaledDown), explain.Worth(ev.Score)
			}
			if r := ev.Refusal; r != nil {
				line.Reason, line.Message = string(r.Reason), explain.Message(r)
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
