package intree

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Name is the plugin's name in a profile.
const Name = "KubernetesFilters"

// plugin is the engine plugin. What it keeps from session to session is derived from State
// and from the Store: the mirror, and the cycles.
type plugin struct {
	store      *Store
	mirror     *mirror
	wrapped    []*wrapped
	shapes     map[string]*cycle // by Shape.Key
	cycles     map[kind]*cycle   // by kind of pod
	unknown    map[string]bool   // the names of nodes of State that the Store does not have
	hints      *hints
	namespaces corelisters.NamespaceLister
	claims     *claims
	assumed    *assumptions
	devices    *devices

	nodes    cluster.Since // up to where State was read
	slots    []string      // the names of the nodes of State, by slot; "": none
	position int           // up to where the changes of the Store were read; -1 if it must be read anew
	failure  error         // why the mirror could not follow an event

	// closed is the version of State when the last session closed. A node that State changed
	// since is judged anew by the engine; answers about any other node may be remembered.
	closed uint64
	stale  bool // remembered answers are not valid any more
	// missed are the tasks, and missedKeys the keys of shapes, of which the pods were not known.
	missed     map[TaskKey]bool
	missedKeys map[string]bool
}

// Builder returns the builder of the plugin. Each plugin that it builds has a mirror of its
// own, and all read the same Store.
func Builder(store *Store) engine.PluginBuilder {
	return engine.WithArguments(nil, func(struct{}) (engine.Plugin, error) { return build(store) })
}

// metricsReady makes the metrics of kube-scheduler once. They are not served.
var metricsReady sync.Once

func build(store *Store) (*plugin, error) {
	p := &plugin{
		store: store, namespaces: store.factory.Core().V1().Namespaces().Lister(), mirror: newMirror(),
		shapes: map[string]*cycle{}, cycles: map[kind]*cycle{}, unknown: map[string]bool{},
		missed: map[TaskKey]bool{}, missedKeys: map[string]bool{},
		position: -1, closed: math.MaxUint64,
	}
	metricsReady.Do(metrics.InitMetrics) // DynamicResources counts the claims that it creates
	h, err := newHandle(p.mirror, store)
	if err != nil {
		return nil, err
	}
	p.devices = h.dra
	if p.wrapped, err = wrapAll(h); err != nil {
		return nil, err
	}
	for _, w := range p.wrapped {
		if w.name == names.DynamicResources {
			w.applies = func(o *v1.Pod) bool { return hasResourceClaims(o) || p.devices.areRequested(o) }
		}
	}
	p.claims = newClaims(p.wrapped, h)
	p.assumed = watchAssumptions(p.wrapped, h, store)
	p.claims.restore(&store.assumed)
	if store.primary == nil {
		store.primary = p
	}
	p.hints, err = newHints(p.wrapped)
	return p, err
}

// Name returns the name of the plugin.
func (p *plugin) Name() string { return Name }

// SharedByProfiles marks the plugin as one that all profiles share: it counts the claims of all
// pods.
func (p *plugin) SharedByProfiles() {}

// OnSessionOpen brings the mirror up to date and registers the hooks.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	s.Hooks.AddPreFilter(p.before)
	s.Hooks.AddStaticFilter(p.mattersStatic, p.rejectStatic)
	s.Hooks.AddShapeFilter(p.mattersShape, p.rejectShape)
	s.Hooks.AddTaskFilter(p.mattersTask, p.rejectTask)
	s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: p.allocated, DeallocateFunc: p.deallocated})
	s.Hooks.AddReserve(p.needsClaims, engine.Reserver{Reserve: p.reserveClaims, Unreserve: p.unreserveClaims, Devices: p.chosenDevices})
	s.Hooks.AddWake(p.hints.wake)
}

// Reopen brings the mirror up to date.
func (p *plugin) Reopen(s *engine.Session) bool {
	if p.failure != nil {
		p.failure, p.position = nil, -1
	}
	p.stale = false
	p.readStore(s.View)
	p.readState(s.View)
	limit(p)
	p.findMissed()
	p.claims.settle(s.View)
	p.readLeaving(s.View)
	if p.stale {
		p.hints.published++
	}
	p.closed = math.MaxUint64 // until the session is closed, answers about any node may be remembered
	s.Hooks.Publish(Name, p.hints.published)
	return true
}

// OnSessionClose notes up to which version of State the engine remembers answers.
func (p *plugin) OnSessionClose(s *engine.Session) { p.closed = s.View.Version() }

// readStore reads what changed in the Store.
func (p *plugin) readStore(v cluster.View) {
	changes, now, complete := p.store.since(max(p.position, 0))
	if p.position < 0 || !complete {
		p.readAll()
		changes = nil
	}
	p.position = now
	for _, c := range changes {
		p.renew(c.task)
		p.hints.consider(c, maps.Values(p.cycles))
		switch {
		case c.node != "":
			epoch := p.mirror.epoch
			p.mirror.setNode(c.node, p.store.nodes[c.node])
			p.know(c.node, v)
			if n := v.Node(c.node); n != nil && p.mirror.epoch != epoch && n.SpecVersion() <= p.closed {
				p.stale = true // State did not change with the object
			}
		case c.task != TaskKey{}:
			p.stale = p.stale || p.missed[c.task]
			p.refill(taskOf(v, c.task))
		}
	}
	if p.store.primary == p {
		p.store.forget(now)
	}
}

