package intree

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

// cycle is what the PreFilters of the in-tree plugins found out about a pod. There are two
// sorts of it. One is kept for each Key of shapes, and is about the plugins that do not have
// the task form: nothing but the spec of the pod has an effect on it. The other is kept for
// each kind of pod, and is about the plugins in the task form. It is valid as long as nodes
// and the objects of the Store do not change, and follows the movement of pods.
type cycle struct {
	pod      *v1.Pod
	state    *framework.CycleState
	results  []result          // by plugin; those that the cycle is not about are skipped
	filtered bool              // at least one plugin may reject a node
	rejected uint64            // a bit for each plugin that rejected a node; see hints
	before   *engine.Rejection // why no node can take the pod; nil if a node may

	// The following fields are only set for plugins in the task form.
	namespace labels.Set // the labels of the namespace of the pod
	lens      *lens      // of the plugin that is narrow; nil if it is not needed
	// mirrorEpoch and storeEpoch are the epochs for which the cycle is valid; moves is how
	// many movements of the mirror it has followed.
	mirrorEpoch, storeEpoch uint64
	moves                   int
	claims                  uint64 // the epoch of what is reserved for claims
}

// result is the result of one PreFilter.
type result struct {
	skip   bool              // the plugin rejects no node
	reject *engine.Rejection // the plugin rejects all nodes
	nodes  sets.Set[string]  // the plugin rejects all other nodes; nil: it rejects none without its filter
}

// maxCycles and maxMoves limit what is kept from session to session.
const (
	maxCycles = 4096
	maxMoves  = 1 << 11
)

// cycleOfShape returns the cycle for shapes with the key. It returns nil if no pod with this
// key is known.
//
// The cycle is kept when the last pod with the key is removed from the Store, so that the
// answers for a shape do not change while the engine remembers them.
func (p *plugin) cycleOfShape(key string) *cycle {
	c := p.shapes[key]
	if c != nil {
		return c
	}
	pod := p.store.sample(key)
	if pod == nil {
		p.missedKeys[key] = true
		return nil
	}
	c = &cycle{pod: pod, state: framework.NewCycleState(), results: make([]result, len(p.wrapped))}
	for i, w := range p.wrapped {
		if c.results[i].skip = w.form == taskForm; w.form != taskForm {
			p.preFilter(c, i)
		}
	}
	c.conclude()
	p.shapes[key] = c
	return c
}

// cycleOf returns the cycle for the pod of the task, which is up to date.
func (p *plugin) cycleOf(t *cluster.Task, of *pod) *cycle {
	k := of.kind
	if t.ShadowOf() != nil {
		k.node = "" // the pod that replaces the one that moves has no node yet
	}
	if p.devices.offer(of.extended) {
		k.uid = of.info.Pod.UID
	}
	c := p.cycles[k]
	if c == nil {
		c = &cycle{pod: of.info.Pod, results: make([]result, len(p.wrapped))}
		if c.pod.Spec.NodeName != k.node {
			copied := *c.pod
			copied.Spec.NodeName = k.node
			c.pod = &copied
		}
		p.cycles[k] = c
	}
	switch {
	case c.state == nil || c.mirrorEpoch != p.mirror.epoch || c.storeEpoch != p.store.epoch:
		c.state, c.lens = framework.NewCycleState(), nil
		c.namespace = interpodaffinity.GetNamespaceLabelsSnapshot(quiet, c.pod.Namespace, p.namespaces)
		c.mirrorEpoch, c.storeEpoch = p.mirror.epoch, p.store.epoch
		for i, w := range p.wrapped {
			if c.results[i].skip = w.form != taskForm; w.form == taskForm {
				p.preFilter(c, i)
			}
		}
		c.conclude()
	case c.moves < len(p.mirror.moves):
		p.follow(c)
		c.conclude()
	}
	if c.claims != p.claims.epoch {
		c.claims = p.claims.epoch
		for i := range p.claims.kinds {
			p.preFilter(c, p.claims.kinds[i].index)
		}
		c.conclude()
	}
	c.moves = len(p.mirror.moves)
	return c
}

// conclude sums up the results.
func (c *cycle) conclude() {
	c.before, c.filtered = nil, false
	for i := range c.results {
		r := &c.results[i]
		if r.reject != nil {
			c.rejected |= 1 << i
			if c.before == nil {
				c.before = r.reject
			}
		}
		c.filtered = c.filtered || !r.skip
	}
}

// preFilter calls the PreFilter of a plugin.
func (p *plugin) preFilter(c *cycle, i int) {
	w, r := p.wrapped[i], &c.results[i]
	*r = result{skip: w.applies != nil && !w.applies(c.pod)}
	if w.pre == nil || r.skip {
		return
	}
	found, status := w.pre.PreFilter(background, c.state, c.pod, p.nodesFor(c, w))
	r.skip, r.reject = status.IsSkip(), w.rejectionOf(status)
	if status.IsSuccess() && !found.AllNodes() {
		r.nodes = found.NodeNames
	}
}

// nodesFor returns the nodes that the PreFilter of the plugin reads.
func (p *plugin) nodesFor(c *cycle, w *wrapped) []fwk.NodeInfo {
	if !w.narrow || len(c.pod.Spec.TopologySpreadConstraints) == 0 {
		return p.mirror.list
	}
	if c.lens == nil {
		c.lens = newLens(p.mirror, c.pod)
	}
	return c.lens.nodes
}

// follow brings the cycle up to date after movements of pods.
func (p *plugin) follow(c *cycle) {
	moves := p.mirror.moves[c.moves:]
	if c.lens != nil {
		for _, v := range moves {
			c.lens.follow(v)
		}
	}
	for i, w := range p.wrapped {
		r := &c.results[i]
		switch {
		case w.stale != nil && slices.ContainsFunc(moves, func(v movement) bool { return v.node.info.Node() != nil && w.stale(c, r, v) }):
			p.preFilter(c, i)
		case w.updates && !r.skip && r.reject == nil:
			for _, v := range moves {
				if v.node.info.Node() == nil {
					continue
				}
				if status := w.update(c.state, c.pod, v); !status.IsSuccess() {
					p.preFilter(c, i)
					break
				}
			}
		}
	}
}

// asks reports whether a plugin of the form may reject a node.
func (p *plugin) asks(c *cycle, f form) bool {
	for i, w := range p.wrapped {
		if w.form == f && !c.results[i].skip && (w.idle == nil || !w.idle(p.mirror)) {
			return true
		}
	}
	return false
}

// ask calls the filters of the plugins of the form, and returns the first rejection of the
// node; nil if all of them accept it.
func (p *plugin) ask(c *cycle, n *mirrorNode, f form) *engine.Rejection {
	for i, w := range p.wrapped {
		r := &c.results[i]
		if w.form != f || r.skip || w.idle != nil && w.idle(p.mirror) {
			continue
		}
		if r.nodes != nil && !r.nodes.Has(n.info.Node().Name) {
			c.rejected |= 1 << i
			return rejection(w.reason, "")
		}
		if found := w.rejectionOf(w.filter.Filter(background, c.state, c.pod, n.info)); found != nil {
			c.rejected |= 1 << i
			return found
		}
	}
	return nil
}
