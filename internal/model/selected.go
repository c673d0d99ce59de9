package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// useSelectedDevices decides how many of the devices that the spec selects one replica uses:
// all of them, or with several replicas an equal number for each. The number is left open if
// the spec fixes the parallelism or the number of devices, if the devices cannot be divided
// evenly, if the model cannot be divided so, or if no node has that many of them.
func (p *converter) useSelectedDevices() {
	s := p.spec
	if len(s.Place.Selected) == 0 || s.Serving.Data > 1 || s.Place.WholeNodes || s.Place.Partition != "" || !s.supports(backend.Devices) {
		return
	}
	perNode := p.node.hardware.selectedPerNode(s.Place.Selected)
	devices := slices.Concat(perNode...)
	fixed := s.devicesGiven()
	if s.Replicas == 1 && len(devices) > 1 && (fixed == 0 || fixed == len(devices)) && haveOneType(devices) && p.chooseAll(perNode) {
		return
	}
	each, most := len(devices)/max(1, s.Replicas), 0
	for _, n := range perNode {
		most = max(most, len(n))
	}
	if fixed > 0 || each*s.Replicas != len(devices) || each < 2 || each > most {
		return
	}
	if s.layered() || p.node.parallel.problem(p.node.parallel.split(each)) == "" {
		s.Place.Devices = each
	}
}

// chooseAll lets one replica use all these devices, whatever their products are, and reports
// whether it can.
func (p *converter) chooseAll(perNode [][]*cluster.Device) bool {
	s := p.spec
	switch {
	case s.layered():
		return false // layers are divided by free memory, and the devices of a node are enough
	case len(perNode) == 1:
		p.node.chosen = perNode[0]
		if s.devicesGiven() > 0 {
			return true
		}
		if p.node.parallel.problem(p.node.parallel.split(len(perNode[0]))) == "" {
			s.Place.Devices = len(perNode[0])
			return true
		}
		p.node.chosen = nil
		return false
	case s.Place.Distributed && s.supports(backend.Nodes):
		p.selected = perNode
		return true
	}
	return false
}

// devicesGiven returns the number of devices of a replica that the spec fixes; 0: it fixes none.
func (s *Spec) devicesGiven() int {
	if s.Serving.Tensor > 0 || s.Serving.Pipeline > 0 {
		return max(1, s.Serving.Tensor) * max(1, s.Serving.Pipeline)
	}
	return s.Place.Devices
}

// onSelectedNodes returns the form on devices that were selected by hand on several nodes.
// Each node has one task, which takes the selected devices of the node as they are.
func (p *converter) onSelectedNodes(perNode [][]*cluster.Device) Form {
	s, n := p.spec, p.node
	devices := slices.Concat(perNode...)
	tensor := p.selectedTensor(perNode)
	stages := len(devices) / tensor
	f := Form{
		Name:   fmt.Sprintf("%d selected devices on %d nodes (tp %d, pp %d)", len(devices), len(perNode), tensor, stages),
		Tensor: tensor, Pipeline: stages, Nodes: len(perNode),
	}
	for _, d := range perNode {
		f.Devices = max(f.Devices, len(d))
		if len(d)%tensor != 0 {
			return withProblem(f, "tensor parallelism %d does not divide the %d selected devices of %s", tensor, len(d), d[0].ID.Node)
		}
	}
	if why := n.parallel.problem(tensor, stages); why != "" {
		return withProblem(f, "%s", why)
	}
	c, err := n.size.claimOn(&f, devices)
	if err != nil {
		return withProblem(f, "%s", err)
	}
	for i, d := range perNode {
		shape := s.shape(s.Backend.Host)
		shape.Need = cluster.Need{Devices: len(d), Types: n.hardware.types, Selected: idsOf(d)}
		setClaim(&shape.Need, c)
		role := "worker"
		if i == 0 {
			role = "leader"
		}
		f.tasks = append(f.tasks, roleTasks{role, 1, &shape})
	}
	f.Problem = n.size.selectedShortfall(devices, &f)
	return f
}

// selectedTensor returns the tensor parallelism on devices of several nodes: the one that the
// spec sets, or the largest that divides the number of devices of each node.
func (p *converter) selectedTensor(perNode [][]*cluster.Device) int {
	if s := p.spec.Serving; s.Tensor > 0 || s.Pipeline > 0 {
		return max(1, s.Tensor)
	}
	best := 1
	for _, t := range p.node.parallel.tensorSizes(len(perNode[0])) {
		if !slices.ContainsFunc(perNode, func(d []*cluster.Device) bool { return len(d)%t != 0 }) {
			best = t
		}
	}
	return best
}

// claimOn returns the largest claim on any of the devices. PerDevice and Parts of the form are
// those of that claim.
func (z sizing) claimOn(f *Form, devices []*cluster.Device) (backend.Claim, error) {
	best, most := *f, backend.Claim{}
	for _, d := range devices {
		own := *f
		c, err := z.claim(&own, AcceleratorOf(d))
		if err != nil {
			return c, err
		}
		if c.Enough > most.Enough {
			best, most = own, c
		}
	}
	*f = best
	return most, nil
}

// selectedShortfall says which of the devices could not give what the form claims of it even
// if it were idle; "" if all could.
func (z sizing) selectedShortfall(devices []*cluster.Device, f *Form) string {
	for _, d := range devices {
		c, err := z.claim(&Form{Tensor: f.Tensor, Pipeline: f.Pipeline}, AcceleratorOf(d))
		if err != nil {
			return err.Error()
		}
		if has := c.BytesOf(d.Memory, d.Reserved); has < c.Enough {
			need, gives := gibPair(c.Enough, has)
			return fmt.Sprintf("each device must give %s, and %s, %s, gives %s", need, d.ID, d.Product, gives)
		}
	}
	return ""
}

// haveOneType reports whether one server can use all the devices.
func haveOneType(devices []*cluster.Device) bool {
	return !slices.ContainsFunc(devices, func(d *cluster.Device) bool { return d.Type != devices[0].Type })
}

func idsOf(devices []*cluster.Device) []cluster.DeviceID {
	var out []cluster.DeviceID
	for _, d := range devices {
		out = append(out, d.ID)
	}
	return out
}

// selectedPerNode returns the selected devices that exist and that the backend can combine
// with others, one list for each node.
func (h *hardware) selectedPerNode(selected []cluster.DeviceID) [][]*cluster.Device {
	var out [][]*cluster.Device
	last := ""
	for _, id := range selected {
		n := h.fleet.node(id.Node)
		if n == nil {
			continue
		}
		at := slices.IndexFunc(n.Devices, func(d cluster.Device) bool { return d.ID == id })
		if at < 0 || !h.combines(n, &n.Devices[at]) {
			continue
		}
		if len(out) == 0 || id.Node != last {
			out, last = append(out, nil), id.Node
		}
		out[len(out)-1] = append(out[len(out)-1], &n.Devices[at])
	}
	return out
}

// combines reports whether the backend runs on the device, and several such devices can
// serve one replica.
func (h *hardware) combines(n *cluster.Node, d *cluster.Device) bool {
	return !d.Lost && d.Profile == "" && n.Group() != nil && n.Group().Key.Combines() && (len(h.types) == 0 || slices.Contains(h.types, d.Type))
}
