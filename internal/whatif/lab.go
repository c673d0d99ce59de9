package whatif

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// change is a change of the State that is made before a simulation.
type change struct {
	kind  wire.ChangeKind
	text  string // completes the sentence "It would fit …"
	brief string // the change in a few words; "" if text is short enough
	// cost orders the changes that help, the lowest first. It is a rough percentage: how
	// much of the request is given up, or how much the change takes from other workloads or
	// costs in money.
	cost  int
	apply func(*cluster.State) error
	// arguments are the arguments of berth whatif that make the change, apart from changes of
	// fields, which lab.arguments finds.
	arguments []string
	opened    []string  // the nodes of which the change edits the spec or the status
	scaled    []string  // the sets of which the change lowers the number of replicas
	removes   int       // how many workloads it removes
	parts     []*change // the changes that it joins; none if it is a single change
}

func newChange(kind wire.ChangeKind, text string, cost int, apply func(*cluster.State) error) *change {
	return &change{kind: kind, text: text, cost: cost, apply: apply}
}

// inBrief returns the change in a few words.
func (c *change) inBrief() string {
	if c.brief != "" {
		return c.brief
	}
	return strings.TrimPrefix(c.text, "with ")
}

// verdict says whether the workload would be placed after changes.
type verdict struct {
	fits    bool            // the minimum is placed, or all tasks if only surplus was refused
	refusal *engine.Refusal // why not; may be nil
}

// lab tries changes: it applies them to the State before the simulation, simulates to the end,
// and undoes both. So a change helps if the input of the user, changed in this way, would lead
// to the placement. The budget of a lab is a number of tries and of steps and not a time, so that
// answers are the same on every machine.
type lab struct {
	engine      *engine.Engine
	spare       *engine.Engine // for States that are made of a changed input; nil until it is first used
	state       *cluster.State // as it was before the simulation
	workload    *workload
	objects     Objects        // see Question.Objects; may be nil
	progress    func(Progress) // see Question.Progress; may be nil
	helped      int            // changes that were found to help
	cheapest    *change        // the one of them with the lowest cost; nil if there is none
	now         int64
	tries       int // simulations that were run
	budget      int // simulations that may be run
	steps       int // steps that count for the budget; see Steps
	allSteps    int // steps that the simulations took together
	mostSteps   int // steps of one simulation that count at most, so that one which takes long does not end the search
	stepBudget  int // no more simulations are run after so many steps, except for the first least
	least       int
	counts      bool                 // the Demand of the State is that of its jobs, and is counted again when a change is made
	displaced   map[string]bool      // the workloads that are evicted without a change
	laterTime   map[*change]int64    // the time at which a change is tried, if that is later than now
	alsoEvicted map[*change][]string // for a change that was tried alone and helps: the workloads that are evicted with it and not without it, except those that move
	cutShort    map[*change]bool     // the simulation of the change was not run to its end
	isLarge     bool                 // a simulation takes so long that fewer changes are tried
	complete    bool                 // simulations are run to their end
	err         error                // the first error of the engine; no verdict is valid after it
}

// noTriesLeft reports whether the budget is used up, or the engine has failed.
func (l *lab) noTriesLeft() bool {
	return l.tries >= l.budget || l.steps >= l.stepBudget && l.tries >= l.least || l.err != nil
}

// allow sets the budget for what is tried next: some tries, and some steps, of which the first two
// tries may take more, or only the first if no steps are left.
func (l *lab) allow(tries, steps int) {
	l.budget, l.stepBudget, l.least = l.tries+tries, l.steps+steps, l.tries+min(2, tries)
	if steps <= 0 {
		l.least = l.tries + min(1, tries)
	}
}

// try applies the changes, simulates, and undoes both. If no tries are left, a change cannot
// be applied or the simulation does not end, the verdict is that the workload does not fit.
func (l *lab) try(changes ...*change) verdict { return l.tryAndRead(nil, changes...) }

