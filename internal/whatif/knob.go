package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/wire"
)

// Knob is a line along which the workload's owner could have asked for something
// else: a model with a shorter context, say. Steps go from what gives up most to
// what gives up least.
type Knob struct {
	Steps int
	// At is what would be asked for instead, nil if nothing can be; the end of "it
	// would fit …"; and what it gives up, in percent.
	At func(step int) (text string, cost int, job *cluster.Job)
}

// turner turns knobs.
type turner struct {
	lab      *lab
	workload *workload
	found    *finder
	knobs    []Knob
}

// turn tries each knob and keeps what gives up least of it.
func (t *turner) turn() {
	for _, k := range t.knobs {
		at := func(step int) *change {
			text, cost, job := k.At(step)
			return &change{wire.SmallerAsk, text, cost, t.replace(job)}
		}
		if c := t.found.largest(k.Steps, at); c != nil {
			c.text += t.landing(c)
		}
	}
}

// replace makes the workload ask for what the other one asks for.
func (t *turner) replace(job *cluster.Job) func(*cluster.State) error {
	if job == nil {
		return func(*cluster.State) error { return fmt.Errorf("%s cannot be so", t.workload.id) }
	}
	return t.workload.rewrite(func(j *cluster.Job) {
		j.Alternatives = slices.Clone(job.Alternatives)
		for a := range j.Alternatives {
			alt := &j.Alternatives[a]
			alt.Tasks = slices.Clone(alt.Tasks)
			for i, t := range alt.Tasks {
				fresh := *t // each try places its own
				alt.Tasks[i] = &fresh
			}
		}
	})
}

// turnAndGrow is for models that no single change helps: one knob turned, and
// more nodes of one group. It keeps the first of each knob.
func (t *turner) turnAndGrow() {
	const mostNodes = 16
	for _, k := range t.knobs {
		if k.Steps != 1 {
			continue
		}
		text, cost, job := k.At(0)
		if job == nil {
			continue
		}
		c := &change{wire.SmallerAsk, text, cost, t.replace(job)}
		for _, g := range t.workload.state.View().Groups() {
			m := Machine{Name: g.Key.String(), Template: g.Nodes[0], exact: true}
			for n := 1; n <= mostNodes && !t.lab.spent(); n *= 2 {
				if nodes := m.change(n); t.lab.try(c, nodes).fits {
					for ; n > 1 && t.lab.try(c, m.change(n-1)).fits; n-- {
						nodes = m.change(n - 1)
					}
					t.found.tryJoined(join([]*change{c, nodes}))
					return
				}
			}
		}
	}
}

// landing says what devices the workload would get by the change.
func (t *turner) landing(c *change) string {
	if t.lab.spent() {
		return ""
	}
	counts := map[string]int{}
	v := t.lab.tryAnd(func(s *cluster.State) {
		for _, x := range s.Job(t.workload.id).Tasks() {
			for _, claim := range x.Claims {
				counts[x.Node.Devices[claim.Device].Product]++
			}
		}
	}, c)
	if !v.fits || len(counts) != 1 {
		return ""
	}
	for product, n := range counts {
		return fmt.Sprintf(", on %d × %s", n, product)
	}
	return ""
}
