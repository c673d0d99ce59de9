package engine

import "maps"

// Parameters are what plugins published last, by plugin.
func (e *Engine) Parameters() map[string]uint64 { return maps.Clone(e.index.params) }

// Resume gives the engine the parameters of an earlier one, before its first session.
func (e *Engine) Resume(parameters map[string]uint64) {
	for plugin, number := range parameters {
		e.index.publish(plugin, number)
	}
}