// tryAndRead is like try, and calls read with the State after the simulation, before it is
// undone.
func (l *lab) tryAndRead(read func(*cluster.State), changes ...*change) verdict {
	if l.noTriesLeft() {
		return verdict{}
	}
	if l.progress != nil {
		done := Progress{Tried: l.tries, Helped: l.helped}
		if l.cheapest != nil {
			done.Cheapest = l.cheapest.inBrief()
		}
		l.progress(done)
	}
	l.tries++
	defer undoAtEnd(l.state)()
	now := l.now
	for _, c := range changes {
		now = max(now, l.laterTime[c])
	}
	state, e, err := l.apply(changes)
	if err != nil {
		return verdict{}
	}
	cutShort := false
	enough := func(s *sim.Simulation) bool {
		cutShort = !l.complete && l.isFinal(s)
		return cutShort
	}
	o := sim.Options{Now: now, Brief: true, Enough: enough}
	if j := state.Job(l.workload.id); j != nil && !l.complete && l.refusalIsFinal(j) {
		o.Until = j.ID
	}
	version := state.Version()
	simulation, err := sim.Simulate(e, state, o)
	if simulation != nil {
		steps := Steps(simulation, state.Version()-version)
		l.allSteps += steps
		l.steps += min(steps, l.mostSteps)
	}
	if err != nil {
		if !errors.Is(err, sim.ErrUnsettled) {
			l.err = err
		}
		return verdict{}
	}
	v := verdict{fits: l.workload.isSatisfied(state), refusal: simulation.RefusalOf(l.workload.id)}
	if v.fits && len(changes) == 1 {
		l.cutShort[changes[0]] = cutShort
		l.alsoEvicted[changes[0]] = slices.DeleteFunc(evicted(simulation.Decisions), func(id string) bool { return l.displaced[id] || id == l.workload.id })
	}
	if read != nil {
		read(state)
	}
	return v
}

// apply makes the changes, and returns the State after them and an engine for it. This is the
// State of the lab, unless a change edits the manifest of a workload that has tasks on nodes. What
// these tasks hold after such a change is decided when the input is read, so a new State is made
// of the changed input.
func (l *lab) apply(changes []*change) (*cluster.State, *engine.Engine, error) {
	var edits []*change
	if l.objects != nil && l.workload.holdsRoom(l.state) {
		changes, edits = splitEdits(changes)
	}
	state, e := l.state, l.engine
	if len(edits) > 0 {
		arguments := l.arguments(join(edits))
		if len(arguments) == 0 {
			return nil, nil, fmt.Errorf("no field of the input makes the change")
		}
		if l.spare == nil { // the engine of the lab keeps its ranking of the nodes of the State of the lab
			if l.spare, l.err = l.engine.Another(); l.err != nil {
				return nil, nil, l.err
			}
		}
		var err error
		if state, err = l.objects.Changed(arguments); err != nil {
			return nil, nil, err
		}
		e = l.spare
	}
	for _, c := range changes {
		if err := c.apply(state); err != nil {
			return nil, nil, err
		}
	}
	if l.counts {
		state.CountDemand()
	}
	return state, e, nil
}

// splitEdits separates the changes that edit the manifest of the workload from the others. A
// change that joins several is divided.
func splitEdits(changes []*change) (others, edits []*change) {
	for _, c := range changes {
		switch {
		case len(c.parts) > 0:
			o, e := splitEdits(c.parts)
			others, edits = append(others, o...), append(edits, e...)
		case slices.Contains([]wire.ChangeKind{wire.SmallerRequest, wire.LiftCondition, wire.HigherPriority}, c.kind):
			edits = append(edits, c)
		default:
			others = append(others, c)
		}
	}
	return others, edits
}

// evicts returns the workloads that are evicted with the change, which helps, and not without it.
func (l *lab) evicts(c *change) []string {
	if l.cutShort[c] {
		budget, least := l.budget, l.least
		l.complete, l.budget, l.least = true, l.tries+1, l.tries+1
		l.try(c)
		l.tries--
		l.complete, l.budget, l.least = false, budget, least
	}
	return l.alsoEvicted[c]
}

// isFinal reports whether further sessions cannot change the verdict. A workload that is placed is
// not preemptible, and stays, if no task was evicted. One that is refused does not depend on where
// other jobs are, and a later session has less room, unless tasks were evicted for others. It may
// still reclaim what other queues were given in this session, or take room that is left of
// evictions, which is not waited for if a simulation takes long: each try is at most one session then,
// unless the change helps.
func (l *lab) isFinal(simulation *sim.Simulation) bool {
	j := simulation.State.Job(l.workload.id)
	switch {
	case j == nil:
		return false
	case l.workload.isSatisfied(simulation.State):
		evicts := func(d engine.Decision) bool { return d.Action == engine.EvictTask }
		return !j.Preemptible && !slices.ContainsFunc(simulation.Decisions, evicts)
	}
	return l.refusalIsFinal(j) && simulation.RefusalOf(j.ID) != nil
}

func (l *lab) refusalIsFinal(j *cluster.Job) bool { return l.isLarge && len(j.Affinity) == 0 }

// undoAtEnd marks the State, and returns a function that undoes all changes since the mark.
func undoAtEnd(s *cluster.State) func() {
	mark := s.Mark()
	return func() {
		s.Undo(mark)
		s.Release(mark)
	}
}

// evicted returns the workloads that are evicted, without those that move.
func evicted(decisions []engine.Decision) []string {
	var out []string
	for i := range decisions {
		d := &decisions[i]
		if job := d.Task.Job; d.Action == engine.EvictTask && d.Landing == "" && !slices.Contains(out, job) {
			out = append(out, job)
		}
	}
	return out
}
