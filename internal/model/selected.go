package model

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// useSelectedDevices decides how many of the devices that the spec selects one replica uses:
// all of them, or with several replicas an equal number for each. The number is left open if
// the spec fixes the parallelism or the number of devices, if the backend uses one device, or if
// the devices cannot be divided evenly over the replicas. If one replica cannot use all of
// them, a remark says why. If their types differ, the replica is refused.
func (p *converter) useSelectedDevices() {
	s := p.spec
	if len(s.Place.Selected) == 0 || s.Serving.Data > 1 || s.Place.WholeNodes || s.Place.Partition != "" || !s.supports(backend.Devices) {
		return
	}
	perNode := p.node.hardware.selectedPerNode(s.Place.Selected)
	devices := slices.Concat(perNode...)
	fixed := s.devicesGiven()
	if s.Replicas == 1 && len(devices) > 1 && (fixed == 0 || fixed == len(devices)) {
		if one, other := p.differentTypes(perNode); one != "" {
			s.Place.Devices = len(devices) // all are requested, so that the replica is refused
			p.selection = cluster.Note + fmt.Sprintf("%s and %s devices cannot serve one replica together. Select devices of one type, or set placement.devicesPerReplica.", one, other)
			return
		}
		if why := p.chooseAll(perNode); why != "" {
			p.selection = cluster.Note + fmt.Sprintf("one replica cannot use all %d selected devices: %s. It uses fewer; set placement.devicesPerReplica to say how many.", len(devices), why)
		}
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

// differentTypes returns two types of the devices that one server cannot use together; "" if
// there are none. Servers that divide a model by layers over nodes may differ from node to node.
func (p *converter) differentTypes(perNode [][]*cluster.Device) (one, other string) {
	sets := [][]*cluster.Device{slices.Concat(perNode...)}
	if p.spec.layered() {
		sets = perNode
	}
	for _, devices := range sets {
		for _, d := range devices {
			if d.Type != devices[0].Type {
				return devices[0].Type, d.Type
			}
		}
	}
	return "", ""
}

// chooseAll lets one replica use all these devices, whatever their products are. If it cannot,
// it says why.
func (p *converter) chooseAll(perNode [][]*cluster.Device) string {
	s, devices := p.spec, slices.Concat(perNode...)
	if len(perNode) == 1 {
		if s.devicesGiven() == 0 {
			if why := p.node.parallel.problem(p.node.parallel.split(len(devices))); why != "" && !s.layered() {
				return why
			}
			s.Place.Devices = len(devices)
		}
		p.node.chosen = devices
		return ""
	}
	switch {
	case !s.supports(backend.Nodes):
		return fmt.Sprintf("they are on %d nodes, and %s uses one", len(perNode), s.Backend.Name)
	case !s.Place.Distributed:
		return fmt.Sprintf("they are on %d nodes, and placement.distributed is false", len(perNode))
	}
	if why := p.selectedProblem(perNode); why != "" {
		return why
	}
	p.selected = perNode
	return ""
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
	for i, d := range perNode {
		own := f
		c, err := n.size.claimOn(&own, d)
		if err != nil {
			return withProblem(f, "%s", err)
		}
		if own.PerDevice > f.PerDevice {
			f.PerDevice, f.Parts = own.PerDevice, own.Parts
		}
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

// selectedProblem says why one replica cannot be divided over the devices of several nodes; "" if
// it can.
func (p *converter) selectedProblem(perNode [][]*cluster.Device) string {
	devices := len(slices.Concat(perNode...))
	if p.spec.layered() {
		if need, _, err := p.node.size.layeredNeed(); err == nil && need.Layers < devices {
			return fmt.Sprintf("the model has %s", english.Count(need.Layers, "layer"))
		}
		return ""
	}
	if p.spec.devicesGiven() > 0 {
		return "" // the form says what is wrong with the given parallelism
	}
	tensor := p.selectedTensor(perNode)
	return p.node.parallel.problem(tensor, devices/tensor)
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
