package convert

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podAffinity sets the terms of the shape about nodes and returns the terms about other
// pods.
func podAffinity(o *corev1.Pod, shape *cluster.Shape, env *Environment) []cluster.JobTerm {
	a := o.Spec.Affinity
	if a == nil {
		return nil
	}
	if n := a.NodeAffinity; n != nil {
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for _, t := range required.NodeSelectorTerms {
				shape.Required = append(shape.Required, nodeTerm(t))
			}
		}
		for _, p := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			if term := nodeTerm(p.Preference); len(term) > 0 && p.Weight != 0 {
				shape.Preferred = append(shape.Preferred, cluster.Preference{Weight: p.Weight, Term: term})
			}
		}
	}
	var out []cluster.JobTerm
	if p := a.PodAffinity; p != nil {
		out = append(out, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, false, env)...)
	}
	if p := a.PodAntiAffinity; p != nil {
		out = append(out, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, true, env)...)
	}
	return out
}

// nodeTerm returns the conditions of the term on labels and on fields. The only field that
// Kubernetes supports, metadata.name, is a label of nodes in State (see nameLabel).
func nodeTerm(t corev1.NodeSelectorTerm) cluster.Term {
	var out cluster.Term
	for _, q := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		out = append(out, cluster.Requirement{Key: q.Key, Operator: cluster.Operator(q.Operator), Values: slices.Clone(q.Values)})
	}
	return out
}

func podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, anti bool, env *Environment) []cluster.JobTerm {
	var out []cluster.JobTerm
	for i := range required {
		out = append(out, podTerm(&required[i], 0, anti, env))
	}
	for i := range preferred {
		if w := preferred[i].Weight; w != 0 { // a weight of 0 has no effect in Kubernetes; in State it would mean required
			out = append(out, podTerm(&preferred[i].PodAffinityTerm, w, anti, env))
		}
	}
	return out
}

func podTerm(t *corev1.PodAffinityTerm, weight int32, anti bool, env *Environment) cluster.JobTerm {
	out := cluster.JobTerm{Within: t.TopologyKey, Anti: anti, Weight: weight, Namespaces: slices.Clone(t.Namespaces)}
	if t.TopologyKey == corev1.LabelHostname && env.UniqueHostnames {
		out.Within = ""
	}
	out.Selector = labelSelector(t.LabelSelector)
	if t.NamespaceSelector != nil {
		selected := labelSelector(t.NamespaceSelector)
		for _, ns := range env.Namespaces {
			// Namespaces themselves are not read: only the label with their name is known.
			if selected.Matches(map[string]string{corev1.LabelMetadataName: ns}) && !slices.Contains(out.Namespaces, ns) {
				out.Namespaces = append(out.Namespaces, ns)
			}
		}
		if len(out.Namespaces) == 0 {
			out.Selector = nil // no namespace is selected; an empty list would mean the namespace of the pod
		}
	}
	slices.Sort(out.Namespaces)
	return out
}

// labelSelector converts a selector. As in Kubernetes, no selector matches nothing and
// an empty selector matches everything.
func labelSelector(s *metav1.LabelSelector) cluster.Term {
	if s == nil {
		return nil
	}
	out := matchLabels(s.MatchLabels)
	for _, q := range s.MatchExpressions {
		out = append(out, cluster.Requirement{Key: q.Key, Operator: cluster.Operator(q.Operator), Values: slices.Clone(q.Values)})
	}
	if len(out) == 0 {
		out = cluster.Term{{Operator: cluster.DoesNotExist}} // this always matches: no label has an empty key
	}
	return out
}
