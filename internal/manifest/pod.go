package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podTask is the name of a pod's only task.
const podTask = "0"

// surroundings are what the rest of a bundle says about how to read one object.
type surroundings struct {
	// deviceNames are the resources that nodes count devices under, beside those
	// that everybody knows; nil where not known yet.
	deviceNames map[string]bool
	// podSlots: all nodes say how many pods they take, so that pods count.
	podSlots bool
	// hostnames: every node has a hostname label of its own, so that a domain of
	// hostname is the node.
	hostnames bool
	// namespaces that pods are in, sorted.
	namespaces []string
	// scavengers are the queues whose jobs are preemptible unless they say otherwise:
	// the queue of the Scavenger tier that each is, or is below.
	scavengers map[string]string
}

// preemptible is what a workload says of itself, or what its queue makes of it. A
// remark says so where it is the queue.
func (s *surroundings) preemptible(said *bool, queue string) (bool, []string) {
	if said != nil {
		return *said, nil
	}
	if queue == "" {
		queue = cluster.DefaultQueue
	}
	if scavenger := s.scavengers[queue]; scavenger != "" {
		return true, []string{fmt.Sprintf("Preemptible: queue %s is of the %s tier, and the workload does not say otherwise.", scavenger, cluster.TierScavenger)}
	}
	return false, nil
}

// coreNamespace is where Kubernetes puts an object that names no namespace.
func coreNamespace(m *metav1.ObjectMeta) string { return cmp.Or(m.Namespace, corev1.NamespaceDefault) }

func podID(o *corev1.Pod) string { return "pod/" + coreNamespace(&o.ObjectMeta) + "/" + o.Name }

// ended reports whether the pod holds nothing and wants nothing any more.
func ended(o *corev1.Pod) bool {
	return o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed ||
		(o.DeletionTimestamp != nil && o.Spec.NodeName == "")
}

// held reports whether somebody else still has to let the pod go.
func held(o *corev1.Pod) bool { return len(o.Spec.SchedulingGates) > 0 && o.Spec.NodeName == "" }

// makePod turns a pod into a job of one task.
func makePod(o *corev1.Pod, s *surroundings, r reporter) *cluster.Job {
	checkName(o.Name, "pod", r)
	checkNamespace(o.Namespace, r)
	j := &cluster.Job{
		ID: podID(o), Namespace: coreNamespace(&o.ObjectMeta), Created: created(&o.ObjectMeta),
		Labels: maps.Clone(o.Labels), Chosen: -1,
	}
	j.Queue, _ = podQueue(o, r)
	if o.Spec.Priority != nil {
		j.Priority = *o.Spec.Priority
	}
	j.Preemptible, j.Remarks = s.preemptible(podPreemptible(o, r), j.Queue)
	j.PreemptionDelay = podDelay(o, r)
	shape := cluster.Shape{Preemptible: j.Preemptible, Selector: cluster.SortLabels(o.Spec.NodeSelector)}
	podRequests(o, &shape, s, r)
	for _, t := range o.Spec.Tolerations {
		if knownOperator(t.Operator) {
			shape.Tolerations = append(shape.Tolerations, cluster.Toleration{
				Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: cluster.Effect(t.Effect)})
		}
	}
	j.Affinity = podAffinity(o, &shape, s)
	j.Alternatives = []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{{Name: podTask, Shape: &shape}}}}
	return j
}

// podPreemptible is what the pod says of itself, nil if it says nothing.
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

// podQueue is the queue that the pod names, "" if it names none, and where.
func podQueue(o *corev1.Pod, r reporter) (string, path) {
	return labelOrAnnotation(o, v1alpha1.LabelQueue, r)
}

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

// podRequests fills in what the pod requests.
func podRequests(o *corev1.Pod, shape *cluster.Shape, s *surroundings, r reporter) {
	at := path{"spec", "containers"}
	shape.Resources = cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}}
	if s.podSlots {
		shape.Resources = shape.Resources.With(string(corev1.ResourcePods), 1)
	}
	requests := effectiveRequests(o, nil)
	shape.LeftOut = amounts(leftOut(o, requests), at, r)
	for _, a := range amounts(requests, at, r) {
		if !isDevice(a.Name) && !s.deviceNames[a.Name] {
			shape.Resources = shape.Resources.With(a.Name, a.Value)
			continue
		}
		switch need := &shape.Need; {
		case a.Value == 0:
		case need.Devices > 0:
			r.errorf(at, "the pod asks for both %s and %s; ask for one kind of device, or split the pod", need.Resource, a.Name)
		case a.Value > maxDevices:
			r.errorf(at, "%d of %s are more than the %d devices that one node may have", a.Value, a.Name, maxDevices)
		default:
			*need = cluster.Need{Devices: int(a.Value), Resource: a.Name, Partition: profileOf(a.Name)}
		}
	}
}

// knownOperator reports whether the books know the operator. A toleration with
// another tolerates nothing here, which errs on the safe side.
func knownOperator(op corev1.TolerationOperator) bool {
	return op == "" || op == corev1.TolerationOpEqual || op == corev1.TolerationOpExists
}

// unread names what a pending pod asks for that is not read.
func unread(o *corev1.Pod) []string {
	asks := map[string]bool{
		"topologySpreadConstraints": len(o.Spec.TopologySpreadConstraints) > 0,
		"resourceClaims":            len(o.Spec.ResourceClaims) > 0,
	}
	for _, c := range o.Spec.Containers {
		for _, p := range c.Ports {
			asks["hostPort"] = asks["hostPort"] || p.HostPort != 0
		}
	}
	for _, v := range o.Spec.Volumes {
		asks["persistentVolumeClaim"] = asks["persistentVolumeClaim"] || v.PersistentVolumeClaim != nil
	}
	for _, t := range o.Spec.Tolerations {
		if !knownOperator(t.Operator) {
			asks["a toleration by "+phrase.Clip(string(t.Operator))] = true
		}
	}
	maps.DeleteFunc(asks, func(_ string, asked bool) bool { return !asked })
	return slices.Sorted(maps.Keys(asks))
}
