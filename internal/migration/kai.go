package migration

import (
	"github.com/berth-project/berth/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	sourceKAI   = "KAI-Scheduler"
	kaiPriority = 100 // of a queue that sets none
)

// kaiResources are the resources of a queue, the names of Kubernetes for them, and the power of ten by
// which amounts are multiplied: CPUs are in thousandths, and memory is in megabytes.
var kaiResources = []struct {
	field, name string
	power       int
}{{"gpu", gpu, 0}, {"cpu", "cpu", -3}, {"memory", "memory", 6}}

var kaiRules = rules{
	"spec.displayName": {says: "it has no counterpart: the name of the queue is shown"},
}

// kaiQueue converts a Queue of scheduling.run.ai.
func kaiQueue(m *migration, o *object) {
	o.takeMeta()
	q := m.addQueue(sourceKAI, o)
	q.Spec.Parent = o.text("spec", "parentQueue")
	q.Spec.Priority, q.ranked = take[int32](o, "spec", "priority")
	q.weights = map[string]resource.Quantity{}
	for _, r := range kaiResources {
		kaiAmounts(o, q, r.field, r.name, r.power)
	}
	q.lowerToLimits(path{"spec", "resources"})
	kaiRunTime(o, q)
	o.annotations("kai.scheduler/", "runai/", "run.ai/")
	o.rest(metadataRules, kaiRules)
}

// kaiAmounts takes the quota, the limit and the weight of one resource.
func kaiAmounts(o *object, q *queue, field, name string, power int) {
	at := path{"spec", "resources", field}
	if o.node(at) == nil {
		o.notef(at, "it is missing, which KAI-Scheduler reads as a limit of 0; the queue is written without a quota and a limit for %s", name)
		return
	}
	o.touch(at)
	quota, _ := take[resource.Quantity](o, at.Add("quota")...)
	limit, limited := take[resource.Quantity](o, at.Add("limit")...)
	weight, _ := take[resource.Quantity](o, at.Add("overQuotaWeight")...)
	amount := v1alpha1.QuotaAmount{Quantity: shifted(quota, power)}
	if isUnlimited(quota) {
		amount = v1alpha1.QuotaAmount{Unlimited: true}
	} else {
		q.weights[name] = weight
	}
	q.Spec.Quota[corev1.ResourceName(name)] = amount
	switch {
	case !limited:
		o.notef(at.Add("limit"), "it is missing, which KAI-Scheduler reads as 0; the queue is written without a limit for %s", name)
	case !isUnlimited(limit):
		q.Spec.Limits[corev1.ResourceName(name)] = shifted(limit, power)
	}
}

// isUnlimited reports whether the amount is -1, which means no bound.
func isUnlimited(q resource.Quantity) bool { return q.CmpInt64(-1) == 0 }

// shifted returns the amount times a power of ten.
func shifted(q resource.Quantity, power int) resource.Quantity {
	if power == 0 {
		return q
	}
	d := q.DeepCopy()
	dec := d.AsDec()
	dec.SetScale(minus(dec.Scale(), power))
	return *resource.NewDecimalQuantity(*dec, resource.DecimalSI)
}

// minus returns a scale of a decimal that is less by n. The type of scales is of a package that is
// not imported.
func minus[S ~int32](scale S, n int) S { return scale - S(n) }

// kaiRunTime takes how long jobs are protected.
func kaiRunTime(o *object, q *queue) {
	times := v1alpha1.MinRunTime{}
	for _, x := range []struct {
		field string
		into  **metav1.Duration
	}{{"preemptMinRuntime", &times.BeforePreempt}, {"reclaimMinRuntime", &times.BeforeReclaim}} {
		d, set := take[metav1.Duration](o, "spec", x.field)
		switch {
		case set && d.Duration > 0:
			*x.into = &d
			q.Spec.MinRunTime = &times
		case set:
			o.notef(path{"spec", x.field}, "Berth has no minimum of 0, and the queue above decides; set the time of that queue, or one of 1ns here")
		}
	}
}
