package ctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/scheduler"
)

// simulateSession runs the session of which the snapshot is the input.
func (p *program) simulateSession(file string, data []byte, o root.SimulateOptions) error {
	b, err := manifest.Parse(file, data)
	if err != nil {
		return err
	}
	if session, read := manifest.SessionOf(b); session == nil || len(read) == 0 {
		return fmt.Errorf("%s is a snapshot without what the filters of Kubernetes read; \"berth simulate %s\" decides about it", file, file)
	}
	if p.flags.now != "" || p.flags.configuration != "" {
		return errors.New("a session is run as it was; omit --now and --config")
	}
	store := intree.NewStore()
	saved, err := scheduler.ReadSession(b, store)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	e, err := p.engineOf(file, saved, store)
	if err != nil {
		return err
	}
	phrases := explain.PhrasesOf(e)
	return p.answers.Simulate(root.Cluster{
		Engine: e, State: saved.State, Now: saved.Now,
		Session: &root.OneSession{Hold: saved.Hold, Tried: saved.Tried, Decided: func(out *engine.Outcome) {
			decisions, refusals := scheduler.SessionDecisions(phrases, out)
			p.compare(saved.Session, decisions, refusals)
		}},
	}, o)
}

// engineOf returns an engine with the profiles of the scheduler that ran the session.
func (p *program) engineOf(file string, saved *scheduler.SavedSession, store *intree.Store) (*engine.Engine, error) {
	b := &manifest.Bundle{}
	if saved.Configuration != nil {
		text, err := json.Marshal(saved.Configuration)
		if err != nil {
			return nil, err
		}
		if b, err = manifest.Parse(file, text); err != nil {
			return nil, err
		}
	}
	profiles, err := scenario.Profiles(b)
	if err != nil {
		return nil, err
	}
	for i, x := range profiles {
		if !slices.ContainsFunc(x.Plugins, func(c engine.PluginConfig) bool { return c.Name == intree.Name }) {
			profiles[i].Plugins = append(slices.Clone(x.Plugins), engine.PluginConfig{Name: intree.Name})
		}
	}
	if err := p.options.Registry.RegisterPluginBuilder(intree.Name, intree.Builder(store)); err != nil {
		return nil, err
	}
	e, err := engine.NewProfiles(p.options.Registry, profiles)
	if err != nil {
		return nil, err
	}
	e.Resume(saved.Parameters)
	return e, nil
}
