package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

func (c QueuePut) apply(s *State) error {
	switch {
	case c.Queue.Name == "":
		return fmt.Errorf("a queue has no name")
	case c.Queue.Parent == c.Queue.Name:
		return fmt.Errorf("queue %q is its own parent", c.Queue.Name)
	case c.Queue.Parent == DefaultQueue:
		return fmt.Errorf("queue %q: the default queue has no queues below it, because jobs that name no queue are in it", c.Queue.Name)
	}
	if c.Queue.Name == DefaultQueue && c.Queue.Parent != "" {
		return fmt.Errorf("queue %q cannot be below %q: jobs that name no queue are in it", DefaultQueue, c.Queue.Parent)
	}
	old := s.tree.byName[c.Queue.Name]
	if old != nil && stale(c.Revision, old.revision) {
		return nil
	}
	q := c.Queue
	q.OverQuotaWeight, q.Quota, q.Limits, q.Past = slices.Clone(q.OverQuotaWeight), slices.Clone(q.Quota), slices.Clone(q.Limits), slices.Clone(q.Past)
	q.Used, q.UsedByFirm, q.children, q.quotas, q.loose, q.current, q.revision = nil, nil, nil, nil, false, currentUse{since: s.tree.now}, c.Revision
	q.Tier = cmp.Or(q.Tier, TierStandard)
	switch {
	case q.Weightless:
		q.Weight = 0
	case q.Weight == 0:
		q.Weight = 1
	}
	if old != nil {
		if q.Past, q.current = old.Past, old.current; old.sameTerms(&q) {
			old.revision = max(old.revision, c.Revision)
			return nil
		}
	}
	s.accounts.replaceQueue(old, &q)
	return nil
}

func (q *Queue) sameTerms(o *Queue) bool {
	return q.Parent == o.Parent && q.Tier == o.Tier && q.Priority == o.Priority && q.Created == o.Created && q.Weight == o.Weight && q.Weightless == o.Weightless &&
		q.MinRunBeforePreempt == o.MinRunBeforePreempt && q.MinRunBeforeReclaim == o.MinRunBeforeReclaim &&
		slices.Equal(q.OverQuotaWeight, o.OverQuotaWeight) && slices.Equal(q.Quota, o.Quota) && slices.Equal(q.Limits, o.Limits)
}

func (c QueueGone) apply(s *State) error {
	if c.Name == DefaultQueue {
		return QueuePut{Queue: Queue{Name: DefaultQueue}}.apply(s)
	}
	if old := s.tree.byName[c.Name]; old != nil {
		s.accounts.replaceQueue(old, nil)
	}
	return nil
}

func (c BudgetPut) apply(s *State) error {
	if c.Budget.Name == "" {
		return fmt.Errorf("a budget has no name")
	}
	b := c.Budget
	i, found := slices.BinarySearchFunc(s.tree.budgets, &b, (*Budget).compare)
	if found && s.tree.budgets[i].equal(&b) {
		return nil
	}
	list := slices.Clone(s.tree.budgets)
	if found {
		list[i] = &b
	} else {
		list = slices.Insert(list, i, &b)
	}
	s.tree.setBudgets(list)
	return nil
}

func (c BudgetGone) apply(s *State) error {
	i, found := slices.BinarySearchFunc(s.tree.budgets, &Budget{Namespace: c.Namespace, Name: c.Name}, (*Budget).compare)
	if found {
		s.tree.setBudgets(slices.Delete(slices.Clone(s.tree.budgets), i, i+1))
	}
	return nil
}

func (b *Budget) equal(o *Budget) bool {
	return b.Bound == o.Bound && b.Percent == o.Percent && b.Unavailable == o.Unavailable && b.Selector.equal(o.Selector)
}
