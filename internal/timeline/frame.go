package timeline

import (
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
)

// Result is what a simulation over time prints as JSON and YAML. It is API:
// fields are added, never renamed. Equal input gives equal bytes. Times are those
// of the virtual clock (RFC 3339), spans are spelled as in manifests ("1m30s").
type Result struct {
	Start  string `json:"start"`  // of the clock: the first cycle
	Every  string `json:"every"`  // from one cycle to the next
	Cycles int    `json:"cycles"` // that were run
	// Settled is the cycle after which nothing can change any more; the simulation
	// then ends early. Absent: it had not come to rest.
	Settled int `json:"settled,omitempty"`
	// Quiet is the cycle after which nothing happened, where it has not settled
	// because time alone may still change decisions: shares move while past use fades.
	Quiet     int        `json:"quiet,omitempty"`
	Frames    []*Frame   `json:"frames"`    // of the cycles in which something happened, in order
	Workloads []Workload `json:"workloads"` // by name
	Summary   Summary    `json:"summary"`
}

// Frame is what happened in one cycle, in this order. What is empty is left out.
type Frame struct {
	Cycle     int        `json:"cycle"` // counted from 1
	Time      string     `json:"time"`
	Ends      []string   `json:"ends,omitempty"`      // workloads whose run time is over, that were already leaving when the clock started, or that were retired and have left
	Left      []string   `json:"left,omitempty"`      // evicted tasks that are gone now: workload/task
	Arrivals  []string   `json:"arrivals,omitempty"`  // workloads that were created since the cycle before
	Withdrawn []string   `json:"withdrawn,omitempty"` // tasks whose promised room is promised no more: workload/task
	Decisions []Decision `json:"decisions,omitempty"` // in the order they were made
	Refusals  []Refusal  `json:"refusals,omitempty"`  // that are new or have another reason than before
	Queues    []Queue    `json:"queues,omitempty"`    // whose use, share or quota changed; in the first frame, all that count
}

// Decision is one thing to do.
type Decision struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	Action   string `json:"action"` // Bind, Nominate or Evict
	Node     string `json:"node"`
	Devices  []int  `json:"devices,omitempty"` // by index
	For      string `json:"for,omitempty"`     // the workload an eviction makes room for
	Reason   string `json:"reason,omitempty"`  // of an eviction
	Landing  string `json:"landing,omitempty"` // the node that an evicted task moves to
}

// Refusal is a workload that was turned down.
type Refusal struct {
	Workload  string `json:"workload"`
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting does not help
	// Cure is what would help: Wait, Evict, Grow or Relax.
	Cure    []string `json:"cure,omitempty"`
	Awaits  int      `json:"awaits,omitempty"`  // nodes that are to be made for it
	Surplus bool     `json:"surplus,omitempty"` // its minimum runs; this is about the rest
	Message string   `json:"message"`
}

// Queue is what a queue has of one resource: devices, or cores where no node has devices.
type Queue struct {
	Queue    string   `json:"queue"`
	Resource string   `json:"resource"`
	Used     float64  `json:"used"`            // by its tasks and those of queues below it; promised room counts
	Share    float64  `json:"share"`           // its fair share
	Quota    *float64 `json:"quota,omitempty"` // none where it is unlimited
}

// told is what was last said of a job that waits.
type told struct {
	reason             engine.Reason
	permanent, surplus bool
}

func (f *Frame) empty() bool { return f.changes() == 0 }

func (f *Frame) changes() int {
	return len(f.Ends) + len(f.Left) + len(f.Arrivals) + len(f.Withdrawn) + len(f.Decisions) + len(f.Refusals) + len(f.Queues)
}

// record keeps what the session said.
func (r *runner) record(f *Frame, out *engine.Outcome) {
	for _, ev := range out.Events {
		if ev.Kind == engine.Withdrawn {
			f.Withdrawn = append(f.Withdrawn, ev.Task.ID())
		}
	}
	for i := range out.Decisions {
		d := &out.Decisions[i]
		x := Decision{
			Workload: d.Task.Job, Task: d.Task.Name, Action: string(d.Action), Node: d.Node,
			For: d.For, Reason: string(d.Reason), Landing: d.Landing,
		}
		for _, c := range d.Claims {
			x.Devices = append(x.Devices, c.Device)
		}
		f.Decisions = append(f.Decisions, x)
		if d.Action == engine.EvictTask {
			delete(r.told, x.Workload) // why it waits is news again
		}
	}
	for _, said := range out.Refusals {
		x := r.refusal(said)
		last, known := r.told[x.Job]
		now := told{x.Reason, x.Permanent, x.Surplus}
		if known && now == last {
			continue
		}
		r.told[x.Job] = now
		text := explain.Results{Phrases: r.Phrases, State: r.State, Awaits: r.options.Awaits}.Refusal(x, false)
		f.Refusals = append(f.Refusals, Refusal{text.Workload, text.Reason, text.Permanent, text.Cure, text.Awaits, text.Surplus, text.Message})
	}
}

// refusal is what the engine says, seen from here: what could not fit when fewer
// were placed cannot now, since the machines are the same.
func (r *runner) refusal(said *engine.Refusal) *engine.Refusal {
	x := *said
	x.Permanent = x.Permanent || r.told[x.Job].permanent
	return &x
}

// lastSaid is what was said of each of the jobs that wait.
func (r *runner) lastSaid(jobs []*cluster.Job) []*engine.Refusal {
	var out []*engine.Refusal
	for _, j := range jobs {
		if said := r.engine.Refusal(j); said != nil {
			out = append(out, r.refusal(said))
		}
	}
	return out
}

// Stamp spells a time of the clock.
func Stamp(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }

// Span spells a time span without the zeros that Go writes: "5m", "1h30m".
func Span(d int64) string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
