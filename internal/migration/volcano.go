package migration

import (
	"github.com/berth-project/berth/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	sourceVolcano = "Volcano"
	volcanoRoot   = "root" // the queue above all queues, which Volcano makes itself
)

var volcanoRules = rules{
	"spec.reclaimable":     {says: "Berth evicts preemptible pods only: the pods of the queue must not have berth.dev/preemptible: \"true\"", unless: []string{"true"}},
	"spec.affinity":        {says: "a queue of Berth has no node groups: set a node selector on the pods of the queue"},
	"spec.type":            {says: "it has no counterpart"},
	"spec.extendClusters":  {says: "it has no counterpart: Berth manages one cluster"},
	"spec.dequeueStrategy": {says: "it has no counterpart: a job that cannot be placed does not block the jobs behind it", unless: []string{"traverse"}},
}

// volcanoQueue converts a Queue of scheduling.volcano.sh.
func volcanoQueue(m *migration, o *object) {
	o.takeMeta()
	if o.meta.Name == volcanoRoot {
		o.notef(nil, "the root of the tree has no counterpart: queues without a parent are at the top; bounds of all queues together are not written")
		return
	}
	q := m.addQueue(sourceVolcano, o)
	if q.Spec.Parent = o.text("spec", "parent"); q.Spec.Parent == volcanoRoot {
		q.Spec.Parent = ""
	}
	q.Spec.Priority, _ = take[int32](o, "spec", "priority")
	if w, set := take[resource.Quantity](o, "spec", "weight"); set {
		q.weight = &w
	}
	deserved, _ := take[corev1.ResourceList](o, "spec", "deserved")
	for name, amount := range deserved {
		q.Spec.Quota[name] = v1alpha1.QuotaAmount{Quantity: amount}
	}
	volcanoGuarantee(o, q)
	if limits, set := take[corev1.ResourceList](o, "spec", "capability"); set {
		q.Spec.Limits = limits
	}
	q.lowerToLimits(path{"spec", "deserved"})
	o.annotations("volcano.sh/", "scheduling.volcano.sh/")
	o.rest(metadataRules, volcanoRules)
}

// volcanoGuarantee takes the amounts that are reserved for the queue. Each is at most the
// deserved amount of the same resource, if there is one.
func volcanoGuarantee(o *object, q *queue) {
	at := path{"spec", "guarantee", "resource"}
	list, _ := take[corev1.ResourceList](o, at...)
	for _, name := range sortedNames(list) {
		if have, set := q.Spec.Quota[name]; !set || have.Cmp(list[name]) < 0 {
			q.Spec.Quota[name] = v1alpha1.QuotaAmount{Quantity: list[name]}
		}
	}
	if len(list) > 0 {
		o.notef(at, "the amounts are part of the quota, and idle room is not kept empty for the queue; with tier: Guaranteed, the queue is served before queues of other tiers")
	}
}
