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
// of the virtual clock (RFC 3339). Durations are written as in manifests ("1m30s").
type Result struct {
	Start  string `json:"start"`  // time of the first cycle
	Every  string `json:"every"`  // time between two cycles
	Cycles int    `json:"cycles"` // number of cycles that were run
	// Settled is the cycle after which nothing can change any more. The simulation
	// then ends early. It is absent if something could still change.
	Settled int `json:"settled,omitempty"`
	// Quiet is the last cycle in which anything happened. It is set if the simulation
	// is not settled because time alone may still change decisions: shares change as
	// past use counts less and less.
	Quiet     int        `json:"quiet,omitempty"`
	Frames    []*Frame   `json:"frames"`    // of the cycles in which something happened, in order
	Workloads []Workload `json:"workloads"` // sorted by name
	Summary   Summary    `json:"summary"`
}

// Frame is what happened in one cycle, in the order of its fields. Empty fields are
// left out.
type Frame struct {
	Cycle     int        `json:"cycle"` // counted from 1
	Time      string     `json:"time"`
	Ends      []string   `json:"ends,omitempty"`      // workloads that end: their run time is over, they were already stopping when the clock started, or they were retired and have stopped
	Stopped   []string   `json:"left,omitempty"`      // evicted tasks that have stopped: workload/task
	Arrivals  []string   `json:"arrivals,omitempty"`  // workloads that were created since the previous cycle
	Withdrawn []string   `json:"withdrawn,omitempty"` // tasks that have lost their reservation: workload/task
	Decisions []Decision `json:"decisions,omitempty"` // in the order in which they were made
	Refusals  []Refusal  `json:"refusals,omitempty"`  // that are new or have another reason than before
	Queues    []Queue    `json:"queues,omitempty"`    // queues with a changed use, share or quota; in the first frame, all queues that use or request the resource
}

// Decision is one decision about a task.
type Decision struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	Action   string `json:"action"` // Bind, Nominate or Evict
	Node     string `json:"node"`
	Devices  []int  `json:"devices,omitempty"` // their indexes on the node
	For      string `json:"for,omitempty"`     // the workload that the task is evicted for
	Reason   string `json:"reason,omitempty"`  // of an eviction
	Landing  string `json:"landing,omitempty"` // the node that an evicted task moves to
}

// Refusal is a workload that was not placed.
type Refusal struct {
	Workload  string `json:"workload"`
	Reason    string `json:"reason"`
	Permanent bool   `json:"permanent"` // waiting does not help
	// Cure lists what would help: Wait, Evict, Grow or Relax.
	Cure         []string `json:"cure,omitempty"`
	AwaitedNodes int      `json:"awaits,omitempty"`  // number of nodes that a provisioner is expected to create for it
	Surplus      bool     `json:"surplus,omitempty"` // its minimum is placed; the refusal is about its surplus
	Message      string   `json:"message"`
}

// Queue is the use and share that a queue has of one resource: devices, or cores if
// no node has devices.
type Queue struct {
	Queue    string   `json:"queue"`
	Resource string   `json:"resource"`
	Used     float64  `json:"used"`            // by the tasks of the queue and of its children; reservations count
	Share    float64  `json:"share"`           // the fair share
	Quota    *float64 `json:"quota,omitempty"` // absent if it is unlimited
}

// reported is what the last recorded refusal of a job says.
type reported struct {
	reason             engine.Reason
	permanent, surplus bool
}

func (f *Frame) empty() bool { return f.changes() == 0 }

func (f *Frame) changes() int {
	return len(f.Ends) + len(f.Stopped) + len(f.Arrivals) + len(f.Withdrawn) + len(f.Decisions) + len(f.Refusals) + len(f.Queues)
}

// record adds the outcome of the session to the frame. A refusal that was already
// recorded and has not changed is left out.
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
			delete(r.reported, x.Workload) // its next refusal is recorded in any case
		}
	}
	for _, refusal := range out.Refusals {
		x := r.refusal(refusal)
		last, known := r.reported[x.Job]
		now := reported{x.Reason, x.Permanent, x.Surplus}
		if known && now == last {
			continue
		}
		r.reported[x.Job] = now
		text := explain.Results{Phrases: r.Phrases, State: r.State, AwaitedNodes: r.options.AwaitedNodes}.Refusal(x, false)
		f.Refusals = append(f.Refusals, Refusal{text.Workload, text.Reason, text.Permanent, text.Cure, text.AwaitedNodes, text.Surplus, text.Message})
	}
}

// refusal returns a copy of the engine's refusal. It is permanent if an earlier refusal
// of the job was: the nodes do not change during the simulation, so that a job that could
// never fit cannot fit now.
func (r *runner) refusal(refusal *engine.Refusal) *engine.Refusal {
	x := *refusal
	x.Permanent = x.Permanent || r.reported[x.Job].permanent
	return &x
}

// lastRefusals returns the last refusal of each of the jobs.
func (r *runner) lastRefusals(jobs []*cluster.Job) []*engine.Refusal {
	var out []*engine.Refusal
	for _, j := range jobs {
		if refusal := r.engine.Refusal(j); refusal != nil {
			out = append(out, r.refusal(refusal))
		}
	}
	return out
}

// Stamp formats a time in nanoseconds since 1970, as RFC 3339 in UTC.
func Stamp(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }

// Span formats a duration in nanoseconds, without trailing units of zero: "5m", "1h30m".
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
