package migration

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gpu is the resource of GPUs in quotas of KAI-Scheduler, which does not name it.
const gpu = "nvidia.com/gpu"

// queue is a queue of Berth and what it is made of.
type queue struct {
	*v1alpha1.Queue
	document *Document
	source   string                       // the scheduler of the object
	weight   *resource.Quantity           // the weight before it is rounded; nil: none is set
	weights  map[string]resource.Quantity // the weights of single resources
	ranked   bool                         // the object sets a priority
}

// addQueue adds a queue with the name and the labels of the object.
func (m *migration) addQueue(source string, o *object) *queue {
	q := &queue{source: source, Queue: &v1alpha1.Queue{
		TypeMeta:   typeMeta(v1alpha1.KindQueue),
		ObjectMeta: metav1.ObjectMeta{Name: o.meta.Name, Labels: o.meta.Labels},
		Spec:       v1alpha1.QueueSpec{Quota: map[corev1.ResourceName]v1alpha1.QuotaAmount{}, Limits: corev1.ResourceList{}},
	}}
	q.document = &Document{Object: q.Queue, id: "queue/" + phrase.Clip(o.meta.Name), from: o}
	m.queues = append(m.queues, q)
	return q
}

// lowerToLimits reduces quotas above a limit, which Berth refuses.
func (q *queue) lowerToLimits(at path) {
	for _, name := range sortedNames(q.Spec.Quota) {
		limit, limited := q.Spec.Limits[name]
		if have := q.Spec.Quota[name]; limited && !have.Unlimited && have.Cmp(limit) > 0 {
			q.Spec.Quota[name] = v1alpha1.QuotaAmount{Quantity: limit}
			q.document.from.notef(at, "the amount of %s for %s is above the limit of %s, and is lowered to it", have.String(), name, limit.String())
		}
	}
}

func sortedNames[T any](list map[corev1.ResourceName]T) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// finishQueues completes the tree of queues.
func (m *migration) finishQueues() {
	for _, source := range []string{sourceKAI, sourceVolcano, sourceKueue} {
		m.setWeights(source)
	}
	m.rankAll()
	for _, q := range m.queues {
		if len(q.Spec.Quota) == 0 {
			q.Spec.Quota = nil
		}
		if len(q.Spec.Limits) == 0 {
			q.Spec.Limits = nil
		}
	}
	m.addParents()
	for _, q := range m.queues {
		q.checkAlone()
	}
	m.checkTree()
	m.sortQueues()
}

// checkAlone checks the queue without its parent.
func (q *queue) checkAlone() {
	alone := *q.Queue
	alone.Spec.Parent = ""
	d := Document{Object: &alone, Problem: q.document.Problem}
	d.check()
	q.document.Problem = d.Problem
}

// addParents adds queues that are named as a parent and are not in the input. The queue default, which
// holds the jobs that name no queue, is neither below another queue nor above one.
func (m *migration) addParents() {
	there := map[string]bool{}
	for _, q := range m.queues {
		there[q.Name] = true
	}
	for _, q := range slices.Clone(m.queues) {
		parent := q.Spec.Parent
		switch {
		case parent != "" && q.Name == cluster.DefaultQueue:
			q.Spec.Parent = ""
			q.document.from.notef(nil, "the queue %s cannot be below another queue in Berth, because it holds the jobs that name no queue; it is written without a parent", q.Name)
		case parent == "" || there[parent] && parent != cluster.DefaultQueue:
		case parent == cluster.DefaultQueue:
			q.Spec.Parent = ""
			q.document.from.notef(nil, "the queue %s cannot be a parent in Berth, because it holds the jobs that name no queue; the queue is written without a parent", parent)
		default:
			there[parent] = true
			from := *q.document.from
			from.meta = metav1.ObjectMeta{Name: parent}
			m.addQueue(q.source, &from).Spec = v1alpha1.QueueSpec{}
			q.document.from.notef(nil, "the queue %s is not in the input; it is written without a quota and without limits", phrase.Quote(parent))
		}
	}
}

