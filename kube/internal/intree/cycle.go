package intree

import (
	"slices"

	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

// cycle is what the PreFilters of the in-tree plugins found out about pods of one kind. It
// is kept as long as nodes and the objects of the Store do not change, and follows the
// movement of pods.
type cycle struct {
	pod       *v1.Pod    // the first pod of the kind
	namespace labels.Set // the labels of its namespace
	state     *framework.CycleState
	lens      *lens    // of the plugin that is narrow; nil if it is not needed
	results   []result // by plugin
	// mirrorEpoch and storeEpoch are the epochs for which the cycle is valid; moves is how
	// many movements of the mirror it has followed.
	mirrorEpoch, storeEpoch uint64
	moves                   int
	filtered                bool              // at least one plugin may reject a node
	answers                 []answer          // of the static plugins, by slot of the node
	rejected                uint64            // a bit for each plugin that rejected a node; see hints
	before                  *engine.Rejection // why no node can take the pod; nil if a node may
}

// result is the result of one PreFilter.
type result struct {
	skip   bool              // the plugin rejects no node
	reject *engine.Rejection // the plugin rejects all nodes
	nodes  sets.Set[string]  // the plugin rejects all other nodes; nil: it rejects none without its filter
}

// answer is what the static plugins said about a node.
type answer struct {
	version   uint64 // mirrorNode.version at that time; 0: they were not asked
	rejection *engine.Rejection
}

// maxCycles and maxMoves limit what is kept from session to session.
const (
	maxCycles = 4096
	maxMoves  = 1 << 14
)

// cycleOf returns the cycle for the pod, which is up to date.
func (p *plugin) cycleOf(of *pod) *cycle {
	c := p.cycles[of.kind]
	if c == nil {
		c = &cycle{pod: of.info.Pod, results: make([]result, len(p.wrapped))}
		p.cycles[of.kind] = c
	}
	switch {
	case c.state == nil || c.mirrorEpoch != p.mirror.epoch || c.storeEpoch != p.store.epoch:
		c.state, c.lens = framework.NewCycleState(), nil
		c.namespace = interpodaffinity.GetNamespaceLabelsSnapshot(quiet, c.pod.Namespace, p.namespaces)
		c.mirrorEpoch, c.storeEpoch = p.mirror.epoch, p.store.epoch
		for i := range p.wrapped {
			p.preFilter(c, i)
		}
		c.conclude()
	case c.moves < len(p.mirror.moves):
		p.follow(c)
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
	*r = result{}
	if w.pre == nil {
		r.skip = !w.matters(c.pod, p.mirror)
		return
	}
	nodes := p.mirror.list
	if w.narrow && len(c.pod.Spec.TopologySpreadConstraints) > 0 {
		if c.lens == nil {
			c.lens = newLens(p.mirror, c.pod)
		}
		nodes = c.lens.nodes
	}
	found, status := w.pre.PreFilter(background, c.state, c.pod, nodes)
	r.skip, r.reject = status.IsSkip(), w.rejectionOf(status)
	if status.IsSuccess() && !found.AllNodes() {
		r.nodes = found.NodeNames
	}
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

// filter returns the first rejection of the node; nil if all plugins accept it.
func (p *plugin) filter(c *cycle, of *pod, n *mirrorNode, slot int) *engine.Rejection {
	if c.before != nil {
		return c.before
	}
	if slot >= len(c.answers) {
		c.answers = append(c.answers, make([]answer, slot+1-len(c.answers))...)
	}
	known := &c.answers[slot]
	if known.version != n.version {
		*known = answer{n.version, p.ask(c, of, n, true)}
	}
	if known.rejection != nil {
		return known.rejection
	}
	return p.ask(c, of, n, false)
}

// ask calls the filters of the plugins that are static, or of those that are not.
func (p *plugin) ask(c *cycle, of *pod, n *mirrorNode, static bool) *engine.Rejection {
	for i, w := range p.wrapped {
		r := &c.results[i]
		if w.static != static || r.skip {
			continue
		}
		if r.nodes != nil && !r.nodes.Has(n.info.Node().Name) {
			c.rejected |= 1 << i
			return rejection(w.reason, "")
		}
		if found := w.rejectionOf(w.filter.Filter(background, c.state, of.info.Pod, n.info)); found != nil {
			c.rejected |= 1 << i
			return found
		}
	}
	return nil
}
