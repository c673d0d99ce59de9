package anonymize

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (n coreObjects) pod(o *corev1.Pod) *corev1.Pod {
	s := &o.Spec
	out := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: n.meta(n.workloads.of(o.Name), convert.CoreNamespace(&o.ObjectMeta), o.Labels),
	}
	out.CreationTimestamp = n.time(o.CreationTimestamp)
	out.DeletionTimestamp = n.optionalTime(o.DeletionTimestamp)
	out.Annotations = n.podAnnotations(o)
	containers := map[string]string{}
	if o.UID != "" { // a pod of a cluster is read although it has errors
		out.UID = types.UID("uid-of-" + out.Name)
	}
	out.Spec = corev1.PodSpec{
		NodeName: n.nodes.of(s.NodeName), SchedulerName: n.schedulers.of(s.SchedulerName), Priority: s.Priority,
		NodeSelector: n.labels(s.NodeSelector), Affinity: optional(s.Affinity, n.podAffinity),
		Containers: n.containers(s.Containers, containers), InitContainers: n.containers(s.InitContainers, containers),
		Overhead: n.amounts(s.Overhead), Resources: optional(s.Resources, n.requirements),
	}
	if g := s.SchedulingGroup; g != nil && g.PodGroupName != nil {
		name := n.workloads.of(*g.PodGroupName)
		out.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
	for _, r := range o.OwnerReferences {
		if r.Controller != nil && *r.Controller && r.Kind == "Job" {
			out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: n.workloads.of(r.Name), Controller: r.Controller}}
		}
	}
	if p := s.PreemptionPolicy; p != nil && *p == corev1.PreemptNever { // other values mean nothing to Berth
		never := corev1.PreemptNever
		out.Spec.PreemptionPolicy = &never
	}
	for _, t := range s.Tolerations {
		if t.Operator == "" || t.Operator == corev1.TolerationOpEqual || t.Operator == corev1.TolerationOpExists { // others are not read
			out.Spec.Tolerations = append(out.Spec.Tolerations, corev1.Toleration{
				Key: n.key(t.Key), Operator: t.Operator, Value: n.value(t.Key, t.Value), Effect: t.Effect})
		}
	}
	for i := range s.ResourceClaims {
		out.Spec.ResourceClaims = append(out.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i+1)})
	}
	for i := range s.SchedulingGates {
		out.Spec.SchedulingGates = append(out.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: fmt.Sprintf("gate-%d", i+1)})
	}
	out.Status = corev1.PodStatus{
		Phase: o.Status.Phase, StartTime: n.optionalTime(o.Status.StartTime),
		ContainerStatuses:     n.containerStatuses(o.Status.ContainerStatuses, containers),
		InitContainerStatuses: n.containerStatuses(o.Status.InitContainerStatuses, containers),
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible {
			out.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
		}
	}
	return out
}

// unreadable replaces a value that Berth cannot read, so that it cannot read the new one either.
const unreadable = "unreadable"

