package intree

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Name is the plugin's name in a profile.
const Name = "KubernetesFilters"

// plugin is the engine plugin. What it keeps from session to session is derived from State
// and from the Store: the mirror, and the cycles.
type plugin struct {
	store      *Store
	mirror     *mirror
	wrapped    []*wrapped
	cycles     map[kind]*cycle // by kind of pod
	unknown    map[string]bool // the names of nodes of State that the Store does not have
	hints      *hints
	namespaces corelisters.NamespaceLister

	nodes    cluster.Since // up to where State was read
	slots    []string      // the names of the nodes of State, by slot; "": none
	position int           // up to where the changes of the Store were read
	failure  error         // why the mirror could not follow an event
}

// Builder returns the builder of the plugin. Each plugin that it builds has a mirror of its
// own, and all read the same Store.
func Builder(store *Store) engine.PluginBuilder {
	return engine.WithArguments(nil, func(struct{}) (engine.Plugin, error) { return build(store) })
}

func build(store *Store) (*plugin, error) {
	p := &plugin{store: store, namespaces: store.factory.Core().V1().Namespaces().Lister(), mirror: newMirror(), cycles: map[kind]*cycle{}, unknown: map[string]bool{}}
	var err error
	if p.wrapped, err = wrapAll(newHandle(p.mirror, store)); err != nil {
		return nil, err
	}
	p.hints, err = newHints(p.wrapped)
	p.position = -1 // the Store was never read
	return p, err
}

// Name returns the name of the plugin.
func (p *plugin) Name() string { return Name }

// OnSessionOpen brings the mirror up to date and registers the hooks.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.failure = nil
	p.readStore(s.View)
	p.readState(s.View)
	p.bound()
	s.Hooks.AddPreFilter(p.before)
	s.Hooks.AddTaskFilter(p.matters, p.reject)
	s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: p.allocated, DeallocateFunc: p.deallocated})
	s.Hooks.AddWake(p.hints.wake)
	s.Hooks.Publish(Name, p.hints.woken)
}

// readStore reads what changed in the Store.
func (p *plugin) readStore(v cluster.View) {
	changes, now, complete := p.store.since(max(p.position, 0))
	if p.position < 0 || !complete {
		p.readAll()
		changes = nil
	}
	p.position = now
	for _, c := range changes {
		p.hints.consider(c, p.cycles)
		switch {
		case c.node != "":
			p.mirror.setNode(c.node, p.store.nodes[c.node])
			p.know(c.node, v)
		case c.task != TaskKey{}:
			if t := taskOf(v, c.task); t != nil && t.Node != nil {
				p.fill(t.Node)
			}
		}
	}
}

// readAll makes the nodes of the mirror equal to those of the Store, and lets readState
// read all of State.
func (p *plugin) readAll() {
	*p.mirror = *newMirror()
	clear(p.cycles)
	p.nodes = cluster.Since{}
	for name, object := range p.store.nodes { // the order has no effect on the result
		p.mirror.setNode(name, object)
	}
	p.hints.woken++
}

// taskOf returns the task with the key; nil if State has none.
func taskOf(v cluster.View, key TaskKey) *cluster.Task {
	j := v.Job(key.Job)
	if j == nil {
		return nil
	}
	for _, t := range j.Tasks() {
		if KeyOf(t) == key {
			return t
		}
	}
	return nil
}

// readState reads what changed in State.
func (p *plugin) readState(v cluster.View) {
	begin := func() {
		clear(p.unknown)
		clear(p.slots)
		for name := range p.mirror.nodes { // the order has no effect on the result
			p.empty(name)
		}
	}
	p.nodes.Nodes(v, begin, func(slot int) {
		for len(p.slots) <= slot {
			p.slots = append(p.slots, "")
		}
		if earlier := p.slots[slot]; earlier != "" && v.Node(earlier) == nil { // the node was removed
			p.empty(earlier)
			p.know(earlier, v)
		}
		p.slots[slot] = ""
		if n := v.At(slot); n != nil {
			p.slots[slot] = n.Name
			p.fill(n)
			p.know(n.Name, v)
		}
	})
}

