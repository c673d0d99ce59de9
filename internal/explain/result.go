package explain

import (
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/wire"
)

// Results converts what an engine decided to the types of package wire, with their sentences.
type Results struct {
	Phrases      Phrases        // the phrases of the engine
	State        *cluster.State // the State after the decisions
	AwaitedNodes AwaitedNodes   // nodes that are going to be created; nil: none
}

// Of converts an outcome. If all is true, the result has every candidate of every decision,
// and every node of every refusal.
func (x Results) Of(o *engine.Outcome, all bool) *wire.Result {
	out := &wire.Result{Decisions: []wire.Decision{}, Refusals: []wire.Refusal{}}
	for i := range o.Decisions {
		out.Decisions = append(out.Decisions, wire.NewDecision(x.State, &o.Decisions[i], all))
	}
	for _, r := range o.Refusals {
		out.Refusals = append(out.Refusals, x.Refusal(r, all))
	}
	for i := range o.RetirementOrders {
		out.Rankings = append(out.Rankings, wire.NewRanking(&o.RetirementOrders[i]))
	}
	return out
}

// Refusal converts one refusal. If nodes are going to be created for the set of the workload,
// the refusal says so and is not permanent.
func (x Results) Refusal(r *engine.Refusal, all bool) wire.Refusal {
	out := x.Phrases.Refusal(r, all)
	if j := x.State.Job(r.Job); j != nil {
		AwaitNodes(&out, x.AwaitedNodes[j.Set.Name])
	}
	return out
}

// Refusal converts one refusal, with its message.
func (ph Phrases) Refusal(r *engine.Refusal, all bool) wire.Refusal {
	out := wire.NewRefusal(r, all)
	out.Message = ph.Message(r)
	return out
}

// Cause returns for which workload a task is evicted, why, and to which node it moves. It
// returns "" for other decisions.
func Cause(d *wire.Decision) string { return CauseText(d.For, d.Reason, d.Landing) }

// CauseText returns "job/b (Reclaimed)", or "job/b (Consolidated), moves to gpu-2".
func CauseText(forJob, reason, landing string) string {
	text := forJob
	if reason != "" {
		text = strings.TrimSpace(text + " (" + reason + ")")
	}
	if landing != "" {
		text += ", moves to " + landing
	}
	return text
}
