package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Queue is whose turn it is and how much they may use. Queues form a tree; jobs
// are in its leaves.
type Queue struct {
	Name     string
	Parent   string // "" for a queue at the top
	Tier     Tier
	Priority int32
	Created  int64
	// Weight divides what is left over between siblings, for every resource
	// that OverQuotaWeight does not name.
	Weight          int64
	OverQuotaWeight Resources
	// Quota is what the queue deserves before anybody gets more than that. A
	// resource that is absent has no quota of its own.
	Quota Resources
	// Limits bound what the queue's tasks hold together; a resource that is
	// absent is not limited, one with limit 0 is not theirs to use.
	Limits Resources
	// MinRunBeforePreempt and MinRunBeforeReclaim protect its tasks for so long
	// after they have started, in nanoseconds; 0: as the queue above says.
	MinRunBeforePreempt, MinRunBeforeReclaim int64
	// Past is what the queue used before, for those who let that count.
	Past []Usage

	// Used is what its tasks and those of the queues below it hold, sorted by
	// name; devices in thousandths, under their resource name and under those of
	// products that some queue has terms for.
	Used Resources
	// Firm is the part of Used that jobs hold which are not preemptible.
	Firm Resources

	slot     int
	children []string  // names of the queues below it, in order
	deserved Resources // see Deserved
}

// Usage is what a queue held on average from one time to another, in nanoseconds.
type Usage struct {
	From, To  int64
	Resources Resources
}

// DefaultQueue holds the jobs that name no queue. It has no limits.
const DefaultQueue = "default"

// Leaf reports whether the queue may have jobs: none is below it.
func (q *Queue) Leaf() bool { return len(q.children) == 0 }

// Slot is the queue's number in its State. New terms keep it.
func (q *Queue) Slot() int { return q.slot }

// WeightOf is the queue's weight for what is left over of the resource.
func (q *Queue) WeightOf(resource string) int64 {
	if w := q.OverQuotaWeight.Of(resource); w > 0 {
		return w
	}
	return max(1, q.Weight)
}

// SetQueue adds the queue, or gives a known one new terms; what it uses stays,
// and its ancestors' books follow it to a new parent. It changes nothing if the
// queue would not stand in a tree whose jobs are all in leaves.
func (s *State) SetQueue(q *Queue) error {
	old := s.queues[q.Name]
	if err := s.checkQueue(q, old); err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	if q.Tier == "" {
		q.Tier = TierStandard
	}
	if q.Weight == 0 {
		q.Weight = 1
	}
	s.replaceQueue(old, q)
	s.cold(func() { s.replaceQueue(q, old) })
	return nil
}

// replaceQueue puts the queue in the place of the old one. Either may be nil.
func (s *State) replaceQueue(old, q *Queue) {
	s.revision++
	if q != nil {
		q.Used, q.Firm, q.children = nil, nil, nil
		if old != nil {
			q.Used, q.Firm, q.children = old.Used, old.Firm, old.children
		}
	}
	s.seatQueue(q, old)
	if old == nil || q == nil || old.Parent != q.Parent {
		s.hang(old, -1)
		s.hang(q, +1)
	}
	if q != nil {
		s.sumQuotas(q)
	}
	s.countTerms(old, -1)
	s.countTerms(q, +1)
	s.nameAgain()
}

// hang puts the queue under its parent (sign +1) or takes it away (-1), with all that it uses.
func (s *State) hang(q *Queue, sign int) {
	if q == nil {
		return
	}
	parent := s.Parent(q)
	if parent == nil {
		return
	}
	if i, _ := slices.BinarySearch(parent.children, q.Name); sign > 0 {
		parent.children = slices.Insert(parent.children, i, q.Name)
	} else {
		parent.children = slices.Delete(parent.children, i, i+1)
	}
	s.sumQuotas(parent)
	for p := parent; p != nil; p = s.Parent(p) {
		s.recentQueues.touch(p.slot)
		for _, a := range q.Used {
			p.Used = p.Used.plus(a.Name, int64(sign)*a.Value)
		}
		for _, a := range q.Firm {
			p.Firm = p.Firm.plus(a.Name, int64(sign)*a.Value)
		}
	}
}

func (s *State) checkQueue(q, old *Queue) error {
	if old == q {
		return fmt.Errorf("it is the one in the books; change a copy")
	}
	if q.Parent == "" || old != nil && old.Parent == q.Parent {
		return nil
	}
	parent := s.queues[q.Parent]
	switch {
	case parent == nil:
		return fmt.Errorf("no parent %q", q.Parent)
	case q.Parent == DefaultQueue:
		return fmt.Errorf("the default queue has no queues below it: jobs that name no queue are there")
	}
	for p := parent; p != nil; p = s.Parent(p) {
		if p.Name == q.Name {
			return fmt.Errorf("it would be above itself, by way of %q", q.Parent)
		}
	}
	if parent.Leaf() {
		for _, j := range s.jobs {
			if j.Queue == q.Parent {
				return fmt.Errorf("its parent %q has jobs; jobs are in leaves", q.Parent)
			}
		}
	}
	return nil
}

// Queue finds a queue by name, nil if there is none.
func (s *State) Queue(name string) *Queue { return s.queues[name] }

// Parent is the queue above, nil at the top.
func (s *State) Parent(q *Queue) *Queue {
	if q.Parent == "" {
		return nil
	}
	return s.queues[q.Parent]
}

// Queues are all queues, by name.
func (s *State) Queues() []*Queue {
	out := make([]*Queue, 0, len(s.queues))
	for _, q := range s.queues {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b *Queue) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// charge books v on the queue of the task and on all above it.
func (s *State) charge(t *Task, name string, v int64) {
	for q := s.queues[t.Job.Queue]; q != nil; q = s.Parent(q) {
		s.recentQueues.touch(q.slot)
		q.Used = q.Used.plus(name, v)
		if !t.Job.Preemptible {
			q.Firm = q.Firm.plus(name, v)
		}
	}
}

// plus adds v in place; what falls back to 0 leaves no trace.
func (r Resources) plus(name string, v int64) Resources {
	if v == 0 {
		return r
	}
	for i := range r {
		if r[i].Name == name {
			if r[i].Value += v; r[i].Value == 0 {
				return slices.Delete(r, i, i+1)
			}
			return r
		}
	}
	i, _ := slices.BinarySearchFunc(r, name, func(x Amount, n string) int { return strings.Compare(x.Name, n) })
	return slices.Insert(r, i, Amount{name, v})
}
