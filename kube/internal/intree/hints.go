package intree

import (
	"fmt"
	"iter"

	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// hints decides which changes of the Store may cure rejections of plugins in the task form,
// from the events that the in-tree plugins register. State knows most changes: a pod that is
// placed or removed, and a change of the spec of a node, change a node of State, for which the
// engine has a kind of wake-up. For other changes, such as that of a claim, the plugin
// publishes a new number. Plugins in other forms read nothing else of the Store.
type hints struct {
	events    [][]fwk.ClusterEventWithHint // by plugin
	wake      engine.Wake                  // the changes of State that may cure rejections
	published uint64                       // the number to publish; it grows when remembered answers are invalid, or refused jobs must be tried again
}

func newHints(list []*wrapped) (*hints, error) {
	h := &hints{events: make([][]fwk.ClusterEventWithHint, len(list))}
	for i, w := range list {
		registers, ok := w.filter.(fwk.EnqueueExtensions)
		if !ok {
			return nil, fmt.Errorf("plugin %s registers no events", w.name)
		}
		events, err := registers.EventsToRegister(background)
		if err != nil {
			return nil, fmt.Errorf("events of %s: %w", w.name, err)
		}
		h.events[i] = events
		for _, e := range events {
			if e.Event.Resource == fwk.Node || e.Event.Resource == fwk.Pod || e.Event.Resource == fwk.WildCard {
				h.wake |= engine.WakeNodes
			}
		}
	}
	return h, nil
}

// consider counts a change of the Store if it may cure a rejection of one of the cycles,
// and State does not know it. Since all refused jobs are then tried again, all rejections
// are forgotten.
func (h *hints) consider(c change, cycles iter.Seq[*cycle]) {
	events := unknownToState(c)
	if len(events) == 0 {
		return
	}
	for of := range cycles { // the order has no effect on the result
		if of.rejected != 0 && h.mayCure(c, events, of) {
			h.published++
			for other := range cycles {
				other.rejected = 0
			}
			return
		}
	}
}

// unknownToState returns the events of the change that change nothing in State. A change of
// a node that State does not have makes remembered answers invalid: see plugin.readStore.
func unknownToState(c change) []fwk.ClusterEvent {
	switch {
	case c.resource == fwk.Node:
		return nil
	case c.resource == fwk.Pod:
		if c.earlier == nil || c.now == nil {
			return nil // State knows pods by their tasks
		}
		return framework.PodSchedulingPropertiesChange(c.now.(*v1.Pod), c.earlier.(*v1.Pod))
	case c.earlier == nil:
		return []fwk.ClusterEvent{{Resource: c.resource, ActionType: fwk.Add}}
	case c.now == nil:
		return []fwk.ClusterEvent{{Resource: c.resource, ActionType: fwk.Delete}}
	}
	return []fwk.ClusterEvent{{Resource: c.resource, ActionType: fwk.Update}}
}

// mayCure reports whether a plugin that rejected nodes for pods of the kind registers one
// of the events, and its hint does not exclude a cure.
func (h *hints) mayCure(c change, events []fwk.ClusterEvent, of *cycle) bool {
	if c.resource == unregistered {
		return true
	}
	for i := range h.events {
		if of.rejected&(1<<i) == 0 {
			continue
		}
		for _, registered := range h.events[i] {
			if !framework.MatchAnyClusterEvent(registered.Event, events) {
				continue
			}
			if registered.QueueingHintFn == nil {
				return true
			}
			if hint, err := registered.QueueingHintFn(quiet, of.pod, c.earlier, c.now); err != nil || hint == fwk.Queue {
				return true
			}
		}
	}
	return false
}
