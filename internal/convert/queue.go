package convert

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue converts a queue. Quotas and limits of devices are in thousandths of a device,
// as State counts them. If env.DeviceResources is nil, the queue is only checked, and the
// result must not be used (see Environment).
func Queue(o *v1alpha1.Queue, env *Environment) (*cluster.Queue, Notes) {
	var notes Notes
	r := reporter{&notes}
	spec := path{"spec"}
	checkName(o.Name, "queue", r)
	q := &cluster.Queue{Name: o.Name, Parent: o.Spec.Parent, Tier: cluster.Tier(o.Spec.Tier), Priority: o.Spec.Priority, Created: created(&o.ObjectMeta), Weight: 1}
	if o.Spec.Tier == "BestEffort" {
		r.errorf(spec.Add("tier"), "BestEffort is a CPU class and not a tier; write %s", cluster.TierStandard)
	} else {
		checkEnum(o.Spec.Tier, cluster.Tiers, spec.Add("tier"), r)
	}
	if w := o.Spec.Weight; w != nil {
		q.Weight, q.Weightless = *w, *w == 0
		checkWeight(*w, spec.Add("weight"), r)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Spec.OverQuotaWeight)) {
		w := o.Spec.OverQuotaWeight[name]
		env.checkProduct(name, spec.Add("overQuotaWeight", name), r)
		checkWeight(w, spec.Add("overQuotaWeight", name), r)
		q.OverQuotaWeight = append(q.OverQuotaWeight, cluster.Amount{Name: name, Value: w})
	}
	q.Limits = env.queueAmounts(o.Spec.Limits, spec.Add("limits"), r)
	q.Quota = env.quota(o.Spec.Quota, spec.Add("quota"), r)
	for i := range o.Status.Usage {
		q.Past = append(q.Past, env.makeUsage(&o.Status.Usage[i], path{"status", "usage", i}, r))
	}
	checkQuotas(o, r)
	if t := o.Spec.MinRunTime; t != nil {
		q.MinRunBeforePreempt = minRunTime(t.BeforePreempt, spec.Add("minRunTime", "beforePreempt"), r)
		q.MinRunBeforeReclaim = minRunTime(t.BeforeReclaim, spec.Add("minRunTime", "beforeReclaim"), r)
	}
	return q, notes
}

func checkWeight(w int64, at path, r reporter) {
	if w < 0 || w > maxWeight {
		r.errorf(at, "want a weight from 0 to %d, have %d", maxWeight, w)
	}
}

// checkQuotas reports quotas above the limit of the same name, and quotas of one product
// above the limit of all products.
func checkQuotas(o *v1alpha1.Queue, r reporter) {
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Quota)) {
		want := o.Spec.Quota[name]
		if want.Unlimited { // the limit applies nevertheless
			continue
		}
		resource, product := cluster.SplitProduct(string(name))
		above := func(limit corev1.ResourceName, of string) bool {
			most, limited := o.Spec.Limits[limit]
			if !limited || want.Cmp(most) <= 0 {
				return false
			}
			r.errorf(path{"spec", "quota", string(name)}, "the quota of %s is above the limit of %s%s; raise the limit or lower the quota", want.String(), most.String(), of)
			return true
		}
		if !above(name, "") && product != "" {
			above(corev1.ResourceName(resource), " for all "+resource)
		}
	}
}

// minRunTime converts a minimum run time. A time of 0 is refused, because State could not tell
// it from a time that is not set: 0 means there that the value of the queue above applies.
func minRunTime(d *metav1.Duration, at path, r reporter) int64 {
	if d == nil {
		return 0
	}
	if d.Duration <= 0 {
		r.errorf(at, "want a time above 0, such as 10m, have %s; if it is left out, the value of the queue above applies", d.Duration)
		return 0
	}
	return d.Nanoseconds()
}

