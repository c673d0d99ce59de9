package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// sessions runs sessions of the scheduler, checks them, and has their decisions
// carried out.
type sessions struct {
	dice      *dice
	site      *site
	scheduler *scheduler
	executor  *executor
	recovery  *recovery
	history   *history
	counts    *Counts
}

// schedule runs a session and carries out its decisions. Sometimes the scheduler
// crashes before or while it does. Each decision of the index is compared with the
// scan.
func (s *sessions) schedule() error {
	s.site.now += second
	s.counts.Sessions++
	check := &sessionCheck{engine: s.scheduler.engine, state: s.scheduler.state, before: describeState(s.scheduler.state), history: s.history, counts: s.counts, withoutEvictions: s.scheduler.engineWithoutEvictions}
	check.options = engine.Options{
		Now: s.site.now, Search: engine.Twin, Patient: s.dice.chance(60), Record: true,
		Hold: pick(s.dice, []int64{0, 0, 30 * second, 600 * second}),
	}
	var restarted *restartedSession
	if s.dice.chance(20) {
		var err error
		if restarted, err = s.runRestarted(check.options); err != nil {
			return err
		}
	}
	out, err := s.scheduler.run(check.options)
	if err != nil {
		return err
	}
	if restarted != nil {
		if err := s.compare(restarted, &out); err != nil {
			return err
		}
	}
	s.counts.Refusals += len(out.Refusals)
	check.out = &out
	if err := check.run(); err != nil {
		return err
	}
	carriedOut := s.scheduler.log.size()
	if err := s.scheduler.record(out.Changes...); err != nil {
		return err
	}
	if s.dice.chance(5) {
		return s.recovery.crashWhileWriting(carriedOut)
	}
	return s.carryOut(&out)
}

// carryOut carries out the decisions of a session. A scheduler that crashes does not
// carry out the remaining ones, and its successor does not know them.
func (s *sessions) carryOut(out *engine.Outcome) error {
	crashes := s.dice.chance(8)
	if !crashes || s.dice.chance(50) { // a crash may be before or after the retirements are stored
		s.site.retire(out.RetirementOrders)
	}
	s.counts.Decisions += len(out.Decisions)
	if !crashes {
		return s.executor.carryOut(out.Decisions)
	}
	done := s.dice.roll(len(out.Decisions) + 1)
	if err := s.executor.carryOut(out.Decisions[:done]); err != nil {
		return err
	}
	s.counts.LostDecisions += len(out.Decisions) - done
	return s.recovery.crash()
}

// restartedSession is a session that was run with a new engine on the State that the
// log gives.
type restartedSession struct {
	out     engine.Outcome
	patient bool
}

// runRestarted runs the next session in advance, as a scheduler would that was
// restarted and has read its log.
func (s *sessions) runRestarted(o engine.Options) (*restartedSession, error) {
	state, err := s.scheduler.replayLog()
	if err != nil {
		return nil, err
	}
	e, err := s.scheduler.newEngine()
	if err != nil {
		return nil, err
	}
	out, err := runSession(e, state, o)
	return &restartedSession{out, o.Patient}, err
}

// compare checks that the scheduler makes the same decisions as it would after a
// restart. The decisions may differ in one case: an engine does not try a parked job
// before its back-off is over if only evictions could help it, and whether evictions
// are possible depends on time and on shares. The new engine may find such an eviction
// earlier.
func (s *sessions) compare(restarted *restartedSession, out *engine.Outcome) error {
	s.counts.Restarts++
	a, b := decisionList(out), decisionList(&restarted.out)
	if slices.Equal(a, b) {
		return nil
	}
	if restarted.patient && evicts(&restarted.out) {
		s.counts.EarlierEvictions++
		return nil
	}
	return fmt.Errorf("a restarted engine makes other decisions:\n%s", cluster.Difference(a, b))
}

func decisionList(out *engine.Outcome) (list []string) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		list = append(list, fmt.Sprint(d.Action, " ", d.Task.ID(), " ", d.Node, " ", d.Claims, " ", d.For))
	}
	return list
}

func evicts(out *engine.Outcome) bool {
	return slices.ContainsFunc(out.Decisions, func(d engine.Decision) bool { return d.Action == engine.EvictTask })
}
