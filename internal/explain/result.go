package explain

import (
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/wire"
)

// Result sums the simulation up; all adds every candidate and every miss.
func (s *Simulation) Result(all bool) *wire.Result {
	out := &wire.Result{Decisions: []wire.Decision{}, Refusals: []wire.Refusal{}}
	for i := range s.Decisions {
		out.Decisions = append(out.Decisions, wire.NewDecision(s.State, &s.Decisions[i], all))
	}
	for _, r := range s.Refusals {
		out.Refusals = append(out.Refusals, s.Refusal(r, all))
	}
	for i := range s.Rankings {
		out.Rankings = append(out.Rankings, wire.NewRanking(&s.Rankings[i]))
	}
	return out
}

// Refusal is what the simulation says of a workload that was turned down.
func (s *Simulation) Refusal(r *engine.Refusal, all bool) wire.Refusal {
	return s.Phrases.Refusal(s.State, s.Awaits, r, all)
}

// Cause says for whom a task is evicted, why, and where it goes if it moves; ""
// for what is no eviction.
func Cause(d *wire.Decision) string { return CauseText(d.For, d.Reason, d.Landing) }

// CauseText is "job/b (Reclaimed)", or "job/b (Consolidated), moves to gpu-2".
func CauseText(whom, reason, landing string) string {
	text := whom
	if reason != "" {
		text = strings.TrimSpace(text + " (" + reason + ")")
	}
	if landing != "" {
		text += ", moves to " + landing
	}
	return text
}
