package manifest

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// resourceNotes returns notes about resources and products that no node has, although workloads
// request them or queues have a quota, limit or weight for them. It returns none if there are no
// nodes.
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
				there[cluster.DefaultDeviceResource] = true // queues count MIG slices as fractions of whole devices
			}
		}
	}
	names := slices.Sorted(maps.Keys(there))
	out := absentResources(queues, there, func(name string) bool {
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
	return append(out, deviceNotes(jobs, nodes)...)
}

// deviceNotes returns notes about workloads that allow only products that no node has, or that
// request less than 1 MiB of a device, as a memory without a unit does.
func deviceNotes(jobs []*cluster.Job, nodes []*cluster.Node) []string {
	there := map[string]bool{}
	for _, n := range nodes {
		for i := range n.Devices {
			there[n.Devices[i].Product] = true
		}
	}
	products := slices.Sorted(maps.Keys(there))
	absent, small := map[string]*tally{}, tally{}
	for _, j := range jobs {
		seen := map[string]bool{}
		note := func(t *tally, what string) {
			if !seen[what] {
				seen[what] = true
				t.add(j.ID)
			}
		}
		for i := range j.Alternatives {
			for _, t := range j.Alternatives[i].Tasks {
				need := &t.Shape.Need
				if need.Memory > 0 && need.Memory < 1<<20 || need.SumAtLeast > 0 && need.SumAtLeast < 1<<20 {
					note(&small, "")
				}
				for _, p := range need.Products {
					if !there[p] && !t.Shape.ServesModel() {
						if absent[p] == nil {
							absent[p] = &tally{}
						}
						note(absent[p], p)
					}
				}
			}
		}
	}
	out := small.note(nil, "requesting less than 1 MiB of device memory; a memory without a unit is in bytes, so write 10Gi and not 10", "workload")
	for _, p := range slices.Sorted(maps.Keys(absent)) {
		out = absent[p].note(out, "allowing the product "+phrase.Quote(p)+", which no node has"+phrase.Suggestion(p, products), "workload")
	}
	return out
}

// requested returns the names of the resources that tasks of the job request, in any of
// its alternatives.
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

// productNotes returns notes about products that no node has, although queues have a quota,
// limit or weight for them.
func productNotes(queues []*cluster.Queue, nodes []*cluster.Node) []string {
	there := map[string]bool{}
	for _, n := range nodes {
		for i := range n.Devices {
			there[n.Devices[i].ProductResource] = true
		}
	}
	return absentResources(queues, there, func(name string) bool {
		_, product := cluster.SplitProduct(name)
		return product != ""
	})
}

// absentResources returns notes about names in quotas, limits and weights of queues that are
// not in there. Names for which concerns returns false are left out.
func absentResources(queues []*cluster.Queue, there map[string]bool, concerns func(name string) bool) []string {
	names := slices.Sorted(maps.Keys(there))
	var out []string
	for _, q := range queues {
		missing := map[string]bool{}
		for _, list := range []cluster.Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
			for _, a := range list {
				if concerns(a.Name) && !there[a.Name] {
					missing[a.Name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(missing)) {
			out = append(out, "queue "+q.Name+" has a quota, limit or weight for "+name+", which no node has"+phrase.Suggestion(name, names))
		}
	}
	return out
}
