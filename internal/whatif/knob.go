package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/wire"
)

// Knob is a setting that the owner of the workload could choose otherwise, such as the
// context length of a model. Its first step gives up most, and its last step least.
type Knob struct {
	Steps int
	// At returns how a step completes "It would fit …", what it gives up in percent, and
	// the job that would be requested instead; nil: the model cannot have the setting.
	At func(step int) (text string, cost int, job *cluster.Job)
}

// knobTurner tries knobs.
type knobTurner struct {
	lab      *lab
	workload *workload
	found    *finder
	knobs    []Knob
}

// turn finds for each knob the step that helps and gives up least.
func (t *knobTurner) turn() {
	for _, k := range t.knobs {
		at := func(step int) *change {
			text, cost, job := k.At(step)
			return &change{wire.SmallerAsk, text, cost, t.replace(job)}
		}
		if c := t.found.largest(k.Steps, at); c != nil {
			c.text += t.devicesText(c)
		}
	}
}

// replace makes the workload request what the job requests.
func (t *knobTurner) replace(job *cluster.Job) func(*cluster.State) error {
	if job == nil {
		return func(*cluster.State) error { return fmt.Errorf("%s cannot be so", t.workload.id) }
	}
	return t.workload.editJob(func(j *cluster.Job) {
		j.Alternatives = slices.Clone(job.Alternatives)
		for a := range j.Alternatives {
			alt := &j.Alternatives[a]
			alt.Tasks = slices.Clone(alt.Tasks)
			for i, t := range alt.Tasks {
				fresh := *t // each try places tasks of its own
				alt.Tasks[i] = &fresh
			}
		}
	})
}

// turnAndGrow is for models that no single change helps. It changes one knob and adds
// nodes of one group, and stops at the first that helps.
func (t *knobTurner) turnAndGrow() {
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
			m := Machine{Name: groupName(g.Nodes[0]), Template: g.Nodes[0], exact: len(templates(g.Nodes)) == 1}
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

// devicesText says which devices the workload would hold after the change; "" if they are
// of several products, or no tries are left.
func (t *knobTurner) devicesText(c *change) string {
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
