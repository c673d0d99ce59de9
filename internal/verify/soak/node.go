package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

var deviceKinds = []struct {
	product, runtime string
	memory           cluster.Bytes
}{{"A100", "cuda", 80 << 30}, {"A10", "cuda", 24 << 30}, {"L4", "cuda", 24 << 30}, {"MI210", "rocm", 64 << 30}}

// AddNode adds a random node, sometimes with the name of a node that was removed.
func (w *World) AddNode() error {
	name := fmt.Sprintf("n%02d", w.dice.Roll(30))
	if len(w.site.nodes) >= 10 || w.site.nodes[name] != nil {
		return nil
	}
	n := &cluster.Node{Name: name}
	n.Resources = []cluster.Ledger{
		{Name: cluster.CPU, Capacity: int64(64-8*w.dice.Roll(8)) * 1000},
		{Name: cluster.Memory, Capacity: int64(256-32*w.dice.Roll(8)) << 30},
	}
	if w.chance(20) {
		n.Resources = append(n.Resources, cluster.Ledger{Name: "rdma/hca", Capacity: 2})
	}
	w.label(n)
	for range []int{1, 2, 1, 0}[w.dice.Roll(4)] {
		k := pick(w, deviceKinds)
		for range []int{4, 2, 1}[w.dice.Roll(3)] {
			n.Devices = append(n.Devices, cluster.Device{UUID: fmt.Sprintf("%s-%d", name, len(n.Devices)), Product: k.product, Type: k.runtime, Memory: k.memory})
		}
	}
	if others := sorted(w.site.nodes); len(others) > 0 && w.chance(30) { // one more node of an existing group
		n.Devices = slices.Clone(w.site.nodes[pick(w, others)].Devices)
		for i := range n.Devices {
			n.Devices[i].UUID, n.Devices[i].Lost = fmt.Sprintf("%s-%d", name, i), false // devices that share memory share it on the new node as well
		}
	}
	if w.chance(15) { // devices use the memory of the node
		n.Unified = true
	}
	if w.chance(30) {
		for i := range n.Devices {
			if reserved := cluster.Bytes(w.dice.Roll(4)) << 30; n.Devices[i].Shares == "" {
				n.Devices[i].Reserved = reserved
			}
		}
	}
	if w.chance(20) {
		for i := range 3 {
			n.Devices = append(n.Devices, cluster.Device{UUID: fmt.Sprintf("%s-mig-%d", name, i), Product: "A100", Type: "cuda", Memory: 10 << 30, Profile: "1g.10gb", Parent: name + "-mig"})
		}
	}
	if w.chance(15) && len(n.Devices) == 0 { // devices that time-slicing offers several times
		n.Sharing = cluster.Sharing{Strategy: "time-slicing", Replicas: 2 + w.dice.Roll(3)}
		for i := range 1 + w.dice.Roll(2) {
			n.Devices = append(n.Devices, cluster.Replicate(cluster.Device{UUID: fmt.Sprintf("%s-%d", name, i), Product: "L4", Type: "cuda", Memory: 24 << 30}, n.Sharing)...)
		}
	}
	if w.unconstrained {
		return w.reportNode(n)
	}
	n.SupportedIsolation.GPU = append(n.SupportedIsolation.GPU, cluster.GPUClasses[w.dice.Roll(4):]...)
	n.SupportedIsolation.CPU = append(n.SupportedIsolation.CPU, cluster.CPUClasses[w.dice.Roll(3):]...)
	n.SupportedIsolation.IsolableCores = int64(w.dice.Roll(8))
	if w.chance(15) {
		n.SupportedIsolation.Share = cluster.ShareExclusive
	}
	return w.reportNode(n)
}

// reportNode reports a new node. Bindings that were sent to a former node with the
// same name and are not answered count on the new node, which may be smaller.
func (w *World) reportNode(n *cluster.Node) error {
	w.site.nodes[n.Name] = n
	for _, p := range w.sent {
		if p.node == n.Name {
			w.site.shrunk[n.Name] = true
		}
	}
	return w.apply(cluster.NodePut{Node: *n})
}

