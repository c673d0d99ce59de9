package convert

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
)

// States of a task in a status. An empty state means Running.
const (
	taskRunning   = "Running"
	TaskReleasing = "Releasing"
	taskSucceeded = "Succeeded"
	taskFailed    = "Failed"
)

// EndStatus returns cluster.Succeeded or cluster.Failed if the task has ended, and
// cluster.Pending otherwise.
func EndStatus(p *v1alpha1.TaskPlacement) cluster.Status {
	switch p.State {
	case taskSucceeded:
		return cluster.Succeeded
	case taskFailed:
		return cluster.Failed
	}
	return cluster.Pending
}

// checkPlacement checks one entry of a status. Whether the node exists is not checked.
func checkPlacement(p *v1alpha1.TaskPlacement, at path, r reporter) {
	checkEnum(p.State, []string{taskRunning, TaskReleasing, taskSucceeded, taskFailed}, at.Add("state"), r)
	checkTime(p.Started, at.Add("started"), r)
	if EndStatus(p) != cluster.Pending && len(p.Devices) > 0 {
		r.errorf(at.Add("devices"), "a task in state %s holds no devices; leave them out", p.State)
	}
}
