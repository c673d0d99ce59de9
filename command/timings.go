package command

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// writeTimings prints how long hooks took, the longest first.
func (p *program) writeTimings(t *engine.Timings) {
	rows := [][]string{{"PLUGIN", "HOOK", "CALLS", "TIME", "EACH"}}
	for _, m := range t.List() {
		rows = append(rows, []string{m.Plugin, m.Hook, strconv.FormatInt(m.Calls, 10), short(m.Nanoseconds), short(m.Nanoseconds / m.Calls)})
	}
	grid(p.stderr, rows)
}

// short is a duration with three digits.
func short(nanoseconds int64) string {
	d := time.Duration(nanoseconds)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

// noteUnasked tells of hooks that are never asked, of plugins that are not in the default
// profile: their author or operator may expect otherwise.
func (p *program) noteUnasked(e *engine.Engine) {
	known := standard.Profile()
	for _, u := range e.UncalledHooks() {
		if !slices.ContainsFunc(known, func(c engine.PluginConfig) bool { return c.Name == u.Plugin }) {
			fmt.Fprintf(p.stderr, "note: plugin %s: its hook %s is never asked: %s\n", u.Plugin, u.Hook, u.Why)
		}
	}
}
