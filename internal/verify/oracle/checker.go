package oracle

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Violation is a rule that was broken, and the task or job with which it was broken.
type Violation struct{ Rule, Of string }

// Legal returns the rules that the session broke. before is State before the session.
func Legal(k Kind, before *cluster.State, now int64, out engine.Outcome) []Violation {
	o := newObjects(before.View(), now)
	o.divide(before.View())
	c := newChecker(k, o)
	for _, t := range turns(out) {
		if p := c.plans.check(t); p != nil {
			c.replay.apply(t, p)
		}
	}
	return c.findings.broken
}

// checker follows a session turn by turn: plans checks the plan of a turn, and then replay
// applies the turn.
type checker struct {
	plans    *planChecker
	replay   *replay
	findings *findings
}

func newChecker(k Kind, o *objects) *checker {
	reserved, h, f := newPlacement(o), newHistory(), &findings{}
	return &checker{
		plans:    &planChecker{kind: k, objects: o, placement: reserved, planner: newPlanner(o, reserved, h), findings: f},
		replay:   &replay{objects: o, reserved: reserved, physical: newPlacement(o), history: h, findings: f},
		findings: f,
	}
}

// findings has the rules that a session broke.
type findings struct {
	broken    []Violation
	unchecked int // how many rules were too large to check
}

func (f *findings) add(rule, of string) { f.broken = append(f.broken, Violation{rule, of}) }
