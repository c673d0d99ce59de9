package timeline

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fairshare"
)

// usage knows what was last said of the queues.
type usage struct {
	resources []string
	last      map[[2]string]Queue
}

func newUsage(s *cluster.State) usage { return usage{Resources(s), map[[2]string]Queue{}} }

// Resources are what queues are measured by: devices, under each name they are
// asked for by; cores where there are none.
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

// changes are the queues that stand otherwise than when it was last asked.
func (u *usage) changes(s *cluster.State) []Queue {
	var out []Queue
	// What queues are measured by is divided here even where the profile leaves it
	// free for all: use is shown beside a share.
	tree := fairshare.Shares(s.View(), fairshare.Offered(s.View()), fairshare.Settings{Divide: u.resources})
	var walk func(list []*fairshare.Queue)
	walk = func(list []*fairshare.Queue) {
		for _, q := range list {
			for _, name := range u.resources {
				now, counts := stand(q, name)
				key := [2]string{q.Name, name}
				last, known := u.last[key]
				if !counts && !known || known && same(last, now) {
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

// stand is how the queue stands; it counts if there is anything to say.
func stand(q *fairshare.Queue, resource string) (Queue, bool) {
	out := Queue{Queue: q.Name, Resource: resource, Used: thousandths(q.Used.Of(resource))}
	counts := out.Used > 0
	for i := range q.Shares {
		if sh := &q.Shares[i]; sh.Resource == resource {
			out.Share, counts = thousandths(sh.Share()), true
			if sh.Quota >= 0 && sh.Quota != cluster.Unlimited {
				quota := thousandths(sh.Quota)
				out.Quota = &quota
			}
		}
	}
	return out, counts
}

func same(a, b Queue) bool {
	return a.Used == b.Used && a.Share == b.Share && (a.Quota == nil) == (b.Quota == nil) && (a.Quota == nil || *a.Quota == *b.Quota)
}

func thousandths(v int64) float64 { return float64(v) / 1000 }
