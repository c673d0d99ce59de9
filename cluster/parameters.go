package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// maxParameters bounds what a plugin keeps in State.
const maxParameters = 100_000

func (c Learn) check() error {
	switch {
	case c.Plugin == "":
		return errors.New("parameters without a plugin")
	case len(c.Parameters) > maxParameters:
		return fmt.Errorf("plugin %q has %d parameters; want at most %d", c.Plugin, len(c.Parameters), maxParameters)
	}
	return nil
}

func (c Learn) apply(s *State) error {
	if err := c.check(); err != nil {
		return err
	}
	s.parameters.set(c.Plugin, slices.Clone(c.Parameters))
	return nil
}

// parameters are the parameters of plugins. A list is never changed, only replaced.
type parameters struct {
	journal  *journal
	byPlugin map[string][]int64
}

func (p *parameters) set(plugin string, list []int64) {
	if p.journal.recording() {
		was := p.byPlugin[plugin]
		p.journal.recordUndo(func() { p.set(plugin, was) })
	}
	if len(list) == 0 {
		delete(p.byPlugin, plugin)
		return
	}
	p.byPlugin[plugin] = list
}

// records returns the changes that make these parameters, sorted by plugin.
func (p *parameters) records() []Learn {
	var out []Learn
	for _, plugin := range slices.Sorted(maps.Keys(p.byPlugin)) {
		out = append(out, Learn{plugin, p.byPlugin[plugin]})
	}
	return out
}

func (p *parameters) clone(l *journal) parameters {
	return parameters{l, maps.Clone(p.byPlugin)}
}

// Parameters returns what the plugin has learnt (see Learn). It must not be changed.
func (v View) Parameters(plugin string) []int64 { return v.state.parameters.byPlugin[plugin] }
