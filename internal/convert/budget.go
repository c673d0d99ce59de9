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

// maxBound is the most tasks that a budget may count.
const maxBound = MaxTasks

// DisruptionBudgetID is the ID of a budget: budget/NAME or budget/NAMESPACE/NAME.
func DisruptionBudgetID(o *v1alpha1.DisruptionBudget) string {
	return scopedID("budget", &o.ObjectMeta)
}

// PodDisruptionBudgetID is the ID of a budget of Kubernetes: budget/NAMESPACE/NAME.
func PodDisruptionBudgetID(o *policyv1.PodDisruptionBudget) string {
	return "budget/" + CoreNamespace(&o.ObjectMeta) + "/" + o.Name
}

// DisruptionBudget turns a budget as people write it into one for the books.
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
	bound(b, o.Spec.MinAvailable, o.Spec.MaxUnavailable, r)
	return b, notes
}

// PodDisruptionBudget turns a budget of Kubernetes into one for the books. One that
// bounds nothing protects nobody there, and does not here.
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
	bound(b, o.Spec.MinAvailable, o.Spec.MaxUnavailable, r)
	return b, notes
}

// bound fills in the one bound that a budget has.
func bound(b *cluster.Budget, least, most *intstr.IntOrString, r reporter) {
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