func (w *World) label(n *cluster.Node) {
	n.Labels = map[string]string{"rack": pick(w, []string{"r1", "r2", "r3"})}
	if w.chance(50) {
		n.Labels["zone"] = pick(w, []string{"a", "b"})
	}
	if w.chance(20) {
		n.Labels["kai.scheduler/instance-type"] = "spot"
	}
	if w.unconstrained {
		return
	}
	n.Cell = pick(w, []string{"", "west", "east"})
	n.Taints = nil
	if w.chance(15) {
		n.Taints = append(n.Taints, cluster.Taint{Key: "gpu", Value: "only", Effect: pick(w, cluster.Effects)})
	}
	n.Unschedulable = w.chance(5)
	n.Phase = pick(w, []cluster.Phase{"", "", "", "", cluster.PhaseReady, "NOT_READY", "UNREACHABLE"})
}

// LoseNode removes a node with all processes on it.
func (w *World) LoseNode() error {
	if len(w.site.nodes) == 0 {
		return nil
	}
	return w.removeNode(pick(w, sorted(w.site.nodes)))
}

func (w *World) removeNode(name string) error {
	delete(w.site.nodes, name)
	delete(w.site.shrunk, name)
	if err := w.apply(cluster.NodeGone{Name: name}); err != nil {
		return err
	}
	if err := w.endProcesses(func(p *process) bool { return p.node == name }); err != nil {
		return err
	}
	return w.restartTorn()
}

// endProcesses ends the processes that the function selects, and reports that to
// State.
func (w *World) endProcesses(selected func(*process) bool) error {
	for _, id := range sorted(w.site.runs) {
		p := w.site.runs[id]
		if !selected(p) {
			continue
		}
		delete(w.site.runs, id)
		if err := w.apply(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	return nil
}

// ChangeNode changes the labels of a node, or its devices, cores or memory, even if
// tasks hold them.
func (w *World) ChangeNode() error {
	if len(w.site.nodes) == 0 {
		return nil
	}
	name := pick(w, sorted(w.site.nodes))
	n := w.site.nodes[name]
	w.change(n)
	var lost []string
	for i := range n.Devices {
		if n.Devices[i].Lost {
			lost = append(lost, n.Devices[i].UUID)
		}
	}
	for _, c := range []cluster.Change{cluster.NodePut{Node: *n}, cluster.NodeSeen{Name: name, Phase: &n.Phase, Lost: &lost}} {
		if err := w.apply(c); err != nil {
			return err
		}
	}
	if err := w.endProcesses(func(p *process) bool { // processes on a device that was removed
		return p.node == name && len(p.claims) > 0 && p.claims[len(p.claims)-1].Device >= len(n.Devices)
	}); err != nil {
		return err
	}
	return w.restartTorn()
}

func (w *World) change(n *cluster.Node) {
	last := len(n.Devices) - 1
	switch what := w.dice.Roll(8); {
	case what < 2:
		w.label(n)
	case what < 5 && last >= 0:
		d := &n.Devices[w.dice.Roll(last+1)]
		d.Lost = !d.Lost
	case what < 6 && last >= 0:
		if i := w.dice.Roll(last + 1); !w.isHeld(n.Name, i) && n.Devices[i].Shares == "" {
			n.Devices[i].Memory /= 2 // the device was replaced
			w.site.shrunk[n.Name] = true
		}
	case what < 7 && last > 0:
		n.Devices = n.Devices[:last]
	default:
		for i := range n.Resources {
			if l := &n.Resources[i]; l.Name == cluster.CPU {
				l.Capacity = int64(8+8*w.dice.Roll(8)) * 1000
				w.site.shrunk[n.Name] = true
			}
			if l := &n.Resources[i]; l.Name == cluster.Memory && n.Unified && w.chance(50) {
				l.Capacity = int64(32+32*w.dice.Roll(7)) << 30
			}
		}
	}
}

// isHeld reports whether a process holds the device, or will if its binding succeeds.
func (w *World) isHeld(node string, device int) bool {
	for _, list := range []map[string]*process{w.site.runs, w.sent} {
		for _, p := range list {
			for _, c := range p.claims {
				if p.node == node && c.Device == device {
					return true
				}
			}
		}
	}
	return false
}
