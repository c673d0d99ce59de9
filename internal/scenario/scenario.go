// Package scenario checks that the engine decides what a scenario file says it
// should: input and expectation in one file that a person can read, mail and run.
//
// It compares and refuses to know who is right. Every scenario also runs twice,
// with the index and with the plain scan that shares nothing with it, and fails
// where the two differ, unless it is too large for that.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/plugins/standard"
)

// Mismatch is one thing that came out otherwise than expected.
type Mismatch struct {
	What string // what was checked, such as "placement of job/train/worker-0"
	Want string
	Got  string
}

func (m Mismatch) String() string { return fmt.Sprintf("%s: want %s, have %s", m.What, m.Want, m.Got) }

// Engine builds what the bundle's configuration asks for: the default profile
// with its changes.
func Engine(r *engine.Registry, b *manifest.Bundle) (*engine.Engine, error) {
	profile, err := Profile(b)
	if err != nil {
		return nil, err
	}
	return engine.New(r, profile)
}

// Profile is the default profile with what the bundle's configuration changes.
func Profile(b *manifest.Bundle) (engine.Profile, error) {
	c := b.Configuration()
	if c == nil {
		return standard.Profile(), nil
	}
	overrides := make([]standard.Override, 0, len(c.Plugins))
	for _, p := range c.Plugins {
		o := standard.Override{Name: p.Name, Place: place(p), Disabled: p.Disabled, Where: p.Where}
		if p.Weight != nil {
			w := int64(*p.Weight)
			o.Weight = &w
		}
		if !p.Arguments.Empty() {
			o.Arguments = p.Arguments
		}
		overrides = append(overrides, o)
	}
	profile, err := standard.Merge(standard.Profile(), overrides, c.ReplaceDefaults)
	if err != nil && !strings.HasPrefix(err.Error(), c.Where[:strings.LastIndexByte(c.Where, ':')+1]) {
		return nil, fmt.Errorf("%s: %w", c.Where, err)
	}
	return profile, err
}

// place is where the configuration puts a plugin.
func place(p manifest.PluginEntry) standard.Place {
	switch {
	case p.Before != "":
		return standard.Place{Side: standard.Before, Of: p.Before}
	case p.After != "":
		return standard.Place{Side: standard.After, Of: p.After}
	case p.Position == v1alpha1.PositionFirst:
		return standard.Place{Side: standard.First}
	case p.Position == v1alpha1.PositionLast:
		return standard.Place{Side: standard.Last}
	}
	return standard.Place{}
}

// Thorough reports whether the bundle is small enough for every decision to be
// checked against a scan and to keep each node as a candidate. A larger one is
// decided once, with the index.
func Thorough(b *manifest.Bundle) (bool, error) {
	const most = 2_000_000 // candidates, at some 300 bytes each
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

// Run decides what the bundle describes and compares it with the bundle's
// Scenario. An error means that there was nothing to compare: bad input, or a
// plugin that broke its contract, or an index that differs from the scan.
func Run(r *engine.Registry, b *manifest.Bundle) ([]Mismatch, error) {
	s := b.Scenario()
	if s == nil {
		return nil, fmt.Errorf("there is no Scenario in it: nothing says what should come out")
	}
	thorough, err := Thorough(b)
	if err != nil {
		return nil, err
	}
	if s.Cycles != nil {
		return runCourse(r, b, thorough)
	}
	if !thorough {
		if len(s.Expect.Scores) > 0 {
			return nil, fmt.Errorf("the scenario is too large to keep every candidate's scores; leave expect.scores out, or make it smaller")
		}
		simulation, results, _, err := simulate(r, b, engine.Indexed, false)
		if err != nil {
			return nil, err
		}
		return check(s, simulation, results, b.NodeRequests()), nil
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
		return nil, fmt.Errorf("the index and the scan come to different results: %s", firstDifference(result, slow))
	}
	return check(s, simulation, results, b.NodeRequests()), nil
}

// simulate also returns the result as JSON, if all is true.
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

// Files lists the scenario files that the paths lead to, directories in name order.
func Files(paths []string) ([]string, error) { return manifest.Files(paths) }
