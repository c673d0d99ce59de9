package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/explain"
	"github.com/berth-project/berth/manifest"
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

// writeEvents writes the events to standard output for "-", else to a file that
// is there in full or, if anything goes wrong, as it was before.
func (p *program) writeEvents(to string, inputs []string, events iter.Seq[event]) error {
	if to == "-" {
		return encodeEvents(p.stdout, events)
	}
	info, err := os.Stat(to)
	if err == nil {
		if in := sameFile(info, inputs); in != "" {
			return fmt.Errorf("--events %s would overwrite the input %s; name another file", to, in)
		}
		if info.IsDir() {
			return fmt.Errorf("--events %s is a directory; name a file", to)
		}
	}
	if err == nil && !info.Mode().IsRegular() { // a device or a pipe cannot be replaced
		f, err := os.OpenFile(to, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("--events: %w", err)
		}
		return closing(f, encodeEvents(f, events))
	}
	if err := replaceFile(to, func(w io.Writer) error { return encodeEvents(w, events) }); err != nil {
		return fmt.Errorf("--events: %w", err)
	}
	return nil
}

// sameFile finds the input that the file is, "" if it is none.
func sameFile(info os.FileInfo, inputs []string) string {
	names, _ := manifest.Files(inputs) // what could not be listed was reported before
	for _, name := range names {
		if in, err := os.Stat(name); err == nil && os.SameFile(in, info) {
			return name
		}
	}
	return ""
}

// replaceFile writes beside the file and then takes its place.
func replaceFile(name string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	f, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = closing(f, write(f))
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to report
	}
	return err
}

// closing closes the file and returns the first error of the two.
func closing(f *os.File, err error) error {
	if failed := f.Close(); err == nil {
		err = failed
	}
	return err
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
