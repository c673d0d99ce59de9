// Package domainscorer prefers nodes of domains that are broken already, so that whole domains remain
// for gangs. A domain is the nodes with one value of a label: those of one NVLink domain that spans
// nodes, or of one rack. It is whole while all its devices are idle.
//
// The score of a node is the part of its domain that is not idle:
//
//	4 × (nodes − idle nodes) ÷ nodes
//
// Only nodes with devices count. A node that is in no domain has 4, because a task breaks nothing
// there. The score applies to all tasks that request devices. If a gang requires one domain, all nodes
// that it may use have the same score, and the engine has chosen the domain with the least room to
// spare.
//
// The plugin never rejects a node. It gives no score for a label that no node has.
//
//	plugins:
//	- name: DomainScorer
//	  arguments: {levels: [nvidia.com/gpu.clique, topology.example.com/rack]}
package domainscorer

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "DomainScorer"

// most is the score of a node of which no other node of the domain is idle.
const most = 4

// maxLevels bounds how many levels are scored.
const maxLevels = 4

// Arguments are the plugin's arguments.
type Arguments struct {
	// Levels lists the labels of nodes whose values name domains, at most 4. The default is
	// nvidia.com/gpu.clique, the NVLink domain of all devices of a node. If the value of a label
	// has many nodes, such as a zone, each decision takes longer.
	Levels []string `json:"levels"`
}

// New builds the plugin.
func New(a engine.Arguments) (engine.Plugin, error) {
	var in Arguments
	if err := a.Decode(&in); err != nil {
		return nil, err
	}
	if in.Levels == nil {
		in.Levels = []string{cluster.LabelClique}
	}
	if len(in.Levels) > maxLevels {
		return nil, fmt.Errorf("levels: want at most %d labels, have %d", maxLevels, len(in.Levels))
	}
	for i, label := range in.Levels {
		if label == "" || slices.Contains(in.Levels[:i], label) {
			return nil, fmt.Errorf("levels: want labels that differ and are not empty, have %q", label)
		}
	}
	p := &plugin{levels: in.Levels, labelled: make([]int, len(in.Levels)), scored: make([]bool, len(in.Levels))}
	p.begin, p.visit = p.forget, p.read
	return p, nil
}

// plugin counts which nodes have the labels, so that it costs nothing in clusters without domains.
type plugin struct {
	levels   []string
	view     cluster.View
	since    cluster.Since
	specs    []uint64 // by slot: the version of the spec that was read; 0: there is no node
	has      []uint8  // by slot: which of the labels the node has, one bit each
	labelled []int    // by level: how many nodes have the label
	scored   []bool   // by level: whether a score is registered
	begin    func()   // the functions with which nodes are read, kept to save allocations
	visit    func(slot int)
}

func (*plugin) Name() string { return Name }

// OnSessionOpen registers a score for each label that a node has.
func (p *plugin) OnSessionOpen(s *engine.Session) {
	p.Reopen(s)
	for i, label := range p.levels {
		if p.scored[i] = p.labelled[i] > 0; p.scored[i] {
			engine.AddDomainScore(s.Hooks, label, matters, score)
		}
	}
}

// Reopen reads the nodes that have changed. It returns false if the first node with a label was added
// or the last one removed.
func (p *plugin) Reopen(s *engine.Session) bool {
	p.view = s.View
	p.since.Nodes(s.View, p.begin, p.visit)
	for i, scored := range p.scored {
		if scored != (p.labelled[i] > 0) {
			return false
		}
	}
	return true
}

func (p *plugin) forget() {
	p.specs, p.has = p.specs[:0], p.has[:0]
	clear(p.labelled)
}

// read takes in the labels of the node in the slot.
func (p *plugin) read(slot int) {
	for slot >= len(p.specs) {
		p.specs, p.has = append(p.specs, 0), append(p.has, 0)
	}
	n := p.view.At(slot)
	spec := uint64(0)
	if n != nil {
		spec = n.SpecVersion()
	}
	if p.specs[slot] == spec {
		return
	}
	p.specs[slot] = spec
	for i, label := range p.levels {
		bit := uint8(1) << i
		if p.has[slot]&bit != 0 {
			p.labelled[i]--
			p.has[slot] &^= bit
		}
		if n == nil {
			continue
		}
		if _, ok := n.Labels[label]; ok {
			p.labelled[i]++
			p.has[slot] |= bit
		}
	}
}

func matters(s *cluster.Shape) bool { return !s.Need.None() }

func score(_ *cluster.Shape, _ *cluster.Node, d engine.Domain) float64 {
	if d.Nodes == 0 {
		return most
	}
	return most * float64(d.Nodes-d.Idle) / float64(d.Nodes)
}
