package convert

import (
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxBound is the largest number of tasks that a budget may name.
const maxBound = MaxTasks

// DisruptionBudgetID returns budget/NAME or budget/NAMESPACE/NAME.
func DisruptionBudgetID(o *v1alpha1.DisruptionBudget) string {
	return scopedID("budget", &o.ObjectMeta)
}

// PodDisruptionBudgetID returns budget/NAMESPACE/NAME.
func PodDisruptionBudgetID(o *policyv1.PodDisruptionBudget) string {
	return "budget/" + CoreNamespace(&o.ObjectMeta) + "/" + o.Name
}

// DisruptionBudget converts a budget of Berth.
func DisruptionBudget(o *v1alpha1.DisruptionBudget) (*cluster.Budget, Notes) {
	var notes Notes
	r := reporter{&notes}
	spec := path{"spec"}
	checkName(o.Name, "budget", r)
	checkNamespace(o.Namespace, r)
	b := &cluster.Budget{Name: o.Name, Namespace: o.Namespace, Selector: makeSelector(&o.Spec.Selector, spec.Add("selector"), r)}
	if o.Spec.MinAvailable == nil && o.Spec.MaxUnavailable == nil {
		r.errorf(spec, "say minAvailable or maxUnavailable, such as 2 or 30%%")
	}
	setBound(b, o.Spec.MinAvailable, o.Spec.MaxUnavailable, r)
	return b, notes
}

// PodDisruptionBudget converts a budget of Kubernetes. As in Kubernetes, a budget
// without a bound is valid and protects no task.
func PodDisruptionBudget(o *policyv1.PodDisruptionBudget) (*cluster.Budget, Notes) {
	var notes Notes
	r := reporter{&notes}
	checkName(o.Name, "budget", r)
	checkNamespace(o.Namespace, r)
	b := &cluster.Budget{Name: o.Name, Namespace: CoreNamespace(&o.ObjectMeta), Selector: labelSelector(o.Spec.Selector)}
	if o.Spec.Selector != nil {
		for i, q := range o.Spec.Selector.MatchExpressions {
			checkEnum(string(q.Operator), cluster.Operators, path{"spec", "selector", "matchExpressions", i, "operator"}, r)
		}
	}
	setBound(b, o.Spec.MinAvailable, o.Spec.MaxUnavailable, r)
	return b, notes
}

// setBound sets the bound of the budget from minAvailable (least) or maxUnavailable
// (most).
func setBound(b *cluster.Budget, least, most *intstr.IntOrString, r reporter) {
	value, field := least, "minAvailable"
	if most != nil {
		value, field, b.Unavailable = most, "maxUnavailable", true
	}
	at := path{"spec", field}
	if least != nil && most != nil {
		r.errorf(at, "minAvailable and maxUnavailable both say how many may be missing; keep one")
	}
	if value == nil {
		return
	}
	n := int(value.IntVal)
	if value.Type == intstr.String {
		digits, percent := strings.CutSuffix(value.StrVal, "%")
		parsed, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || !percent || parsed > 100 {
			r.errorf(at, "want a number of tasks such as 2, or a percentage from 0%% to 100%%, have %s", phrase.Quote(value.StrVal))
			return
		}
		n, b.Percent = int(parsed), true
	}
	if n < 0 || n > maxBound {
		r.errorf(at, "want a number of tasks from 0 to %d, have %d", maxBound, n)
		return
	}
	b.Bound = n
}
