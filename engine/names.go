package engine

import "github.com/berth-project/berth/cluster"

// These methods register hooks under the names that other schedulers use for them, or under
// former names. Each calls the method of Hooks that its comment names.

// AddQueueOrderFn calls Hooks.AddQueueOrder.
func (s *Session) AddQueueOrderFn(fn QueueOrder) { s.Hooks.AddQueueOrder(fn) }

// AddJobOrderFn calls Hooks.AddJobOrder.
func (s *Session) AddJobOrderFn(fn JobOrder) { s.Hooks.AddJobOrder(fn) }

// AddTaskOrderFn calls Hooks.AddTaskOrder.
func (s *Session) AddTaskOrderFn(fn TaskOrder) { s.Hooks.AddTaskOrder(fn) }

// AddPrePredicateFn calls Hooks.AddPreFilter.
func (s *Session) AddPrePredicateFn(fn PreFilter) { s.Hooks.AddPreFilter(fn) }

// AddPredicateFn calls Hooks.AddTaskFilter.
func (s *Session) AddPredicateFn(matters func(*cluster.Task, *cluster.Job) bool, fn TaskFilter) {
	s.Hooks.AddTaskFilter(matters, fn)
}

// AddNodeOrderFn calls Hooks.AddTaskScore.
func (s *Session) AddNodeOrderFn(matters func(*cluster.Task, *cluster.Job) bool, fn TaskScore) {
	s.Hooks.AddTaskScore(matters, fn)
}

// AddGpuOrderFn calls Hooks.AddDeviceScore.
func (s *Session) AddGpuOrderFn(fn DeviceScore) { s.Hooks.AddDeviceScore(fn) }

// AddReclaimableFn calls Hooks.AddReclaimable.
func (s *Session) AddReclaimableFn(fn VictimRule) { s.Hooks.AddReclaimable(fn) }

// AddPreemptableFn calls Hooks.AddPreemptable.
func (s *Session) AddPreemptableFn(fn VictimRule) { s.Hooks.AddPreemptable(fn) }

// AddEventHandler calls Hooks.AddEventHandler.
func (s *Session) AddEventHandler(h EventHandler) { s.Hooks.AddEventHandler(h) }

// AddMeans calls AddEvictionPurpose.
//
// Deprecated: call AddEvictionPurpose.
func (h *Hooks) AddMeans(p Purpose, why Reason) { h.AddEvictionPurpose(p, why) }
