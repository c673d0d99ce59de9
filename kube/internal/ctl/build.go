package ctl

import (
	"cmp"
	"fmt"
	"slices"

	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/scheduler"
	corev1 "k8s.io/api/core/v1"
)

// inputs are a State and an Engine, and what the filters of Kubernetes read.
type inputs struct {
	*scheduler.Filled
	store    *intree.Store
	trials   *trials
	models   *models // nil if replicas are pods only
	engine   *engine.Engine
	profiles []engine.NamedProfile // without the plugin of trials
	now      int64
}

func (in *inputs) cluster() root.Cluster {
	c := root.Cluster{Engine: in.engine, State: in.State, Now: in.now, Rekey: in.trials.rekey}
	if in.models != nil {
		c.Models = &root.Models{Plans: in.models.plans(), Fleet: in.models.fleet, Adopt: in.trials.adopt}
	}
	return c
}

// build makes inputs of the objects, and writes notes about how objects were read. The world
// does not change.
func (p *program) build(w *world) (*inputs, error) {
	in, err := p.fill(w, p.flags.feed)
	if err != nil {
		return nil, err
	}
	p.writeNotes(in, w)
	return in, nil
}

// writeRefused writes which pods were placed, and could not be bound. The engine, which would place
// them again, does not know that.
func (p *program) writeRefused(w *world) {
	for _, e := range w.objects {
		pod, isPod := e.Object.(*corev1.Pod)
		if !isPod || pod.Spec.NodeName != "" {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == feed.ReasonBindingRefused {
				fmt.Fprintf(p.answers.Stderr(), "note: Pod %s/%s: there was room, but the binding was refused: %s\n", pod.Namespace, pod.Name, c.Message)
			}
		}
	}
}

// fill makes inputs of the objects. options is called after the scheduler names are known.
func (p *program) fill(w *world, options func() feed.Options) (*inputs, error) {
	if p.current == nil {
		if err := p.register(); err != nil {
			return nil, err
		}
	}
	in := &inputs{store: intree.NewStore(), now: w.now}
	var err error
	if in.profiles, err = p.options.Profiles(p.flags.configuration, p.flags.evictions); err != nil {
		return nil, err
	}
	if err := p.flags.nameProfiles(in.profiles, p.options.Names); err != nil {
		return nil, err
	}
	in.Filled = scheduler.Fill(options(), w.objects, in.store)
	in.trials = newTrials(in, w)
	p.current = in
	// Trials change the Store when a session opens, before the filters read it.
	profiles := slices.Clone(in.profiles)
	for i, x := range profiles {
		at := slices.IndexFunc(x.Plugins, func(c engine.PluginConfig) bool { return c.Name == intree.Name })
		profiles[i].Plugins = slices.Insert(slices.Clone(x.Plugins), max(0, at), engine.PluginConfig{Name: trialsName})
	}
	in.engine, err = engine.NewProfiles(p.options.Registry, profiles)
	return in, err
}

// mostNotes is how many notes are written.
const mostNotes = 10

// writeNotes writes which objects are wrong, and which pods could not be bound. A second call writes
// nothing.
func (p *program) writeNotes(in *inputs, w *world) {
	if p.noted {
		return
	}
	p.noted = true
	defer p.writeRefused(w)
	notes := slices.Clone(in.Notes)
	notes = slices.DeleteFunc(notes, func(n feed.Note) bool { return n.Severity != convert.Invalid })
	slices.SortStableFunc(notes, func(a, b feed.Note) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range notes[:min(len(notes), mostNotes)] {
		fmt.Fprintln(p.answers.Stderr(), "note: "+noteText(&notes[i]))
	}
	if more := len(notes) - mostNotes; more > 0 {
		fmt.Fprintf(p.answers.Stderr(), "note: there are %s about wrong objects\n", english.Count(more, "more note"))
	}
	for _, err := range in.Rejected {
		fmt.Fprintf(p.answers.Stderr(), "note: a fact was rejected: %v\n", err)
	}
}
