package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// siteCheck checks what really runs, and that State has it.
type siteCheck struct{ site *site }

// compareState checks that State has the nodes, jobs and processes of the site, and
// no others.
func (c *siteCheck) compareState(state *cluster.State) error {
	s := c.site
	if got, want := len(state.Nodes()), len(s.nodes); got != want {
		return fmt.Errorf("the site has %[2]d nodes, State has %[1]d", got, want)
	}
	if got, want := len(state.Jobs()), len(s.jobs); got != want {
		return fmt.Errorf("the site has %[2]d jobs, State has %[1]d", got, want)
	}
	running := 0
	for _, j := range state.Jobs() {
		if s.jobs[j.ID] == nil {
			return fmt.Errorf("%s is in State, and was never created", j.ID)
		}
		for _, alt := range j.Alternatives {
			for _, t := range alt.Tasks {
				runs, err := c.compareTask(t)
				if err != nil {
					return err
				}
				if runs {
					running++
				}
			}
		}
	}
	if running != len(s.processes) {
		return fmt.Errorf("%d tasks run, and State has %d", len(s.processes), running)
	}
	return nil
}

// compareTask compares a task of State with its process, and reports whether it has
// one.
func (c *siteCheck) compareTask(t *cluster.Task) (runs bool, err error) {
	p := c.site.processes[t.ID]
	runsInState := t.Runs() || t.Status == cluster.Releasing
	switch {
	case t.Status == cluster.Assumed && c.site.sent[t.ID] != nil && p == nil:
		return false, nil // the answer is not known
	case runsInState != (p != nil):
		return false, fmt.Errorf("%s is %s in State, and running: %v", t.ID, t.Status, p != nil)
	case p == nil:
		return false, nil
	case p.node != t.Node.Name || !slices.Equal(p.claims, t.Claims) || p.stopping != (t.Status == cluster.Releasing):
		return false, fmt.Errorf("%s is %s on %s with %v in State, and runs on %s with %v, stopping: %v", t.ID, t.Status, t.Node.Name, t.Claims, p.node, p.claims, p.stopping)
	case !p.stopping && p.started != t.Started:
		return false, fmt.Errorf("%s started at %d, and State has %d", t.ID, p.started, t.Started)
	}
	return true, nil
}

// processUse is what processes hold of one node.
type processUse struct {
	devices   map[int]*deviceUse
	resources map[string]int64
}

// deviceUse is what processes hold of one device.
type deviceUse struct {
	milli   cluster.Milli
	memory  cluster.Bytes
	holders []string
}

// checkProcesses checks that the processes fit on their nodes and devices. It does not
// look at State.
func (c *siteCheck) checkProcesses() error {
	s := c.site
	nodes := map[string]*processUse{}
	for _, id := range sorted(s.processes) {
		p := s.processes[id]
		n := s.nodes[p.node]
		if n == nil || s.jobs[p.job] == nil {
			return fmt.Errorf("%s of %s runs on %s, and the job or the node does not exist", id, p.job, p.node)
		}
		use := nodes[p.node]
		if use == nil {
			use = &processUse{map[int]*deviceUse{}, map[string]int64{}}
			nodes[p.node] = use
		}
		for _, a := range p.shape.Resources {
			use.resources[a.Name] += a.Value
		}
		use.resources[cluster.Memory] += hostMemory(n, p.shape, p.claims)
		for _, claim := range p.claims {
			if use.devices[claim.Device] == nil {
				use.devices[claim.Device] = &deviceUse{}
			}
			if err := c.hold(id, claim, use.devices[claim.Device]); err != nil {
				return err
			}
		}
	}
	for _, name := range sorted(nodes) {
		for _, l := range s.nodes[name].Resources {
			if v := nodes[name].resources[l.Name]; v > l.Capacity && !s.overcommitted[name] {
				return fmt.Errorf("the processes on %s hold %d of %s, and it has %d", name, v, l.Name, l.Capacity)
			}
		}
	}
	return nil
}

// hold adds a claim of the process to the use of the device, and checks that the
// device has it and that other processes may hold the device as well.
func (c *siteCheck) hold(id string, claim cluster.Claim, use *deviceUse) error {
	p := c.site.processes[id]
	use.milli += claim.Milli
	use.memory += claim.Memory
	for _, other := range use.holders {
		o := c.site.processes[other]
		if p.shape.Need.WholeNode && o.shape.Need.WholeNode {
			return fmt.Errorf("%s and %s both have node %s", id, other, p.node)
		}
		if !p.shape.Isolation.Beside(o.shape.Isolation) {
			return fmt.Errorf("%s and %s run on device %d of %s, and one of them requests it exclusively", id, other, claim.Device, p.node)
		}
	}
	use.holders = append(use.holders, id)
	if room := c.site.nodes[p.node].Devices[claim.Device].Room(); use.milli > cluster.Whole || use.memory > room {
		return fmt.Errorf("device %d of %s is held twice, by %v: %d milli, %d of %d bytes", claim.Device, p.node, use.holders, use.milli, use.memory, room)
	}
	return nil
}
