package soak

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
)

// maxNodes is the number of nodes at a time.
const maxNodes = 10

// nodeEvents has the steps that happen to nodes.
type nodeEvents struct {
	dice       *dice
	maker      *nodeMaker
	site       *site
	scheduler  *scheduler
	controller *controller
}

// add adds a random node, sometimes with the name of a node that was removed.
func (e *nodeEvents) add() error {
	name := fmt.Sprintf("n%02d", e.dice.roll(30))
	if len(e.site.nodes) >= maxNodes || e.site.nodes[name] != nil {
		return nil
	}
	return e.report(e.maker.node(name, e.site.nodes))
}

// report adds a node to the site and to State.
func (e *nodeEvents) report(n *cluster.Node) error {
	e.site.addNode(n)
	return e.scheduler.apply(cluster.NodePut{Node: *n})
}

// lose removes a random node with all processes on it.
func (e *nodeEvents) lose() error {
	if len(e.site.nodes) == 0 {
		return nil
	}
	return e.remove(pick(e.dice, sorted(e.site.nodes)))
}

func (e *nodeEvents) remove(name string) error {
	delete(e.site.nodes, name)
	delete(e.site.overcommitted, name)
	if err := e.scheduler.apply(cluster.NodeGone{Name: name}); err != nil {
		return err
	}
	return e.endProcesses(func(p *process) bool { return p.node == name })
}

// change changes the labels of a node, or its devices, cores or memory, even if tasks
// hold them. Processes on a device that was removed end.
func (e *nodeEvents) change() error {
	if len(e.site.nodes) == 0 {
		return nil
	}
	name := pick(e.dice, sorted(e.site.nodes))
	n := e.site.nodes[name]
	if e.maker.change(n, func(device int) bool { return e.site.isHeld(name, device) }) {
		e.site.overcommitted[name] = true
	}
	var lost []string
	for i := range n.Devices {
		if n.Devices[i].Lost {
			lost = append(lost, n.Devices[i].UUID)
		}
	}
	for _, c := range []cluster.Change{cluster.NodePut{Node: *n}, cluster.NodeSeen{Name: name, Phase: &n.Phase, Lost: &lost}} {
		if err := e.scheduler.apply(c); err != nil {
			return err
		}
	}
	return e.endProcesses(func(p *process) bool {
		return p.node == name && len(p.claims) > 0 && p.claims[len(p.claims)-1].Device >= len(n.Devices)
	})
}

// endProcesses ends the processes that the function selects and reports that to State.
// Gangs may be below their minimum then.
func (e *nodeEvents) endProcesses(selected func(*process) bool) error {
	for _, id := range sorted(e.site.processes) {
		p := e.site.processes[id]
		if !selected(p) {
			continue
		}
		delete(e.site.processes, id)
		if err := e.scheduler.apply(cluster.TaskSeen{Task: p.task}); err != nil {
			return err
		}
	}
	return e.controller.restartGangs()
}

// readMemory reports the free memory of the devices of some nodes. It is random how
// much memory foreign processes use.
func (e *nodeEvents) readMemory() error {
	for _, name := range sorted(e.site.nodes) {
		n := e.site.nodes[name]
		if len(n.Devices) == 0 || e.dice.chance(50) {
			continue
		}
		free := map[string]cluster.Bytes{}
		foreign := e.maker.foreignMemory()
		for i := range n.Devices {
			if !n.Unified { // devices with unified memory report the same foreign use
				foreign = e.maker.foreignMemory()
			}
			if e.dice.chance(90) { // the remaining devices are not reported
				free[n.Devices[i].UUID] = max(0, e.site.freeMemory(name, i)-foreign)
			}
		}
		if err := e.scheduler.apply(cluster.NodeRead{Name: name, Free: free}); err != nil {
			return err
		}
		e.site.overcommitted[name] = true // reservations may exceed the memory now
	}
	return nil
}