// renew gives the cycle of a pod with claims the pod as it is now. Such a pod is the only one
// of its kind, and its status names claims that were created for it.
func (p *plugin) renew(key TaskKey) {
	known := p.store.pods[key]
	if known == nil || !hasResourceClaims(known.info.Pod) {
		return
	}
	if c := p.cycles[known.kind]; c != nil && c.pod.UID == known.info.Pod.UID {
		c.pod, c.state = known.info.Pod, nil
	}
}

// refill fills the node of the task, and that to which it moves. The task may be nil.
func (p *plugin) refill(t *cluster.Task) {
	if t == nil {
		return
	}
	if t.Node != nil {
		p.fill(t.Node)
	}
	if l := t.Landing(); l != nil && l.Node != nil {
		p.fill(l.Node)
	}
}

// readAll makes the nodes of the mirror equal to those of the Store, and lets readState
// read all of State.
func (p *plugin) readAll() {
	*p.mirror = *newMirror()
	clear(p.shapes)
	clear(p.cycles)
	p.nodes = cluster.Since{}
	for _, name := range slices.Sorted(maps.Keys(p.store.nodes)) {
		p.mirror.setNode(name, p.store.nodes[name])
	}
	p.stale = true
}

// findMissed finds out whether pods are known now that were not known when they were
// needed.
func (p *plugin) findMissed() {
	for key := range p.missedKeys { // the order has no effect on the result
		p.stale = p.stale || p.store.sample(key) != nil
	}
	if p.stale {
		clear(p.missedKeys)
		clear(p.missed)
	}
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
		for _, name := range slices.Sorted(maps.Keys(p.mirror.nodes)) {
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
		for _, uid := range slices.Sorted(maps.Keys(n.pods)) {
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
// that are releasing their room are included, as terminating pods are in kube-scheduler. They
// are removed from the mirror when a session evicts them, and return here: State does not
// change then, so that remembered answers may become invalid.
func (p *plugin) fill(n *cluster.Node) {
	want := map[types.UID]*framework.PodInfo{}
	for _, t := range n.Tasks {
		if known := p.store.pods[KeyOf(t)]; known != nil {
			want[known.info.Pod.UID] = known.info
		}
	}
	removed := map[types.UID]*v1.Pod{}
	if has := p.mirror.nodes[n.Name]; has != nil {
		for _, uid := range slices.Sorted(maps.Keys(has.pods)) {
			if info := has.pods[uid]; want[uid] != info {
				removed[uid] = info.Pod
				p.note(p.mirror.remove(n.Name, uid))
			}
		}
	}
	same := true                // filters in the shape form give the same answers as before
	for _, t := range n.Tasks { // in their order, so that equal States give equal mirrors
		known := p.store.pods[KeyOf(t)]
		if known == nil || p.mirror.has(n.Name, known.info.Pod.UID) {
			continue
		}
		o := known.info.Pod
		p.note(p.mirror.add(n.Name, known.info))
		same = same && sameOccupation(removed[o.UID], o)
		delete(removed, o.UID)
	}
	for _, o := range removed { // the order has no effect on the result
		same = same && !occupies(o)
	}
	if !same && n.Version() <= p.closed {
		p.stale = true
	}
}

// limit drops what was kept if it has become too much.
func limit(p *plugin) {
	if len(p.missed) > maxCycles || len(p.missedKeys) > maxCycles {
		p.stale = true
	}
	if len(p.mirror.moves) > maxMoves || len(p.cycles) > maxCycles || len(p.shapes) > maxCycles {
		p.mirror.forget()
		clear(p.shapes)
		clear(p.cycles)
		p.stale = true // the rejections are forgotten
	}
}

// note keeps the first error of the mirror. All tasks are then rejected until the next
// session, which builds the mirror anew.
func (p *plugin) note(err error) {
	if p.failure == nil {
		p.failure = err
	}
}

// allocated adds the pod of a task that is placed, unless it is on the node already: a task
// that is overdue was never removed.
func (p *plugin) allocated(e *engine.Event) {
	known := p.store.pods[KeyOf(e.Task)]
	if known != nil {
		p.claims.leave(e.Task, known.info.Pod)
	}
	if known != nil && !p.mirror.has(e.Node.Name, known.info.Pod.UID) {
		p.note(p.mirror.add(e.Node.Name, known.info))
	}
}

// deallocated removes the pod of a task that is evicted or loses its reservation.
func (p *plugin) deallocated(e *engine.Event) {
	known := p.store.pods[KeyOf(e.Task)]
	if known != nil {
		p.claims.leave(e.Task, known.info.Pod)
	}
	if known != nil && p.mirror.has(e.Node.Name, known.info.Pod.UID) {
		p.note(p.mirror.remove(e.Node.Name, known.info.Pod.UID))
	}
}
