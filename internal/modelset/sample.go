package modelset

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Sample keeps a State that has a few nodes of each node group, without tasks, and all queues. A
// replica that is placed there could be placed in the whole cluster if its nodes were idle, so that
// it is not refused for ever. The answer takes a small part of the time. The zero value is ready to
// use. It belongs to one State.
type Sample struct {
	engine *engine.Engine
	state  *cluster.State
	fleet  Fleet
	// When the sample was taken.
	nodes  Fleet
	queues uint64
}

const (
	// sampled is how many nodes of each group are in a sample.
	sampled = 16
	// worthwhile is how many nodes a cluster has at least of which a sample is taken.
	worthwhile = 200
)

// Of returns the sample of the cluster; nil if the cluster is small.
func (s *Sample) Of(c *Cluster) (*Cluster, error) {
	all := c.State.Nodes()
	if len(all) < worthwhile {
		return nil, nil
	}
	if version := c.State.View().Recent().QueueSpecsVersion(); s.state == nil || s.nodes.changed(c.State) || s.queues != version {
		if err := s.take(c, all); err != nil {
			return nil, err
		}
		s.nodes.version, s.queues = c.State.Version(), version
	}
	out := *c
	out.Engine, out.State, out.Fleet = s.engine, s.state, &s.fleet
	return &out, nil
}

// take takes the sample.
func (s *Sample) take(c *Cluster, all []*cluster.Node) (err error) {
	if s.engine, err = c.Engine.Another(); err != nil {
		return err
	}
	s.state, s.fleet = cluster.NewState(), Fleet{}
	for _, q := range c.State.Queues() {
		if err := s.state.Apply(cluster.QueuePut{Queue: *q}); err != nil {
			return err
		}
	}
	without := slices.DeleteFunc(slices.Clone(all), func(n *cluster.Node) bool { return len(n.Devices) > 0 })
	lists := [][]*cluster.Node{without}
	for _, g := range c.State.View().Groups() {
		lists = append(lists, g.Nodes)
	}
	for _, list := range lists {
		for i := range min(sampled, len(list)) { // from all parts of the list, because names often say what nodes are for
			if err := s.state.Apply(cluster.NodePut{Node: *list[i*len(list)/min(sampled, len(list))]}); err != nil {
				return err
			}
		}
	}
	return nil
}
