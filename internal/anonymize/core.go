package anonymize

import (
	"encoding/json"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// coreObjects copies objects of Kubernetes with the names.
type coreObjects struct{ *Names }

func (n coreObjects) coreNode(o *corev1.Node, first bool) *corev1.Node {
	out := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: n.nodeMeta(o.Name, o.Labels, first)}
	out.Annotations = map[string]string{}
	var offered v1alpha1.NodeIsolation
	if offersIsolation(o) && readAnnotation(&o.ObjectMeta, &offered) {
		out.Annotations[v1alpha1.AnnotationIsolation] = jsonText(&offered)
	}
	n.registered(o, out.Annotations)
	out.Spec = corev1.NodeSpec{
		Unschedulable: o.Spec.Unschedulable,
		Taints: each(o.Spec.Taints, func(t corev1.Taint) corev1.Taint {
			return corev1.Taint{Key: n.key(t.Key), Value: n.value(t.Key, t.Value), Effect: t.Effect}
		}),
	}
	out.Status.Allocatable = n.amounts(convert.Allocatable(o))
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
			break // the first one counts
		}
	}
	return out
}

// offersIsolation reports whether the node offers an isolation class. Berth ignores an annotation
// with any mistake.
func offersIsolation(o *corev1.Node) bool {
	n, _ := convert.CoreNode(o)
	s := &n.SupportedIsolation
	return len(s.CPU)+len(s.GPU) > 0 || s.Share != "" || s.IsolableCores > 0
}

// readAnnotation decodes the isolation of a node or a pod. It reports false if there is none
// that can be read.
func readAnnotation(m *metav1.ObjectMeta, into any) bool {
	text, ok := m.Annotations[v1alpha1.AnnotationIsolation]
	return ok && json.Unmarshal([]byte(text), into) == nil
}

// jsonText returns a value of a type of the API as JSON.
func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // these types can always be encoded
	}
	return string(data)
}

func (n coreObjects) coreBudget(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: n.meta(n.budgets.of(o.Name), convert.CoreNamespace(&o.ObjectMeta), nil),
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: optional(o.Spec.Selector, n.labelSelector), MinAvailable: o.Spec.MinAvailable, MaxUnavailable: o.Spec.MaxUnavailable,
		},
	}
}

func (n coreObjects) labelSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels: n.labels(s.MatchLabels),
		MatchExpressions: each(s.MatchExpressions, func(q metav1.LabelSelectorRequirement) metav1.LabelSelectorRequirement {
			return metav1.LabelSelectorRequirement{Key: n.key(q.Key), Operator: q.Operator, Values: n.valuesOf(q.Key, q.Values)}
		}),
	}
}