// maxDepth is the largest depth of a tree of queues.
const maxDepth = 16

// checkTree sets the problem of queues that are above themselves or nested too deep, and of queues
// below a queue with a problem.
func (m *migration) checkTree() {
	byName := map[string]*queue{}
	for _, q := range m.queues {
		if byName[q.Name] == nil {
			byName[q.Name] = q
		}
	}
	for _, q := range m.queues {
		depth := 1
		for above := byName[q.Spec.Parent]; above != nil && q.document.Problem == ""; above = byName[above.Spec.Parent] {
			if depth++; depth > maxDepth {
				q.document.Problem = fmt.Sprintf("the queue is above itself, or more than %d queues deep; name another parent", maxDepth)
			}
		}
	}
	for range maxDepth {
		for _, q := range m.queues {
			above := byName[q.Spec.Parent]
			if q.document.Problem == "" && above != nil && above.document.Problem != "" {
				q.document.Problem = fmt.Sprintf("the queue above it, %s, is incomplete", phrase.Quote(above.Name))
			}
		}
	}
}

// sortQueues sorts the queues so that each follows its parent. Otherwise the order is that of the
// input.
func (m *migration) sortQueues() {
	below := map[string][]*queue{}
	names := map[string]bool{}
	for _, q := range m.queues {
		names[q.Name] = true
	}
	var out []*queue
	for _, q := range m.queues {
		if q.document.Problem != "" || !names[q.Spec.Parent] {
			out = append(out, q)
		} else {
			below[q.Spec.Parent] = append(below[q.Spec.Parent], q)
		}
	}
	for i := 0; i < len(out); i++ {
		out = append(out, below[out[i].Name]...)
		delete(below, out[i].Name)
	}
	m.queues = out
}

// rankAll sets the priority that KAI-Scheduler gives queues without one, if any queue of it has one.
func (m *migration) rankAll() {
	ranked := slices.ContainsFunc(m.queues, func(q *queue) bool { return q.source == sourceKAI && q.ranked })
	for _, q := range m.queues {
		if ranked && q.source == sourceKAI && !q.ranked {
			q.Spec.Priority = kaiPriority
		}
	}
}

// weightUnit is the factor of weights if one of them is not a whole number.
const weightUnit = 1000

// setWeights sets the weights of the queues of a scheduler. Berth has whole weights: if any is a
// fraction, all are multiplied by 1000.
func (m *migration) setWeights(source string) {
	var queues []*queue
	unit := int64(1)
	for _, q := range m.queues {
		if q.source != source {
			continue
		}
		queues = append(queues, q)
		if q.weight != nil && isFraction(*q.weight) {
			unit = weightUnit
		}
		for _, w := range q.weights {
			if isFraction(w) {
				unit = weightUnit
			}
		}
	}
	for _, q := range queues {
		if w := weightOf(q.weight, unit); w != 1 {
			q.Spec.Weight = &w
		}
		for name, amount := range q.weights {
			if w := weightOf(&amount, unit); w != unit {
				if q.Spec.OverQuotaWeight == nil {
					q.Spec.OverQuotaWeight = map[string]int64{}
				}
				q.Spec.OverQuotaWeight[name] = w
			}
		}
	}
	if unit > 1 {
		m.notes = append(m.notes, fmt.Sprintf("the weights of the queues of %s are multiplied by %d, because Berth has whole weights", source, unit))
	}
}

// isFraction reports whether the amount is not a whole number.
func isFraction(q resource.Quantity) bool { return q.CmpInt64(q.Value()) != 0 }

// weightOf returns a weight in the unit. A weight above 0 stays above 0. The weight of a queue
// without one is 1.
func weightOf(q *resource.Quantity, unit int64) int64 {
	switch {
	case q == nil:
		return unit
	case unit == 1 || q.CmpInt64(1<<40) > 0: // a weight that is too large is reported as it is
		return q.Value()
	}
	return q.MilliValue()
}
