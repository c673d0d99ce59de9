package engine

import "maps"

// Parameters returns the parameters that each plugin published last (see Hooks.Publish), by
// the name of the plugin. Keep them to Resume another engine.
func (e *Engine) Parameters() map[string]uint64 { return maps.Clone(e.index.params) }

// Resume gives the engine the parameters of an earlier engine. Call it before the first
// session.
func (e *Engine) Resume(parameters map[string]uint64) {
	for plugin, number := range parameters {
		e.index.publish(plugin, number)
	}
}
