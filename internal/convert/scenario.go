package convert

import (
	"maps"
	"slices"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
)

// Scenario checks a scenario. It returns only notes, because a scenario is not part of State.
func Scenario(o *v1alpha1.Scenario) Notes {
	var notes Notes
	r := reporter{&notes}
	checkName(o.Name, "scenario", r)
	checkTime(o.Now, path{"now"}, r)
	checkExpectation(&o.Expect, r)
	checkCycles(o, r)
	return notes
}

// checkExpectation reports a scenario that expects nothing, which every result would meet, and
// entries that are incomplete, such as a placement without a node.
func checkExpectation(e *v1alpha1.Expectation, r reporter) {
	at := path{"expect"}
	checks := len(e.Placements) + len(e.Devices) + len(e.Groups) + len(e.Pending) + len(e.Refusals) + len(e.Scores)
	checks += len(e.Timeline) + len(e.Forms) + len(e.Keep) + len(e.Provisions)
	if checks == 0 && e.Evictions == nil && e.Settled == nil && e.Notes == nil {
		r.errorf(at, "the scenario expects nothing, so it could never fail; say what is expected, such as placements: {job/train/worker-0: gpu-1}")
	}
	for _, id := range slices.Sorted(maps.Keys(e.Placements)) {
		if e.Placements[id] == "" {
			r.errorf(at.Add("placements", id), "say the node that it is placed on, or pending")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Groups)) {
		if e.Groups[id] == "" {
			r.errorf(at.Add("groups", id), "say the group that is chosen, such as NVIDIA-L4 x 8")
		}
	}
	for i, id := range e.Pending {
		if id == "" {
			r.errorf(at.Add("pending", i), "say which workload, such as job/train")
		}
	}
	for i, note := range e.Notes {
		if note == "" {
			r.errorf(at.Add("notes", i), "say a part of the note, such as: not ready")
		}
	}
	for i := range e.Refusals {
		if e.Refusals[i].Workload == "" {
			r.errorf(at.Add("refusals", i), "say which workload, such as workload: job/train")
		}
	}
	for i, id := range e.Evictions {
		if id == "" {
			r.errorf(at.Add("evictions", i), "say which task, such as job/train/worker-0")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Scores)) {
		nodes := e.Scores[id]
		if len(nodes) == 0 {
			r.errorf(at.Add("scores", id), "say the node and the plugin, such as {gpu-1: {NodeResourcesFit: 50}}")
		}
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			if len(nodes[node]) == 0 {
				r.errorf(at.Add("scores", id, node), "say the plugin, such as {NodeResourcesFit: 50}")
			}
		}
	}
}

// checkCycles checks the fields about a simulation over time, which has several cycles. The
// number of cycles and the time between them are checked when the scenario is run.
func checkCycles(o *v1alpha1.Scenario, r reporter) {
	e, expect := &o.Expect, path{"expect"}
	if o.Cycles == nil {
		const remedy = "it applies only to a simulation over time; say how many cycles that has, such as cycles: 10"
		for _, x := range []struct {
			given bool
			at    path
		}{
			{o.Every != nil, path{"every"}}, {o.Grace != nil, path{"grace"}},
			{len(e.Timeline) > 0, expect.Add("timeline")}, {e.Settled != nil, expect.Add("settled")},
		} {
			if x.given {
				r.errorf(x.at, remedy)
			}
		}
		return
	}
	if len(e.Scores) > 0 {
		r.errorf(expect.Add("scores"), "scores are those of a single session; leave out scores or cycles")
	}
	every := time.Minute
	if o.Every != nil {
		every = o.Every.Duration
	}
	if *o.Cycles < 1 || every <= 0 {
		return // this is reported when the scenario is run
	}
	for i := range e.Timeline {
		m, at := &e.Timeline[i], expect.Add("timeline", i)
		if len(m.Placements)+len(m.Pending)+len(m.Ended)+len(m.Queues) == 0 {
			r.errorf(at, "it expects nothing, so it could never fail; say placements, pending, ended or queues")
		}
		checkMoment(m, *o.Cycles, every, at, r)
	}
}

// checkMoment reports a moment that does not have exactly one of cycle and at, or at which there
// is no cycle, and placements without a node.
func checkMoment(m *v1alpha1.ExpectedMoment, cycles int, every time.Duration, at path, r reporter) {
	switch {
	case (m.Cycle == nil) == (m.At == nil):
		r.errorf(at, "say when: either cycle: 3 or at: 2m")
	case m.Cycle != nil && (*m.Cycle < 1 || *m.Cycle > cycles):
		r.errorf(at.Add("cycle"), "want from 1 to %d, which is the last cycle, have %d", cycles, *m.Cycle)
	case m.At != nil && (m.At.Duration < 0 || m.At.Duration/every >= time.Duration(cycles)):
		r.errorf(at.Add("at"), "want from 0s to %s, which is the last cycle, have %s", every*time.Duration(cycles-1), m.At.Duration)
	case m.At != nil && m.At.Duration%every != 0:
		r.errorf(at.Add("at"), "%s is between two cycles of %s", m.At.Duration, every)
	}
	for _, id := range slices.Sorted(maps.Keys(m.Placements)) {
		if m.Placements[id] == "" {
			r.errorf(at.Add("placements", id), "say the node that it is on, or pending")
		}
	}
}
