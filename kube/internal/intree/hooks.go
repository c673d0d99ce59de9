package intree

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// podOf returns the pod of the task, or a rejection if it is not known. If the pod has another
// key than the shape of the task, State and the Store have different versions of the pod. Such
// a pod is not known either: answers about the shape would be about the other version.
func (p *plugin) podOf(t *cluster.Task) (*pod, *engine.Rejection) {
	known := p.store.pods[KeyOf(t)]
	switch {
	case known == nil:
		p.missed[KeyOf(t)] = true
		return nil, rejection(PodNotKnown, "")
	case known.key != t.Shape.Key:
		p.missed[KeyOf(t)] = true
		return nil, rejection(PodNotKnown, "only another version of it")
	}
	return known, nil
}

// before rejects tasks whose pods no node can take.
func (p *plugin) before(t *cluster.Task, _ *cluster.Job) *engine.Rejection {
	if p.failure != nil {
		return rejection(FilterFailed, p.failure.Error())
	}
	known, unknown := p.podOf(t)
	if unknown != nil {
		unknown.Own = true // other pods of the kind may be known
		return unknown
	}
	if known.malformed != "" {
		return rejection(FilterFailed, known.malformed)
	}
	if c := p.cycleOfShape(t.Shape.Key); c != nil && c.before != nil {
		return c.before
	}
	return p.cycleOf(t, known).before
}

// mattersStatic reports whether rejectStatic may reject a node for the shape.
func (p *plugin) mattersStatic(s *cluster.Shape) bool {
	c := p.cycleOfShape(s.Key)
	return c != nil && (c.before != nil || p.asks(c, staticForm))
}

// rejectStatic asks the plugins in the static form about the shape and the node. If the pod or
// the node is not known, rejectShape rejects the node: a static rejection would withdraw what
// is reserved on it.
func (p *plugin) rejectStatic(s *cluster.Shape, on *cluster.Node) *engine.Rejection {
	c, n := p.cycleOfShape(s.Key), p.mirror.nodes[on.Name]
	switch {
	case c == nil:
		return nil
	case c.before != nil:
		return c.before
	case n == nil || n.info.Node() == nil:
		return nil
	}
	return p.ask(c, n, staticForm)
}

// mattersShape reports whether rejectShape may reject a node for the shape.
func (p *plugin) mattersShape(s *cluster.Shape) bool {
	c := p.cycleOfShape(s.Key)
	return c == nil || len(p.unknown) > 0 || p.asks(c, shapeForm)
}

// rejectShape asks the plugins in the shape form about the shape and the node.
func (p *plugin) rejectShape(s *cluster.Shape, on *cluster.Node) *engine.Rejection {
	c, n := p.cycleOfShape(s.Key), p.mirror.nodes[on.Name]
	switch {
	case c == nil:
		return rejection(PodNotKnown, "")
	case n == nil || n.info.Node() == nil:
		return rejection(NodeNotKnown, on.Name)
	}
	return p.ask(c, n, shapeForm)
}

// mattersTask reports whether rejectTask may reject a node for the task.
func (p *plugin) mattersTask(t *cluster.Task, _ *cluster.Job) bool {
	known, unknown := p.podOf(t)
	return unknown != nil || p.checksOffer(known) || p.cycleOf(t, known).filtered
}

// rejectTask asks the plugins in the task form about the task and the node.
func (p *plugin) rejectTask(t *cluster.Task, _ *cluster.Job, on *cluster.Node) *engine.Rejection {
	known, unknown := p.podOf(t)
	if unknown != nil {
		return unknown
	}
	c, n := p.cycleOf(t, known), p.mirror.nodes[on.Name]
	if c.before != nil || n == nil || n.info.Node() == nil {
		return c.before // rejectShape rejects a node that is not known
	}
	if p.checksOffer(known) {
		if r := p.devices.rejection(known, n); r != nil {
			return r
		}
	}
	return p.ask(c, n, taskForm)
}
