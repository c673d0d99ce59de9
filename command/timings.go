package command

import (
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// writeTimings prints how long the hooks took, in the order of Timings.List: the
// longest time first.
func (p *program) writeTimings(t *engine.Timings) {
	rows := [][]string{{"PLUGIN", "HOOK", "CALLS", "TIME", "EACH"}}
	for _, m := range t.List() {
		rows = append(rows, []string{m.Plugin, m.Hook, strconv.FormatInt(m.Calls, 10), threeDigits(m.Nanoseconds), threeDigits(m.Nanoseconds / m.Calls)})
	}
	grid(p.stderr, rows)
}

// threeDigits formats a duration, rounded to three significant digits.
func threeDigits(nanoseconds int64) string {
	d := time.Duration(nanoseconds)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

// noteUncalledHooks prints a note for each hook that the engine never calls under
// this profile, because the author of the plugin may expect that it is called.
// Plugins of the default profile are left out.
func (p *program) noteUncalledHooks(e *engine.Engine) {
	known := standard.Profile()
	for _, u := range e.UncalledHooks() {
		if !slices.ContainsFunc(known, func(c engine.PluginConfig) bool { return c.Name == u.Plugin }) {
			p.note("plugin %s: its hook %s is never called: %s", u.Plugin, u.Hook, u.Why)
		}
	}
}
