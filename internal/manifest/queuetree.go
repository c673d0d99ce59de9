package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

// maxQueueDepth is the largest depth of the tree of queues. Each placement counts in the
// queue and in all queues above it.
const maxQueueDepth = 16

// queueTree is the tree of queues, by name.
type queueTree struct {
	names   []string // of all queues and the default queue, sorted
	parents map[string]string
	below   map[string][]string // sorted
}

func (b *Bundle) queueTree() *queueTree {
	t := &queueTree{parents: map[string]string{cluster.DefaultQueue: ""}, below: map[string][]string{}}
	for _, q := range b.Queues {
		t.parents[q.Name] = q.Spec.Parent
	}
	t.names = slices.Sorted(maps.Keys(t.parents))
	for _, name := range t.names {
		if p := t.parents[name]; p != "" {
			t.below[p] = append(t.below[p], name)
		}
	}
	return t
}

func (t *queueTree) has(name string) bool {
	_, ok := t.parents[name]
	return ok
}

// check reports queues with a parent that does not exist or cannot be a parent.
func (t *queueTree) check(b *Bundle, errs *Errors) {
	for _, o := range b.Queues {
		r, at, parent := b.reporter(o, errs), path{"spec", "parent"}, o.Spec.Parent
		switch {
		case parent == "":
		case !t.has(parent):
			r.errorf(at, "%s", noQueue(parent, t.names))
		case parent == cluster.DefaultQueue:
			r.errorf(at, "queue %s cannot be a parent: it holds the jobs that name no queue; name another parent", parent)
		default:
			t.checkAncestors(o, r)
		}
	}
}

// checkAncestors reports a queue that is nested too deep, and a cycle. A cycle is reported
// once, for the queue in it with the first name.
func (t *queueTree) checkAncestors(o *v1alpha1.Queue, r reporter) {
	at := path{"spec", "parent"}
	chain := []string{o.Name}
	for name := t.parents[o.Name]; name != ""; name = t.parents[name] {
		if name == o.Name {
			if slices.Min(chain) == o.Name {
				r.errorf(at, "the queue is above itself (%s); one of them needs another parent", strings.Join(append(chain, name), " → "))
			}
			return
		}
		if slices.Contains(chain, name) {
			return // the queue is below a cycle, which is reported for a queue in it
		}
		if chain = append(chain, name); len(chain) > maxQueueDepth {
			r.errorf(at, "queues may be nested %d deep at most, and this one is deeper", maxQueueDepth)
			return
		}
	}
}

// scavengers returns the queues of the Scavenger tier and the queues below these, by name,
// each with the nearest queue of the tier.
func (b *Bundle) scavengers(t *queueTree) map[string]string {
	tier := map[string]bool{}
	for _, q := range b.Queues {
		tier[q.Name] = q.Spec.Tier == string(cluster.TierScavenger)
	}
	out := map[string]string{}
	for _, name := range t.names {
		for above, steps := name, 0; above != "" && steps <= maxQueueDepth; above, steps = t.parents[above], steps+1 {
			if tier[above] {
				out[name] = above
				break
			}
		}
	}
	return out
}

// checkLeaf reports a workload in a queue that does not exist or has queues below it.
func (t *queueTree) checkLeaf(name string, at path, r reporter) {
	if name == "" {
		return
	}
	if !t.has(name) {
		r.errorf(at, "%s", noQueue(name, t.names))
	} else if below := t.below[name]; len(below) > 0 {
		r.errorf(at, "queue %s has queues below it, and workloads belong in these: use %s", phrase.Quote(name), phrase.Either(below[:min(len(below), 5)]))
	}
}

// topDown sorts queues so that each follows its parent.
func topDown(queues []*cluster.Queue) []*cluster.Queue {
	byName := map[string]*cluster.Queue{}
	for _, q := range queues {
		byName[q.Name] = q
	}
	depth := func(q *cluster.Queue) int {
		n := 0
		for q = byName[q.Parent]; q != nil; q = byName[q.Parent] {
			n++
		}
		return n
	}
	out := slices.Clone(queues)
	slices.SortStableFunc(out, func(a, b *cluster.Queue) int { return depth(a) - depth(b) })
	return out
}

// quotaNotes returns notes about queues below one queue with quotas that add up to more
// than its own. This is not an error: when all of them request their quotas, these are
// reduced in proportion.
func quotaNotes(queues []*cluster.Queue) []string {
	sums := map[string]cluster.Resources{}
	for _, q := range queues {
		for _, a := range q.Quota {
			sum, ok := cluster.AddOverflow(sums[q.Parent].Of(a.Name), a.Value)
			if !ok {
				sum = cluster.Unlimited
			}
			sums[q.Parent] = sums[q.Parent].With(a.Name, sum)
		}
	}
	var out []string
	for _, q := range queues {
		for _, a := range q.Quota {
			if sums[q.Name].Of(a.Name) > a.Value {
				out = append(out, fmt.Sprintf("the quotas of the queues below queue %s add up to more %s than its own quota; if all of them request theirs, each gets less", q.Name, a.Name))
			}
		}
	}
	return out
}
