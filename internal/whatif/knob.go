package whatif

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/wire"
)

// Knob is a setting that the owner of the workload could choose differently, such as the
// context length of a model. Its values are numbered from 0. The first value gives up most,
// and the last value least.
type Knob struct {
	Steps int // how many values there are
	// At returns a text that completes "It would fit …", the cost of the value, which is
	// compared with the costs of other changes (see change.cost), the arguments of berth whatif
	// that set the value, and the workload and the other replicas of its set as they would be
	// requested with the value. There are no jobs if the value is not possible, or if the
	// workload would not exist with it. If a value helps, all lower values must help too.
	At func(step int) (text string, cost int, arguments []string, jobs []*cluster.Job)
}

// knobTurner tries other values of the settings.
type knobTurner struct {
	lab      *lab
	workload *workload
	found    *finder
	knobs    []Knob
}

// turn finds, for each setting, the value that helps and gives up least.
func (t *knobTurner) turn() {
	for _, k := range t.knobs {
		at := func(step int) *change {
			c, _ := t.change(k, step)
			return c
		}
		if c := t.found.largestThatFits(k.Steps, at); c != nil {
			c.text += t.devicesText(c)
		}
	}
}

// change returns the change that sets the value, and whether the value is possible.
func (t *knobTurner) change(k Knob, step int) (c *change, possible bool) {
	text, cost, arguments, jobs := k.At(step)
	c = newChange(wire.SmallerRequest, text, cost, t.replace(jobs))
	c.arguments = arguments
	return c, len(jobs) > 0
}

// replace returns a change with which the workload and the other replicas of its set request
// what the jobs request. Replicas that run, and those that the jobs do not name, stay as they
// are; lab.apply does not use it if a replica runs and the input can be changed instead. The
// change fails if there are no jobs.
func (t *knobTurner) replace(jobs []*cluster.Job) func(*cluster.State) error {
	if len(jobs) == 0 {
		return func(*cluster.State) error { return fmt.Errorf("%s cannot have the setting", t.workload.id) }
	}
	return t.workload.editJob(func(j *cluster.Job) {
		i := slices.IndexFunc(jobs, func(other *cluster.Job) bool { return other.ID == j.ID })
		if i < 0 || t.lab.state.Job(j.ID).Placed() > 0 {
			return
		}
		j.Alternatives = slices.Clone(jobs[i].Alternatives)
		for a := range j.Alternatives {
			alt := &j.Alternatives[a]
			alt.Tasks = slices.Clone(alt.Tasks)
			for i, t := range alt.Tasks {
				fresh := *t // the job is tried several times, and State changes its tasks
				alt.Tasks[i] = &fresh
			}
		}
	})
}

// turnAndGrow changes one setting and adds up to 16 copies of the first node of one node
// group, and stops at the first pair that helps. It is used for models if no single change
// helps. Only settings with a single value are tried.
func (t *knobTurner) turnAndGrow() {
	const mostNodes = 16
	for _, k := range t.knobs {
		if k.Steps != 1 {
			continue
		}
		c, possible := t.change(k, 0)
		if !possible {
			continue
		}
		for _, g := range t.workload.state.View().Groups() {
			m := nodeType{name: groupName(g.Nodes[0]), template: g.Nodes[0], exact: len(templates(g.Nodes)) == 1}
			for n := 1; n <= mostNodes && !t.lab.noTriesLeft(); n *= 2 {
				if nodes := m.change(n); t.lab.try(c, nodes).fits {
					for ; n > 1 && t.lab.try(c, m.change(n-1)).fits; n-- {
						nodes = m.change(n - 1)
					}
					t.found.addTogether(join([]*change{c, nodes}))
					return
				}
			}
		}
	}
}

// devicesText returns a text such as ", on 2 × NVIDIA-L4": how many claims on
// devices the workload would hold after the change, and on which product. It returns "" unless
// all claims are on devices of one product, or if no tries are left.
func (t *knobTurner) devicesText(c *change) string {
	if t.lab.noTriesLeft() {
		return ""
	}
	counts := map[string]int{}
	v := t.lab.tryAndRead(func(s *cluster.State) {
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
