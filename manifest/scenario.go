package manifest

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
)

// checkExpectation reports expectations that nothing could ever disappoint.
func checkExpectation(e *v1alpha1.Expectation, r reporter) {
	at := path{"expect"}
	checks := len(e.Placements) + len(e.Devices) + len(e.Groups) + len(e.Pending) + len(e.Refusals) + len(e.Scores)
	if checks == 0 && e.Evictions == nil {
		r.errorf(at, "the scenario expects nothing, so it could never fail; say what should come of it, such as placements: {job/train/worker-0: gpu-1}")
	}
	for _, id := range slices.Sorted(maps.Keys(e.Placements)) {
		if e.Placements[id] == "" {
			r.errorf(at.add("placements", id), "say the node that it goes to, or pending")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Groups)) {
		if e.Groups[id] == "" {
			r.errorf(at.add("groups", id), "say the group that is chosen, such as NVIDIA-L4 x 8")
		}
	}
	for i, id := range e.Pending {
		if id == "" {
			r.errorf(at.add("pending", i), "say which workload, such as job/train")
		}
	}
	for i := range e.Refusals {
		if e.Refusals[i].Workload == "" {
			r.errorf(at.add("refusals", i), "say which workload, such as workload: job/train")
		}
	}
	for i, id := range e.Evictions {
		if id == "" {
			r.errorf(at.add("evictions", i), "say which task, such as job/train/worker-0")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Scores)) {
		nodes := e.Scores[id]
		if len(nodes) == 0 {
			r.errorf(at.add("scores", id), "say the node and the plugin, such as {gpu-1: {NodeResourcesFit: 50}}")
		}
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			if len(nodes[node]) == 0 {
				r.errorf(at.add("scores", id, node), "say the plugin, such as {NodeResourcesFit: 50}")
			}
		}
	}
}
