package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// runningAlternative returns the alternative that describes the running tasks of the job as they
// are, or nil if the job has none. Package model adds such an alternative, as the last, for a
// replica of a model that runs.
func runningAlternative(j *cluster.Job) *cluster.Alternative {
	if last := &j.Alternatives[len(j.Alternatives)-1]; last.Running {
		return last
	}
	return nil
}

// hasAlternative reports whether the spec of the job has an alternative of that name.
func hasAlternative(j *cluster.Job, name string) bool {
	return slices.ContainsFunc(j.Alternatives, func(a cluster.Alternative) bool {
		return !a.Running && (a.Name == name || strings.HasPrefix(a.Name, name+" in "))
	})
}

// keepRunning adds jobs to State that run in a form in which they would not be placed now. A
// replica is not stopped because its spec was edited or a device was lost.
func (m *stateMaker) keepRunning(s *cluster.State, jobs [][]runningTask) {
	sharers := map[*cluster.Device]cluster.Bytes{} // by device: how many of these tasks have not claimed it yet
	for _, of := range jobs {
		for i := range of {
			for _, d := range of[i].listedDevices(s) {
				sharers[d]++
			}
		}
	}
	for _, of := range jobs {
		j := of[0].job
		as := runningAlternative(j)
		for i := range of {
			w := &of[i]
			w.task = as.Tasks[slices.IndexFunc(as.Tasks, func(t *cluster.Task) bool { return t.Name == w.task.Name })]
			n := m.nodeOf(s, w)
			if n == nil {
				continue
			}
			claims, problem := w.keptClaims(n, sharers)
			if problem != "" {
				w.r.errorf(w.at, "%s cannot be running on %s: %s", w.task.Name, w.node, problem)
				continue
			}
			m.place(s, w, n, claims)
		}
		m.noteKept(s, j, of[0].whyKept)
	}
}

// noteKept adds a remark to the job, and counts the job for a note: it runs in a form that is
// not what its spec requests now.
func (m *stateMaker) noteKept(s *cluster.State, j *cluster.Job, why string) {
	if why == "" {
		why = "none of its forms has these tasks on so many devices"
	}
	spec := *j
	spec.OwnDetails().Remarks = append(slices.Clone(j.Remarks), fmt.Sprintf("It is kept as it runs, which is not what its spec asks for now: %s.", why))
	m.recordError(s.Apply(cluster.JobPut{Job: spec}))
	m.keptReplicas.add(fmt.Sprintf("%s (%s)", j.ID, why))
}

// listedDevices returns the devices that the status lists for the task, without those
// that do not exist.
func (w *runningTask) listedDevices(s *cluster.State) []*cluster.Device {
	n := s.Node(w.node)
	var out []*cluster.Device
	for _, i := range w.devices {
		if n != nil && i >= 0 && i < len(n.Devices) {
			out = append(out, &n.Devices[i])
		}
	}
	return out
}

// keptClaims returns what the task holds of its devices: the share that its backend takes
// of each, but at most an equal part of what is free for the kept tasks on the device.
// The second result says why the task cannot be there.
func (w *runningTask) keptClaims(n *cluster.Node, sharers map[*cluster.Device]cluster.Bytes) ([]cluster.Claim, string) {
	if w.devices == nil {
		return w.claims(n)
	}
	devices := slices.Sorted(slices.Values(w.devices))
	var out []cluster.Claim
	for k, i := range devices {
		if problem := checkDevice(n, i, k > 0 && devices[k-1] == i); problem != "" {
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
			return nil, fmt.Sprintf("device %d is %s", i, w.whyRefused(n, i))
		}
		out = append(out, c)
	}
	return out, ""
}

// checkDevice returns what is wrong with a device number in a status, "" if nothing is.
func checkDevice(n *cluster.Node, i int, twice bool) string {
	switch {
	case i < 0 || i >= len(n.Devices):
		return fmt.Sprintf("it has no device %d; its %d devices count from 0", i, len(n.Devices))
	case twice:
		return fmt.Sprintf("device %d is listed twice", i)
	}
	return ""
}
