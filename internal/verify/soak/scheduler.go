package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// scheduler is the program that is tested: an engine, its State, and the log of State
// on disk. After a crash, a new engine, State and log take their place.
type scheduler struct {
	engine *engine.Engine
	state  *cluster.State
	log    *log
	counts *Counts
	// profiles are the profiles of the engine; nil means the default profile.
	profiles []engine.NamedProfile
}

// start starts a new scheduler with the given State.
func (s *scheduler) start(state *cluster.State) (err error) {
	if s.engine, err = s.newEngine(); err != nil {
		return err
	}
	s.state = state
	s.log, err = newLog(state)
	return err
}

// newEngine returns an engine with the profiles, or with the default profile if there are none.
func (s *scheduler) newEngine() (*engine.Engine, error) {
	if s.profiles != nil {
		return engine.NewProfiles(standard.Registry(), s.profiles)
	}
	return engine.New(standard.Registry(), standard.Profile())
}

// engineWithoutEvictions returns such an engine without the plugins that evict.
func (s *scheduler) engineWithoutEvictions() (*engine.Engine, error) {
	evicts := func(p engine.PluginConfig) bool {
		return slices.Contains([]string{"Consolidate", "Reclaim", "Preempt"}, p.Name)
	}
	if s.profiles == nil {
		return engine.New(standard.Registry(), slices.DeleteFunc(standard.Profile(), evicts))
	}
	profiles := slices.Clone(s.profiles)
	for i, p := range profiles {
		profiles[i].Plugins = slices.DeleteFunc(slices.Clone(p.Plugins), evicts)
	}
	return engine.NewProfiles(standard.Registry(), profiles)
}

// apply applies a change to State and writes it to the log.
func (s *scheduler) apply(c cluster.Change) error {
	if err := s.state.Apply(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind(), err)
	}
	return s.record(c)
}

// record writes changes to the log that State already has.
func (s *scheduler) record(changes ...cluster.Change) error {
	for _, c := range changes {
		if err := s.log.append(c); err != nil {
			return err
		}
		s.counts.Changes++
	}
	return nil
}

// compactLog replaces a long log by a snapshot.
func (s *scheduler) compactLog() (err error) {
	if s.log.isLong() {
		s.log, err = newLog(s.state)
	}
	return err
}

// replayLog returns the State that the whole log gives.
func (s *scheduler) replayLog() (*cluster.State, error) { return s.log.replay(s.log.size()) }

// run runs a session. The changes that it decides are not written to the log.
func (s *scheduler) run(o engine.Options) (engine.Outcome, error) {
	return runSession(s.engine, s.state, o)
}

func runSession(e *engine.Engine, state *cluster.State, o engine.Options) (engine.Outcome, error) {
	session := e.Open(state, o)
	defer session.Close()
	return session.Run()
}
