package engine

import "github.com/berth-project/berth/cluster"

// These methods register hooks under the names that other schedulers use for them. Each
// calls the method of Hooks that its comment names.

// AddQueueOrderFn is Hooks.AddQueueOrder.
func (s *Session) AddQueueOrderFn(fn QueueOrder) { s.Hooks.AddQueueOrder(fn) }

// AddJobOrderFn is Hooks.AddJobOrder.
func (s *Session) AddJobOrderFn(fn JobOrder) { s.Hooks.AddJobOrder(fn) }

// AddTaskOrderFn is Hooks.AddTaskOrder.
func (s *Session) AddTaskOrderFn(fn TaskOrder) { s.Hooks.AddTaskOrder(fn) }

// AddPrePredicateFn is Hooks.AddPreFilter.
func (s *Session) AddPrePredicateFn(fn PreFilter) { s.Hooks.AddPreFilter(fn) }

// AddPredicateFn is Hooks.AddTaskFilter.
func (s *Session) AddPredicateFn(matters func(*cluster.Task, *cluster.Job) bool, fn TaskFilter) {
	s.Hooks.AddTaskFilter(matters, fn)
}

// AddNodeOrderFn is Hooks.AddTaskScore.
func (s *Session) AddNodeOrderFn(matters func(*cluster.Task, *cluster.Job) bool, fn TaskScore) {
	s.Hooks.AddTaskScore(matters, fn)
}

// AddGpuOrderFn is Hooks.AddDeviceScore.
func (s *Session) AddGpuOrderFn(fn DeviceScore) { s.Hooks.AddDeviceScore(fn) }

// AddReclaimableFn is Hooks.AddReclaimable.
func (s *Session) AddReclaimableFn(fn VictimRule) { s.Hooks.AddReclaimable(fn) }

// AddPreemptableFn is Hooks.AddPreemptable.
func (s *Session) AddPreemptableFn(fn VictimRule) { s.Hooks.AddPreemptable(fn) }

// AddEventHandler is Hooks.AddEventHandler.
func (s *Session) AddEventHandler(h EventHandler) { s.Hooks.AddEventHandler(h) }
