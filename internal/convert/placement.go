package convert

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
)

// The states of a placement; none is Running.
const (
	taskRunning   = "Running"
	TaskReleasing = "Releasing"
	taskSucceeded = "Succeeded"
	taskFailed    = "Failed"
)

// Outcome is how the task ended; Pending where it has not.
func Outcome(p *v1alpha1.TaskPlacement) cluster.Status {
	switch p.State {
	case taskSucceeded:
		return cluster.Succeeded
	case taskFailed:
		return cluster.Failed
	}
	return cluster.Pending
}

// checkPlacement reports what is wrong with an entry of a status by itself.
func checkPlacement(p *v1alpha1.TaskPlacement, at path, r reporter) {
	checkEnum(p.State, []string{taskRunning, TaskReleasing, taskSucceeded, taskFailed}, at.Add("state"), r)
	checkTime(p.Started, at.Add("started"), r)
	if Outcome(p) != cluster.Pending && len(p.Devices) > 0 {
		r.errorf(at.Add("devices"), "a task in state %s holds no devices; leave them out", p.State)
	}
}
