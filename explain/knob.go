package explain

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
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

// turn tries each knob and keeps what gives up least of it.
func (l *lab) turn(found *finder) {
	for _, k := range l.knobs {
		if k.Steps == 0 || l.spent() {
			continue
		}
		at := func(step int) *change {
			text, cost, job := k.At(step)
			return &change{SmallerAsk, text, cost, l.replace(job)}
		}
		if c, v := l.largest(k.Steps, at); c != nil {
			c.text += l.landing(c)
			found.yes(c)
		} else {
			found.no(at(0), v)
		}
	}
}

// replace makes the workload ask for what the other one asks for.
func (l *lab) replace(job *cluster.Job) func(*cluster.State) error {
	return func(s *cluster.State) error {
		if job == nil {
			return fmt.Errorf("%s cannot be so", l.id)
		}
		return rewrite(s, l.id, func(j *cluster.Job) {
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
}

// turnAndGrow is for models that no single change helps: one knob turned, and
// more nodes of one group. It keeps the first of each knob.
func (l *lab) turnAndGrow(found *finder) {
	const mostNodes = 16
	for _, k := range l.knobs {
		if k.Steps != 1 {
			continue
		}
		text, cost, job := k.At(0)
		if job == nil {
			continue
		}
		c := &change{SmallerAsk, text, cost, l.replace(job)}
		for _, g := range l.end.View().Groups() {
			m := Machine{Name: g.Key.String(), Template: g.Nodes[0], exact: true}
			for n := 1; n <= mostNodes && !l.spent(); n *= 2 {
				if nodes := m.change(n); l.try(c, nodes).fits {
					for ; n > 1 && l.try(c, m.change(n-1)).fits; n-- {
						nodes = m.change(n - 1)
					}
					together := join([]*change{c, nodes})
					l.budget++ // to know who would have to go
					l.try(together)
					found.yes(together)
					return
				}
			}
		}
	}
}

// landing says what devices the workload would get by the change.
func (l *lab) landing(c *change) string {
	if l.spent() {
		return ""
	}
	counts := map[string]int{}
	v := l.tryAnd(func(s *cluster.State) {
		for _, t := range s.Job(l.id).Tasks() {
			for _, claim := range t.Claims {
				counts[t.Node.Devices[claim.Device].Product]++
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