// podAnnotations returns the annotations that Berth reads.
func (n coreObjects) podAnnotations(o *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, key := range []string{v1alpha1.LabelQueue, v1alpha1.LabelPreemptible} {
		if v := o.Annotations[key]; v != "" {
			out[key] = n.value(key, v)
		}
	}
	n.groupAnnotations(o, out)
	if text := o.Annotations[v1alpha1.AnnotationPreemptionDelay]; text != "" {
		out[v1alpha1.AnnotationPreemptionDelay] = unreadable
		if d, err := time.ParseDuration(text); err == nil {
			out[v1alpha1.AnnotationPreemptionDelay] = d.String()
		}
	}
	var wanted v1alpha1.Isolation
	if readAnnotation(&o.ObjectMeta, &wanted) {
		out[v1alpha1.AnnotationIsolation] = jsonText(n.isolation(&wanted))
	} else if o.Annotations[v1alpha1.AnnotationIsolation] != "" {
		out[v1alpha1.AnnotationIsolation] = unreadable
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// containers returns the containers with the resources that they request. It adds the new
// name of each to names.
func (n coreObjects) containers(list []corev1.Container, names map[string]string) []corev1.Container {
	return each(list, func(c corev1.Container) corev1.Container {
		if names[c.Name] == "" {
			names[c.Name] = fmt.Sprintf("container-%d", len(names)+1)
		}
		return corev1.Container{Name: names[c.Name], Resources: *n.requirements(&c.Resources), RestartPolicy: c.RestartPolicy}
	})
}

func (n coreObjects) containerStatuses(list []corev1.ContainerStatus, names map[string]string) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range list {
		if c.Resources != nil && names[c.Name] != "" { // others are not read
			out = append(out, corev1.ContainerStatus{
				Name: names[c.Name], AllocatedResources: n.amounts(c.AllocatedResources), Resources: n.requirements(c.Resources)})
		}
	}
	return out
}

func (n coreObjects) requirements(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: n.amounts(r.Requests), Limits: n.amounts(r.Limits)}
}

func (n coreObjects) podAffinity(a *corev1.Affinity) *corev1.Affinity {
	return &corev1.Affinity{
		NodeAffinity: optional(a.NodeAffinity, func(x *corev1.NodeAffinity) *corev1.NodeAffinity {
			return &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: optional(x.RequiredDuringSchedulingIgnoredDuringExecution, func(s *corev1.NodeSelector) *corev1.NodeSelector {
					return &corev1.NodeSelector{NodeSelectorTerms: each(s.NodeSelectorTerms, n.selectorTerm)}
				}),
				PreferredDuringSchedulingIgnoredDuringExecution: each(x.PreferredDuringSchedulingIgnoredDuringExecution, func(t corev1.PreferredSchedulingTerm) corev1.PreferredSchedulingTerm {
					return corev1.PreferredSchedulingTerm{Weight: t.Weight, Preference: n.selectorTerm(t.Preference)}
				}),
			}
		}),
		PodAffinity: optional(a.PodAffinity, func(x *corev1.PodAffinity) *corev1.PodAffinity {
			return &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  each(x.RequiredDuringSchedulingIgnoredDuringExecution, n.podTerm),
				PreferredDuringSchedulingIgnoredDuringExecution: each(x.PreferredDuringSchedulingIgnoredDuringExecution, n.weightedPodTerm),
			}
		}),
		PodAntiAffinity: optional(a.PodAntiAffinity, func(x *corev1.PodAntiAffinity) *corev1.PodAntiAffinity {
			return &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  each(x.RequiredDuringSchedulingIgnoredDuringExecution, n.podTerm),
				PreferredDuringSchedulingIgnoredDuringExecution: each(x.PreferredDuringSchedulingIgnoredDuringExecution, n.weightedPodTerm),
			}
		}),
	}
}

func (n coreObjects) selectorTerm(t corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	conditions := func(list []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
		return each(list, func(q corev1.NodeSelectorRequirement) corev1.NodeSelectorRequirement {
			return corev1.NodeSelectorRequirement{Key: n.key(q.Key), Operator: q.Operator, Values: n.valuesOf(q.Key, q.Values)}
		})
	}
	return corev1.NodeSelectorTerm{MatchExpressions: conditions(t.MatchExpressions), MatchFields: conditions(t.MatchFields)}
}

func (n coreObjects) weightedPodTerm(t corev1.WeightedPodAffinityTerm) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: n.podTerm(t.PodAffinityTerm)}
}

func (n coreObjects) podTerm(t corev1.PodAffinityTerm) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector: optional(t.LabelSelector, n.labelSelector), TopologyKey: n.key(t.TopologyKey),
		Namespaces: each(t.Namespaces, n.namespaces.of), NamespaceSelector: optional(t.NamespaceSelector, n.labelSelector),
	}
}
