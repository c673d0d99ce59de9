package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// asItRuns is the form that is made of what runs of the job alone; nil: it has none.
func asItRuns(j *cluster.Job) *cluster.Alternative {
	if last := &j.Alternatives[len(j.Alternatives)-1]; last.Running {
		return last
	}
	return nil
}

// hasForm reports whether the job may be placed in a form of that name.
func hasForm(j *cluster.Job, name string) bool {
	return slices.ContainsFunc(j.Alternatives, func(a cluster.Alternative) bool {
		return !a.Running && (a.Name == name || strings.HasPrefix(a.Name, name+" in "))
	})
}

// keep books jobs that run in a form that they would not be placed in any more.
// Nobody stops a replica because its spec was edited, or a device was lost.
func (m *stateMaker) keep(s *cluster.State, jobs [][]running) {
	sharers := map[*cluster.Device]cluster.Bytes{}
	for _, of := range jobs {
		for i := range of {
			for _, d := range of[i].listed(s) {
				sharers[d]++
			}
		}
	}
	for _, of := range jobs {
		j := of[0].job
		as := asItRuns(j)
		for i := range of {
			w := &of[i]
			w.task = as.Tasks[slices.IndexFunc(as.Tasks, func(t *cluster.Task) bool { return t.Name == w.task.Name })]
			n := m.nodeOf(s, w)
			if n == nil {
				continue
			}
			claims, problem := w.kept(n, sharers)
			if problem != "" {
				w.r.errorf(w.at, "%s cannot be running on %s: %s", w.task.Name, w.node, problem)
				continue
			}
			m.run(s, w, n, claims)
		}
		m.tellKept(s, j, of[0].because)
	}
}

// tellKept says that the job runs in a form of before.
func (m *stateMaker) tellKept(s *cluster.State, j *cluster.Job, why string) {
	if why == "" {
		why = "none of its forms has these tasks on so many devices"
	}
	spec := *j
	spec.Remarks = append(slices.Clone(j.Remarks), fmt.Sprintf("It is kept as it runs, which is not what its spec asks for now: %s.", why))
	m.must(s.Apply(cluster.JobPut{Job: spec}))
	m.kept.add(fmt.Sprintf("%s (%s)", j.ID, why))
}

// listed are the devices that the task is said to be on, as far as they are there.
func (w *running) listed(s *cluster.State) []*cluster.Device {
	n := s.Node(w.node)
	var out []*cluster.Device
	for _, i := range w.devices {
		if n != nil && i >= 0 && i < len(n.Devices) {
			out = append(out, &n.Devices[i])
		}
	}
	return out
}

// kept is what the task holds of its devices: what its backend takes of each, or
// an equal part of what is left for those who are kept there.
func (w *running) kept(n *cluster.Node, sharers map[*cluster.Device]cluster.Bytes) ([]cluster.Claim, string) {
	if w.devices == nil {
		return w.claims(n)
	}
	devices := slices.Sorted(slices.Values(w.devices))
	var out []cluster.Claim
	for k, i := range devices {
		if problem := missing(n, i, k > 0 && devices[k-1] == i); problem != "" {
			return nil, problem
		}
		d := &n.Devices[i]
		c := cluster.Claim{Device: i, Milli: cluster.Whole, Memory: d.Room()}
		if share := w.task.Shape.Need.Share; share > 0 {
			c.Milli, c.Memory = share, d.Of(share)
		}
		if part := max(0, d.Free()) / sharers[d]; part < c.Memory {
			c.Memory = part
		}
		c.Milli = min(c.Milli, d.FreeMilli()/cluster.Milli(sharers[d]))
		if sharers[d]--; c.Milli == 0 {
			return nil, fmt.Sprintf("device %d is %s", i, w.refused(n, i))
		}
		out = append(out, c)
	}
	return out, ""
}

// missing says why a device that is listed cannot be meant.
func missing(n *cluster.Node, i int, twice bool) string {
	switch {
	case i < 0 || i >= len(n.Devices):
		return fmt.Sprintf("it has no device %d; its %d devices count from 0", i, len(n.Devices))
	case twice:
		return fmt.Sprintf("device %d is listed twice", i)
	}
	return ""
}
