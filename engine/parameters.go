package engine

import "maps"

// Published is what the plugin published last (see Publish), in this engine or in
// the one that it resumes: a plugin that learns continues from there after a restart.
func (s *Session) Published(plugin string) (parameters uint64, ok bool) {
	parameters, ok = s.engine.index.params[plugin]
	return parameters, ok
}

// Parameters are what plugins published last, by plugin.
func (e *Engine) Parameters() map[string]uint64 { return maps.Clone(e.index.params) }

// Resume gives the engine the parameters of an earlier one, before its first session.
func (e *Engine) Resume(parameters map[string]uint64) {
	for plugin, number := range parameters {
		e.index.publish(plugin, number)
	}
}
