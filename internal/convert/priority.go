package convert

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// The priority classes that every cluster has, and their values.
var systemClasses = map[string]int32{"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

// PriorityClassID returns priorityclass/NAME.
func PriorityClassID(o *schedulingv1.PriorityClass) string { return "priorityclass/" + o.Name }

// PriorityClass checks a priority class.
func PriorityClass(o *schedulingv1.PriorityClass) Notes {
	var notes Notes
	checkName(o.Name, "priority class", reporter{&notes})
	return notes
}

// podPriority returns the priority of a pod. The API server sets it when the pod is created. In a
// manifest that was never applied it is that of the priority class that the pod names, or of the
// default class.
func podPriority(o *corev1.Pod, env *Environment) int32 {
	if o.Spec.Priority != nil {
		return *o.Spec.Priority
	}
	if class := env.priorityClass(o); class != nil {
		return class.Value
	}
	return systemClasses[o.Spec.PriorityClassName]
}

// WithPriority returns the pod with the priority and the preemption policy that follow from its
// priority class. The pod itself does not change.
func WithPriority(o *corev1.Pod, classes []*schedulingv1.PriorityClass) *corev1.Pod {
	env := &Environment{PriorityClasses: classes}
	out := *o
	if priority := podPriority(o, env); priority != 0 {
		out.Spec.Priority = &priority
	}
	if class := env.priorityClass(o); class != nil && o.Spec.PreemptionPolicy == nil {
		out.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
	return &out
}

// priorityClass returns the class of a pod; nil if it has none, or if the class is not known.
func (env *Environment) priorityClass(o *corev1.Pod) *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, class := range env.PriorityClasses {
		switch name := o.Spec.PriorityClassName; {
		case name != "" && class.Name == name:
			return class
		case name == "" && class.GlobalDefault && (found == nil || class.Value < found.Value): // as in Kubernetes
			found = class
		}
	}
	return found
}

// UnknownPriorityClass returns the priority class that the pod names if its priority is not given
// and the class is not known; "" otherwise.
func UnknownPriorityClass(o *corev1.Pod, env *Environment) string {
	name := o.Spec.PriorityClassName
	if _, system := systemClasses[name]; system || o.Spec.Priority != nil || env.priorityClass(o) != nil {
		return ""
	}
	return name
}
