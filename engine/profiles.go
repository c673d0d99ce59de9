package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// NamedProfile is one of several profiles of an engine. It decides about the tasks that name
// it (cluster.Shape.Profile). The first profile also decides about the tasks that name none,
// or a name that no profile has.
type NamedProfile struct {
	Name    string
	Plugins Profile
}

// has reports whether the profile has a plugin with the name.
func (p *NamedProfile) has(name string) bool {
	return slices.ContainsFunc(p.Plugins, func(c PluginConfig) bool { return c.Name == name })
}

// Shared is a plugin that must be the same in all profiles of an engine, because it has hooks
// about the jobs of all profiles: comparisons of queues and of jobs, adapters, sweeps,
// standings, and all hooks about evictions and victims. A plugin with such a hook that does
// not implement Shared fails the first session in which only some profiles have it.
type Shared interface {
	SharedByProfiles()
}

// NewProfiles builds the plugins of several profiles and returns one engine for them, with
// one order of queues and jobs. A plugin that has the same weight, arguments and position in
// several profiles is built once. Of any other plugin, each profile has its own, which is
// called only for the jobs of this profile. The name of a single profile may be empty. The error
// says which plugin is unknown, has wrong arguments, or must be the same in all profiles.
func NewProfiles(r *Registry, profiles []NamedProfile) (*Engine, error) {
	if len(profiles) == 0 {
		return nil, errors.New("an engine needs at least one profile")
	}
	for i, p := range profiles {
		switch {
		case p.Name == "" && len(profiles) > 1:
			return nil, fmt.Errorf("profile %d has no name; name each profile", i+1)
		case slices.ContainsFunc(profiles[:i], func(o NamedProfile) bool { return o.Name == p.Name }):
			return nil, fmt.Errorf("there are two profiles named %q; give each its own name", p.Name)
		}
	}
	return newEngine(r, profiles)
}

// newEngine returns an engine for the profiles.
func newEngine(r *Registry, profiles []NamedProfile) (*Engine, error) {
	plugins, err := r.build(profiles)
	if err != nil {
		return nil, err
	}
	e := &Engine{registry: r, profiles: profiles, plugins: plugins, index: newIndex()}
	e.publish = e.index.publish
	for i := range plugins {
		if c, ok := plugins[i].Plugin.(Closer); ok {
			e.closers = append(e.closers, c)
		}
		if r, ok := plugins[i].Plugin.(Reopener); ok {
			e.reopeners = append(e.reopeners, r)
		}
	}
	return e, nil
}

// members says which profiles have a plugin. A nil *members means that all have it.
type members struct {
	in     map[string]bool // by the name of each profile: whether it has the plugin
	others bool            // whether the first profile has it, which decides about tasks with any other name
}

// membersOf returns the members of a plugin; in says for each profile whether it has the
// plugin.
func membersOf(profiles []NamedProfile, in []bool) *members {
	if !slices.Contains(in, false) {
		return nil
	}
	m := &members{in: make(map[string]bool, len(profiles)), others: in[0]}
	for i, p := range profiles {
		m.in[p.Name] = in[i]
	}
	return m
}

// has reports whether the profile that decides about tasks with the name has the plugin.
func (m *members) has(name string) bool {
	in, known := m.in[name]
	return in || !known && m.others
}

// decideShape reports whether the plugin's hooks are called for tasks of the shape.
func (m *members) decideShape(s *cluster.Shape) bool { return m == nil || m.has(s.Profile) }

// decide reports whether the plugin's hooks are called for the job as a whole.
func (m *members) decide(j *cluster.Job) bool { return m == nil || m.has(j.Profile()) }

// openPlugin calls OnSessionOpen of the plugin. If only some profiles have the plugin, its hooks
// are then confined to their jobs.
func (e *Engine) openPlugin(s *Session, p *weighted) {
	h := s.Hooks
	if p.profiles == nil {
		p.OnSessionOpen(s)
		return
	}
	before, earlier := *h, Wake(0)
	if p.earlier {
		earlier = h.hints.wakes(p.name)
		h.hints = slices.DeleteFunc(h.hints, func(x hint) bool { return x.plugin == p.name })
	}
	p.OnSessionOpen(s)
	h.AddWake(earlier | h.hints.wakes(p.name)) // hints are kept by name, and another plugin has the same one
	p.confine(h, &before)
}

// confine restricts the hooks that the plugin registered, those that before does not have, to
// the jobs of its profiles. Handlers and observers are called for all jobs, because what a
// plugin counts depends on all. So are Reservers, of which only the rejections are confined.
func (p *weighted) confine(h, before *Hooks) {
	p.rejectShared(h, before)
	confine(h.surpluses, before.surpluses, p.profiles)
	confine(h.taskOrders, before.taskOrders, p.profiles)
	confine(h.preFilters, before.preFilters, p.profiles)
	confine(h.shapeFilters, before.shapeFilters, p.profiles)
	confine(h.taskFilters, before.taskFilters, p.profiles)
	confine(h.shapeScores, before.shapeScores, p.profiles)
	confine(h.domainScores, before.domainScores, p.profiles)
	confine(h.taskScores, before.taskScores, p.profiles)
	confine(h.deviceScores, before.deviceScores, p.profiles)
	confine(h.groupFilters, before.groupFilters, p.profiles)
	confine(h.groupScores, before.groupScores, p.profiles)
	confine(h.exclusions, before.exclusions, p.profiles)
	confine(h.instanceScores, before.instanceScores, p.profiles)
	for i := len(before.reservers); i < len(h.reservers); i++ {
		h.reservers[i].profiles = p.profiles
	}
}

// confine restricts the hooks that follow those of before to jobs of the profiles.
func confine[F any](list, before []hook[F], m *members) {
	for i := len(before); i < len(list); i++ {
		k := &list[i]
		k.profiles = m
		shapes, tasks := k.shapes, k.tasks
		k.shapes = func(s *cluster.Shape) bool { return m.decideShape(s) && (shapes == nil || shapes(s)) }
		k.tasks = func(t *cluster.Task, j *cluster.Job) bool {
			return m.decideShape(t.Shape) && (tasks == nil || tasks(t, j))
		}
	}
}

// rejectShared fails the session if the plugin registered a hook about the jobs of all
// profiles.
func (p *weighted) rejectShared(h, before *Hooks) {
	lists := func(h *Hooks) []int {
		return []int{
			len(h.queueOrders), len(h.jobPriorities), len(h.jobOrders), len(h.victims[Reclaim]), len(h.victims[Preempt]),
			len(h.victims[Move]), len(h.victimCosts), len(h.evictionPurposes), len(h.adapters), len(h.sweeps), len(h.standings),
		}
	}
	names := []string{
		"AddQueueOrder", "AddJobPriority", "AddJobOrder", "AddReclaimable", "AddPreemptable",
		"AddMovable", "AddVictimCost", "AddEvictionPurpose", "AddAdapter", "AddSweep", "AddStanding",
	}
	was := lists(before)
	for i, n := range lists(h) {
		if n > was[i] {
			misused(h, names[i], "this hook is about the jobs of all profiles, and the plugin is not the same in all of them; give all profiles the same plugin, and implement engine.Shared")
			return
		}
	}
}
