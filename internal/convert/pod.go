package convert

import (
	"cmp"
	"maps"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podTask is the name of the only task of a pod.
const podTask = "0"

// CoreNamespace returns the namespace of an object of Kubernetes, which is "default" if
// it names none.
func CoreNamespace(m *metav1.ObjectMeta) string { return cmp.Or(m.Namespace, corev1.NamespaceDefault) }

// PodID returns pod/NAMESPACE/NAME.
func PodID(o *corev1.Pod) string { return "pod/" + CoreNamespace(&o.ObjectMeta) + "/" + o.Name }

// Ended reports whether the pod holds nothing and will not be placed: it succeeded or
// failed, or it was deleted before it had a node.
func Ended(o *corev1.Pod) bool {
	return o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed ||
		(o.DeletionTimestamp != nil && o.Spec.NodeName == "")
}

// Gated reports whether scheduling gates hold the pod back.
func Gated(o *corev1.Pod) bool { return len(o.Spec.SchedulingGates) > 0 && o.Spec.NodeName == "" }

// Pod converts a pod into a job of one pending task. The job is nil if the pod does not
// belong in State (see WhyLeftOut). If the pod has a node, PodPlacement returns it.
func Pod(o *corev1.Pod, env *Environment) (*cluster.Job, Notes) {
	notes := PodNotes(o)
	r := reporter{&notes}
	checkName(o.Name, "pod", r)
	checkNamespace(o.Namespace, r)
	j := &cluster.Job{
		ID: PodID(o), Namespace: CoreNamespace(&o.ObjectMeta), Created: created(&o.ObjectMeta),
		Labels: maps.Clone(o.Labels), Chosen: -1,
	}
	details := j.OwnDetails()
	j.Queue, _ = labelOrAnnotation(o, v1alpha1.LabelQueue, r)
	j.Priority = podPriority(o, env)
	j.Preemptible, details.Remarks = env.preemptible(podPreemptible(o, r), j.Queue)
	details.PreemptionDelay = podPreemptionDelay(o, env, r)
	shape := cluster.Shape{Preemptible: j.Preemptible, Profile: env.profile(o.Spec.SchedulerName), Selector: cluster.SortLabels(o.Spec.NodeSelector)}
	podRequests(o, &shape, env, r)
	podIsolation(o, &shape, r)
	for _, t := range o.Spec.Tolerations {
		if isKnownOperator(t.Operator) {
			shape.Tolerations = append(shape.Tolerations, cluster.Toleration{
				Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: cluster.Effect(t.Effect)})
		}
	}
	details.Affinity = podAffinity(o, &shape, env)
	j.Alternatives = []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: podTask, Shape: &shape}}}}
	if WhyLeftOut(o) != "" {
		return nil, notes
	}
	return j, notes
}

// Placement is where a pod runs, and since when.
type Placement struct {
	Node      string
	Started   int64 // in nanoseconds; 0 if not known
	Releasing bool  // the pod was deleted and still holds its room
}

// PodPlacement returns where the pod runs, and false if it has no node.
func PodPlacement(o *corev1.Pod) (Placement, bool) {
	return Placement{o.Spec.NodeName, Nanoseconds(o.Status.StartTime), o.DeletionTimestamp != nil}, o.Spec.NodeName != ""
}

// podPreemptible reads whether the pod is preemptible from its label or annotation; nil
// if it has neither.
func podPreemptible(o *corev1.Pod, r reporter) *bool {
	text, at := labelOrAnnotation(o, v1alpha1.LabelPreemptible, r)
	is := text == "true"
	switch text {
	case "":
		return nil
	case "true", "false":
	default:
		r.errorf(at, `want "true" or "false", have %s`, phrase.Quote(text))
	}
	return &is
}

// PodQueue returns the queue that the pod names, "" if it names none, and the path of
// the label or annotation.
func PodQueue(o *corev1.Pod) (queue string, at field.Path, notes Notes) {
	queue, at = labelOrAnnotation(o, v1alpha1.LabelQueue, reporter{&notes})
	return queue, at, notes
}

// labelOrAnnotation returns the value of the key, and where it was found. The label
// takes precedence.
func labelOrAnnotation(o *corev1.Pod, key string, r reporter) (string, path) {
	label, annotation := o.Labels[key], o.Annotations[key]
	if label != "" && annotation != "" && label != annotation {
		r.errorf(path{"metadata", "annotations", key}, "the annotation says %s and the label %s; keep one", phrase.Quote(annotation), phrase.Quote(label))
	}
	if label != "" {
		return label, path{"metadata", "labels", key}
	}
	return annotation, path{"metadata", "annotations", key}
}

// podRequests sets what the pod requests.
func podRequests(o *corev1.Pod, shape *cluster.Shape, env *Environment, r reporter) {
	at := path{"spec", "containers"}
	shape.Resources = cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}}
	if env.PodsCounted {
		shape.Resources = shape.Resources.With(string(corev1.ResourcePods), 1)
	}
	requests := effectiveRequests(o, nil)
	shape.LeftOut = amounts(leftOut(o, requests), at, r)
	for _, a := range amounts(requests, at, r) {
		if env.Parts && IsPart(a.Name) {
			continue // package feed reads parts of devices
		}
		if !IsDevice(a.Name) && !env.DeviceResources[a.Name] {
			shape.Resources = shape.Resources.With(a.Name, a.Value)
			continue
		}
		switch need := &shape.Need; {
		case a.Value == 0:
		case need.Devices > 0:
			r.errorf(at, "the pod asks for both %s and %s; ask for one kind of device, or split the pod", need.Resource, a.Name)
			if a.Value > int64(need.Devices) && a.Value <= maxDevices { // if the pod runs, the kind of which it holds more is counted
				*need = cluster.Need{Devices: int(a.Value), Resource: a.Name, Partition: profileOf(a.Name)}
			}
		case a.Value > maxDevices:
			r.errorf(at, "%d of %s are more than the %d devices that one node may have", a.Value, a.Name, maxDevices)
		default:
			*need = cluster.Need{Devices: int(a.Value), Resource: a.Name, Partition: profileOf(a.Name)}
		}
	}
}

// isKnownOperator reports whether tolerations with the operator are supported. Tolerations
// with other operators are ignored: they tolerate no taint.
func isKnownOperator(op corev1.TolerationOperator) bool {
	return op == "" || op == corev1.TolerationOpEqual || op == corev1.TolerationOpExists
}
