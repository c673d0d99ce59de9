package podkind

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selectedLabels returns the keys of the labels that the terms of a pod about other pods
// select by. Whether the pod itself matches its terms depends on the values of these labels.
func selectedLabels(spec *v1.PodSpec) []string {
	var out []string
	add := func(s *metav1.LabelSelector, keys ...[]string) {
		if s != nil {
			for key := range s.MatchLabels { // the caller uses the keys as a set
				out = append(out, key)
			}
			for _, e := range s.MatchExpressions {
				out = append(out, e.Key)
			}
		}
		for _, list := range keys {
			out = append(out, list...)
		}
	}
	var terms []v1.PodAffinityTerm
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, t := range terms {
		add(t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
	}
	for _, c := range spec.TopologySpreadConstraints {
		add(c.LabelSelector, c.MatchLabelKeys)
	}
	return out
}
