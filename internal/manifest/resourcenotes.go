package manifest

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// resourceNotes tell of resources that queues have terms for, or that workloads
// request, and that no node has. Without any node that goes without saying.
func resourceNotes(queues []*cluster.Queue, jobs []*cluster.Job, nodes []*cluster.Node) []string {
	if len(nodes) == 0 {
		return nil
	}
	there := map[string]bool{cluster.CPU: true, cluster.Memory: true}
	for _, n := range nodes {
		for i := range n.Resources {
			there[n.Resources[i].Name] = true
		}
		for i := range n.Devices {
			if there[n.Devices[i].Resource] = true; n.Devices[i].Fraction > 0 {
				there[cluster.DefaultDeviceResource] = true // of which slices are parts
			}
		}
	}
	names := slices.Sorted(maps.Keys(there))
	out := absentTerms(queues, there, func(name string) bool {
		_, product := cluster.SplitProduct(name)
		return product == ""
	})
	requests := map[string]*tally{}
	for _, j := range jobs {
		for name := range requested(j) {
			if !there[name] {
				if requests[name] == nil {
					requests[name] = &tally{}
				}
				requests[name].add(j.ID)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		out = requests[name].note(out, "requesting "+name+", which no node has"+phrase.Suggestion(name, names), "workload")
	}
	return out
}

// requested are the names of the resources that tasks of the job request, in any form.
func requested(j *cluster.Job) map[string]bool {
	out := map[string]bool{}
	for i := range j.Alternatives {
		for _, t := range j.Alternatives[i].Tasks {
			for _, a := range t.Shape.Resources {
				if a.Value > 0 {
					out[a.Name] = true
				}
			}
		}
	}
	return out
}
