// Package scenario runs scenario files and compares the decisions of the engine with
// the expected ones. A scenario file holds both the input and the expectation.
//
// The package runs every scenario twice and fails if the results differ: with the rank
// index, and with the scan, which evaluates every node. The two share no code but the
// hooks. A scenario that is too large runs only once, with the index.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
)

// Mismatch is a result that differs from the expected one.
type Mismatch struct {
	What string // what was checked, such as "placement of job/train/worker-0"
	Want string
	Got  string
}

func (m Mismatch) String() string { return fmt.Sprintf("%s: want %s, have %s", m.What, m.Want, m.Got) }

// SmallEnoughToCheck reports whether the bundle is small enough to compare every decision
// with a scan, and to keep all feasible nodes of every decision. A larger bundle runs
// once, with the index.
func SmallEnoughToCheck(b *manifest.Bundle) (bool, error) {
	const most = 2_000_000 // pending tasks × nodes; a node of a decision takes about 300 bytes
	state, err := b.State()
	if err != nil {
		return false, err
	}
	tasks := 0
	for _, j := range state.Pending() {
		tasks += j.Missing()
	}
	return len(state.Nodes())*tasks <= most, nil
}

// Run runs the engine on the bundle and compares the result with the bundle's
// Scenario. An error means that there is no result to compare: the input is invalid,
// a plugin broke its contract, or the index and the scan differ.
func Run(r *engine.Registry, b *manifest.Bundle) ([]Mismatch, error) {
	s := b.Scenario()
	if s == nil {
		return nil, fmt.Errorf("the input has no Scenario, so there is no expected result to compare with")
	}
	thorough, err := SmallEnoughToCheck(b)
	if err != nil {
		return nil, err
	}
	if s.Cycles != nil {
		out, err := runTimeline(r, b, thorough)
		return append(out, checkNotes(s.Expect.Notes, b.Notes)...), err
	}
	if !thorough {
		if len(s.Expect.Scores) > 0 {
			return nil, fmt.Errorf("the scenario is too large to keep the scores of all nodes; omit expect.scores, or make the scenario smaller")
		}
		simulation, results, _, err := simulate(r, b, engine.Indexed, false)
		if err != nil {
			return nil, err
		}
		return append(check(s, simulation, results, b.NodeRequests()), checkNotes(s.Expect.Notes, b.Notes)...), nil
	}
	simulation, results, result, err := simulate(r, b, engine.Twin, true)
	if err != nil {
		return nil, err
	}
	_, _, slow, err := simulate(r, b, engine.Scan, true)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(result, slow) {
		return nil, fmt.Errorf("the index and the scan have different results: %s", firstDifference(result, slow))
	}
	return append(check(s, simulation, results, b.NodeRequests()), checkNotes(s.Expect.Notes, b.Notes)...), nil
}

// simulate runs sessions until nothing more is decided. If all is true, the decisions keep
// all candidates, and the third result is the outcome as JSON.
func simulate(r *engine.Registry, b *manifest.Bundle, search engine.Search, all bool) (*sim.Simulation, explain.Results, []byte, error) {
	e, err := Engine(r, b)
	if err != nil {
		return nil, explain.Results{}, nil, err
	}
	state, err := b.State()
	if err != nil {
		return nil, explain.Results{}, nil, err
	}
	results := explain.Results{Phrases: explain.PhrasesOf(e), State: state}
	simulation, err := sim.Simulate(e, state, sim.Options{Search: search, Explain: all, Now: b.Now()})
	if err != nil || !all {
		return simulation, results, nil, err
	}
	out, err := json.MarshalIndent(results.Of(&simulation.Outcome, true), "", " ")
	return simulation, results, out, err
}

func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d of the result is %s with the index and %s with the scan", i+1, bytes.TrimSpace(x[i]), bytes.TrimSpace(y[i]))
		}
	}
	return fmt.Sprintf("the results have %d and %d lines", len(x), len(y))
}

// Files lists the files of the paths. The files of a directory are sorted by name.
func Files(paths []string) ([]string, error) { return manifest.Files(paths) }