// makeUsage converts what a queue held during a period of time.
func (env *Environment) makeUsage(o *v1alpha1.QueueUsage, at path, r reporter) cluster.Usage {
	from, to := Nanoseconds(&o.From), Nanoseconds(&o.To)
	for _, x := range []struct {
		field string
		time  *metav1.Time
	}{{"from", &o.From}, {"to", &o.To}} {
		if x.time.IsZero() {
			r.errorf(at.Add(x.field), "say when; write a time such as 2026-01-02T15:04:05Z")
		} else {
			checkTime(x.time, at.Add(x.field), r)
		}
	}
	if from != 0 && to != 0 && to <= from {
		r.errorf(at.Add("to"), "it ends at %s, which is not after it began; swap from and to, or leave the entry out", o.To.UTC().Format(time.RFC3339))
	}
	return cluster.Usage{From: from, To: to, Resources: env.queueAmounts(o.Resources, at.Add("resources"), r)}
}

// checkProduct reports a name such as nvidia.com/gpu:NVIDIA-L4 of which the part before
// the colon is no device, or the part after it is missing. Whether a node has the product
// is not checked: nodes may be added later.
func (env *Environment) checkProduct(name string, at path, r reporter) {
	resource, product, named := strings.Cut(name, ":")
	switch {
	case !named:
	case product == "":
		r.errorf(at, "a product is missing after the colon; write one, such as %s:NVIDIA-L4, or leave the colon out", resource)
	case IsDevice(resource) || env.DeviceResources[resource]:
	case env.DeviceResources == nil && strings.Contains(resource, "/"): // some node may count devices under this name
	default:
		there := slices.Sorted(maps.Keys(deviceTypes))
		for _, n := range slices.Sorted(maps.Keys(env.DeviceResources)) {
			if !IsDevice(n) {
				there = append(there, n)
			}
		}
		r.errorf(at, "only devices have products, and none are called %s%s", phrase.Quote(resource), nearest.Hint(resource, there))
	}
}

// quota converts a quota. Amounts may be unlimited.
func (env *Environment) quota(list map[corev1.ResourceName]v1alpha1.QuotaAmount, at path, r reporter) cluster.Resources {
	bounded := corev1.ResourceList{}
	var unlimited []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !list[name].Unlimited {
			bounded[name] = list[name].Quantity
			continue
		}
		env.checkProduct(string(name), at.Add(string(name)), r)
		unlimited = append(unlimited, string(name))
	}
	out := env.queueAmounts(bounded, at, r)
	for _, name := range unlimited {
		out = out.With(name, cluster.Unlimited)
	}
	return out
}

// queueAmounts converts amounts of resources, sorted by name. Devices are in
// thousandths. If it is not known whether a resource is devices, a fraction is accepted
// and the value is rounded up to whole units.
func (env *Environment) queueAmounts(list corev1.ResourceList, at path, r reporter) cluster.Resources {
	var out cluster.Resources
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount, at := list[name], at.Add(string(name))
		var v int64
		switch {
		case strings.Contains(string(name), ":"):
			env.checkProduct(string(name), at, r)
			v = milliOf(amount, at, r)
		case IsDevice(string(name)) || env.DeviceResources[string(name)]:
			v = milliOf(amount, at, r)
		case env.DeviceResources == nil && strings.Contains(string(name), "/"):
			v = bytesOf(amount, at, r) // some node may count devices under this name
		default:
			v = amountOf(string(name), amount, at, r)
		}
		out = append(out, cluster.Amount{Name: string(name), Value: v})
	}
	return out
}

// Quantity returns an amount of a queue in State as it is written in manifests. It is the
// inverse of the conversion of quotas and limits, and needs env.DeviceResources as that does.
// The amount must not be cluster.Unlimited.
func (env *Environment) Quantity(name string, v int64) resource.Quantity {
	switch {
	case strings.Contains(name, ":"), IsDevice(name), env.DeviceResources[name], name == cluster.CPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case isInBytes(name):
		return *resource.NewQuantity(v, resource.BinarySI)
	}
	return *resource.NewQuantity(v, resource.DecimalSI)
}
