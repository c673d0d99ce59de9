package timeline

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// usage finds out for which queues the use has changed since the last frame.
type usage struct {
	resources []string
	last      map[[2]string]Queue
}

func newUsage(s *cluster.State) usage { return usage{Resources(s), map[[2]string]Queue{}} }

// Resources returns the names of the resources that a timeline shows for queues: all
// names under which devices are requested, or cores if no node has devices.
func Resources(s *cluster.State) []string {
	names := map[string]bool{}
	for _, n := range s.Nodes() {
		for i := range n.Devices {
			names[n.Devices[i].Resource] = true
		}
	}
	if len(names) == 0 {
		names[cluster.CPU] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// changes returns the queues with a use, share or quota that changed since the last call.
func (u *usage) changes(s *cluster.State) []Queue {
	var out []Queue
	// The resources are divided here even if the profile does not divide them, because
	// the use is shown together with a share.
	tree := fairshare.Shares(s.View(), fairshare.Offered(s.View()), fairshare.Settings{Divide: u.resources})
	var walk func(list []*fairshare.Queue)
	walk = func(list []*fairshare.Queue) {
		for _, q := range list {
			for _, name := range u.resources {
				now, relevant := queueUse(q, name)
				key := [2]string{q.Name, name}
				last, known := u.last[key]
				if !relevant && !known || known && equal(last, now) {
					continue
				}
				u.last[key] = now
				out = append(out, now)
			}
			walk(q.Children)
		}
	}
	walk(tree.Roots)
	return out
}

// queueUse returns the use of a resource by a queue. It is relevant if the queue
// uses the resource or has a share of it.
func queueUse(q *fairshare.Queue, resource string) (use Queue, relevant bool) {
	out := Queue{Queue: q.Name, Resource: resource, Used: fromThousandths(q.Used.Of(resource))}
	relevant = out.Used > 0
	for i := range q.Shares {
		if sh := &q.Shares[i]; sh.Resource == resource {
			out.Share, relevant = fromThousandths(sh.Share()), true
			if sh.Quota >= 0 && sh.Quota != cluster.Unlimited {
				quota := fromThousandths(sh.Quota)
				out.Quota = &quota
			}
		}
	}
	return out, relevant
}

func equal(a, b Queue) bool {
	return a.Used == b.Used && a.Share == b.Share && (a.Quota == nil) == (b.Quota == nil) && (a.Quota == nil || *a.Quota == *b.Quota)
}

func fromThousandths(v int64) float64 { return float64(v) / 1000 }
