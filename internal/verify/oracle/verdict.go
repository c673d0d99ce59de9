package oracle

import (
	"fmt"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// Verdict is the judgement about one pending job.
type Verdict struct {
	Number   int
	Job      string
	TooLarge bool // too large to try everything; the fields from Relevant to Minimal are not set
	// Relevant reports that the job does not fit into the free room, and that a plan exists.
	// Minimal reports that no cheaper plan exists than that of the engine.
	Relevant, Placed, Minimal bool
	LastResort                bool   // only the rules of the last resort allow a plan
	Unchecked                 int    // number of rules of the last resort that were too large to check
	Plan                      string // the plan of the engine
	Best                      string // the cheapest plan, if the engine did not find it
	Why                       string // why the engine did not find the cheapest plan
	Illegal                   []Violation
}

// Engine returns an engine with the standard profile, without the plugins that make room and
// do not belong to the kind. For Costs it adds the plugin that gives the costs of victims.
func Engine(k Kind) (*engine.Engine, error) {
	var out engine.Profile
	for _, c := range standard.Profile() {
		if _, makesRoom := reasons[Kind(c.Name)]; !makesRoom || k.has(Kind(c.Name)) {
			out = append(out, c)
		}
	}
	registry := standard.Registry()
	if k == Costs {
		if err := registry.RegisterPluginBuilder(string(Costs), func(engine.Arguments) (engine.Plugin, error) { return costPlugin{}, nil }); err != nil {
			return nil, err
		}
		out = append(out, engine.PluginConfig{Name: string(Costs)})
	}
	return engine.New(registry, out)
}

// Judge runs a session of the engine on the case, and compares each turn with the best
// possible plan.
func (c *Case) Judge(e *engine.Engine) ([]Verdict, error) {
	before := c.State.Clone()
	s := e.Open(c.State, engine.Options{Now: c.Now})
	out, err := s.Run()
	s.Close()
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", c.Kind, c.Number, err)
	}
	j := newJudge(c.Kind, before, c.Now)
	var all []Verdict
	for _, t := range turns(out) {
		v := j.verdict(t)
		v.Number = c.Number
		all = append(all, v)
	}
	return all, nil
}
