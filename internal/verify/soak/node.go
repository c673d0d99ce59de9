package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
)

var kinds = []struct {
	product, runtime string
	memory           cluster.Bytes
}{{"A100", "cuda", 80 << 30}, {"A10", "cuda", 24 << 30}, {"L4", "cuda", 24 << 30}, {"MI210", "rocm", 64 << 30}}

// AddNode adds a random node, sometimes under the name of one that is gone.
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
		k := pick(w, kinds)
		for range []int{4, 2, 1}[w.dice.Roll(3)] {
			n.Devices = append(n.Devices, cluster.Device{UUID: fmt.Sprintf("%s-%d", name, len(n.Devices)), Product: k.product, Type: k.runtime, Memory: k.memory})
		}
	}
	if others := sorted(w.site.nodes); len(others) > 0 && w.chance(30) { // one more of the same kind
		n.Devices = slices.Clone(w.site.nodes[pick(w, others)].Devices)
		for i := range n.Devices {
			n.Devices[i].UUID, n.Devices[i].Lost = fmt.Sprintf("%s-%d", name, i), false // what shares memory goes on sharing it
		}
	}
	if w.chance(15) { // devices and tasks share one memory
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
	if w.chance(15) && len(n.Devices) == 0 { // one that time-slicing offers several times
		n.Sharing = cluster.Sharing{Strategy: "time-slicing", Replicas: 2 + w.dice.Roll(3)}
		for i := range 1 + w.dice.Roll(2) {
			n.Devices = append(n.Devices, cluster.Replicate(cluster.Device{UUID: fmt.Sprintf("%s-%d", name, i), Product: "L4", Type: "cuda", Memory: 24 << 30}, n.Sharing)...)
		}
	}
	if w.plain {
		return w.report(n)
	}
	n.SupportedIsolation.GPU = append(n.SupportedIsolation.GPU, cluster.GPUClasses[w.dice.Roll(4):]...)
	n.SupportedIsolation.CPU = append(n.SupportedIsolation.CPU, cluster.CPUClasses[w.dice.Roll(3):]...)
	n.SupportedIsolation.IsolableCores = int64(w.dice.Roll(8))
	if w.chance(15) {
		n.SupportedIsolation.Share = cluster.ShareExclusive
	}
	return w.report(n)
}

// report tells the scheduler of a new node. Bindings to a node of the same name that is
// gone are not answered yet: they count on the new one, which may have less.
func (w *World) report(n *cluster.Node) error {
	w.site.nodes[n.Name] = n
	for _, p := range w.sent {
		if p.node == n.Name {
			w.site.shrunk[n.Name] = true
		}
	}
	return w.tell(cluster.NodePut{Node: *n})
}

func (w *World) label(n *cluster.Node) {
	n.Labels = map[string]string{"rack": pick(w, []string{"r1", "r2", "r3"})}
	if w.chance(50) {
		n.Labels["zone"] = pick(w, []string{"a", "b"})
	}
	if w.chance(20) {
		n.Labels["kai.scheduler/instance-type"] = "spot"
	}
	if w.plain {
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

// LoseNode loses a node with all that runs there.
func (w *World) LoseNode() error {
	if len(w.site.nodes) == 0 {
		return nil
	}
	return w.lose(pick(w, sorted(w.site.nodes)))
}

func (w *World) lose(name string) error {
	delete(w.site.nodes, name)
	delete(w.site.shrunk, name)
	if err := w.tell(cluster.NodeGone{Name: name}); err != nil {
		return err
	}
	if err := w.die(func(p *process) bool { return p.node == name }); err != nil {
		return err
	}
	return w.whole()
}

// die ends the processes that the function picks, and tells the scheduler.
func (w *World) die(dies func(*process) bool) error {
	for _, id := range sorted(w.site.runs) {
		p := w.site.runs[id]
		if !dies(p) {
			continue
		}
		delete(w.site.runs, id)
		if err := w.tell(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	return nil
}

// ChangeNode relabels a node, or has it lose or regain a device or some cores,
// whoever holds them.
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
		if err := w.tell(c); err != nil {
			return err
		}
	}
	if err := w.die(func(p *process) bool { // what ran on a device that is gone
		return p.node == name && len(p.claims) > 0 && p.claims[len(p.claims)-1].Device >= len(n.Devices)
	}); err != nil {
		return err
	}
	return w.whole()
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
		if i := w.dice.Roll(last + 1); !w.holds(n.Name, i) && n.Devices[i].Shares == "" {
			n.Devices[i].Memory /= 2 // another one is in its place
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

// holds reports whether anything runs on the device.
func (w *World) holds(node string, device int) bool {
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