// empty removes all pods from a node of the mirror.
func (p *plugin) empty(name string) {
	if n := p.mirror.nodes[name]; n != nil {
		for uid := range n.pods {
			p.note(p.mirror.remove(name, uid))
		}
	}
}

// know notes whether the node is in State and not in the Store.
func (p *plugin) know(name string, v cluster.View) {
	if p.store.nodes[name] == nil && v.Node(name) != nil {
		p.unknown[name] = true
	} else {
		delete(p.unknown, name)
	}
}

// fill makes the pods of the node in the mirror equal to those of its tasks in State. Tasks
// that are releasing their room are included, as terminating pods are in kube-scheduler.
func (p *plugin) fill(n *cluster.Node) {
	want := map[types.UID]*framework.PodInfo{}
	for _, t := range n.Tasks {
		if known := p.store.pods[KeyOf(t)]; known != nil {
			want[known.info.Pod.UID] = known.info
		}
	}
	if has := p.mirror.nodes[n.Name]; has != nil {
		for uid, info := range has.pods {
			if want[uid] != info {
				p.note(p.mirror.remove(n.Name, uid))
			}
		}
	}
	for _, t := range n.Tasks { // in their order, so that equal States give equal mirrors
		if known := p.store.pods[KeyOf(t)]; known != nil && !p.mirror.has(n.Name, known.info.Pod.UID) {
			p.note(p.mirror.add(n.Name, known.info))
		}
	}
}

// bound drops what was kept if it has become too much.
func (p *plugin) bound() {
	if len(p.mirror.moves) > maxMoves || len(p.cycles) > maxCycles {
		p.mirror.forget()
		clear(p.cycles)
		p.hints.woken++ // the rejections are forgotten
	}
}

// note keeps the first error of the mirror. All tasks are then rejected until the next
// session.
func (p *plugin) note(err error) {
	if p.failure == nil {
		p.failure = err
	}
}

// allocated adds the pod of a task that is placed, unless it is on the node already: a task
// that is overdue was never removed.
func (p *plugin) allocated(e *engine.Event) {
	known := p.store.pods[KeyOf(e.Task)]
	if known != nil && !p.mirror.has(e.Node.Name, known.info.Pod.UID) {
		p.note(p.mirror.add(e.Node.Name, known.info))
	}
}

// deallocated removes the pod of a task that is evicted or loses its reservation.
func (p *plugin) deallocated(e *engine.Event) {
	known := p.store.pods[KeyOf(e.Task)]
	if known != nil && p.mirror.has(e.Node.Name, known.info.Pod.UID) {
		p.note(p.mirror.remove(e.Node.Name, known.info.Pod.UID))
	}
}

// before rejects tasks whose pods no node can take.
func (p *plugin) before(t *cluster.Task, _ *cluster.Job) *engine.Rejection {
	if p.failure != nil {
		return rejection(FilterFailed, p.failure.Error())
	}
	known := p.store.pods[KeyOf(t)]
	if known == nil {
		return rejection(PodNotKnown, "")
	}
	if known.malformed != "" {
		return rejection(FilterFailed, known.malformed)
	}
	return p.cycleOf(known).before
}

// matters reports whether a node may be rejected for the task.
func (p *plugin) matters(t *cluster.Task, _ *cluster.Job) bool {
	known := p.store.pods[KeyOf(t)]
	return known == nil || len(p.unknown) > 0 || p.cycleOf(known).filtered
}

// reject asks the in-tree plugins about the task and the node.
func (p *plugin) reject(t *cluster.Task, _ *cluster.Job, on *cluster.Node) *engine.Rejection {
	known := p.store.pods[KeyOf(t)]
	if known == nil {
		return rejection(PodNotKnown, "")
	}
	n := p.mirror.nodes[on.Name]
	if n == nil || n.info.Node() == nil {
		return rejection(NodeNotKnown, on.Name)
	}
	return p.filter(p.cycleOf(known), known, n, on.Slot())
}
