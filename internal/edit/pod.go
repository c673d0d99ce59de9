package edit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/quantity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podEdit finds the fields of a pod that make a change.
type podEdit struct {
	*assignments
	object *corev1.Pod
}

func (e *podEdit) edit(was, is *cluster.Job) {
	if was.Priority != is.Priority {
		e.set("spec.priority", is.Priority)
	}
	if was.Preemptible != is.Preemptible {
		at := "metadata.labels."
		if e.object.Annotations[v1alpha1.LabelPreemptible] != "" {
			at = "metadata.annotations."
		}
		e.set(at+v1alpha1.LabelPreemptible, fmt.Sprint(is.Preemptible))
	}
	if was.PreemptionDelay != is.PreemptionDelay {
		if e.object.Annotations[v1alpha1.AnnotationPreemptionDelay] != "" {
			e.remove("metadata.annotations." + v1alpha1.AnnotationPreemptionDelay)
		}
		e.set("spec.preemptionPolicy", string(corev1.PreemptLowerPriority)) // a priority class may say Never
	}
	paths := e.termPaths()
	for _, i := range slices.Backward(removedTerms(was.Affinity, is.Affinity)) {
		e.remove(paths[i])
	}
	before, after := was.Alternatives[0].Tasks[0].Shape, is.Alternatives[0].Tasks[0].Shape
	e.labels("spec.nodeSelector", e.object.Spec.NodeSelector, before.Selector, after.Selector)
	if len(before.Required) > 0 && len(after.Required) == 0 {
		e.remove("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
	}
	e.tolerations(len(e.object.Spec.Tolerations), before.Tolerations, after.Tolerations)
	if before.Isolation != after.Isolation {
		e.isolationAnnotation(after.Isolation)
	}
	e.devices(&before.Need, &after.Need)
	for _, a := range after.Resources {
		if now := before.Resources.Of(a.Name); now != a.Value {
			e.request(a.Name, now, a.Value)
		}
	}
}

// termPaths returns where the terms about other pods are written, in the order in which a pod
// is converted.
func (e *podEdit) termPaths() []string {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	var out []string
	add := func(at string, terms int, weighted []corev1.WeightedPodAffinityTerm) {
		for i := range terms {
			out = append(out, fmt.Sprintf("%s.%s[%d]", at, required, i))
		}
		for i := range weighted {
			if weighted[i].Weight != 0 {
				out = append(out, fmt.Sprintf("%s.%s[%d]", at, preferred, i))
			}
		}
	}
	a := e.object.Spec.Affinity
	if a == nil {
		return nil
	}
	if p := a.PodAffinity; p != nil {
		add("spec.affinity.podAffinity", len(p.RequiredDuringSchedulingIgnoredDuringExecution), p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add("spec.affinity.podAntiAffinity", len(p.RequiredDuringSchedulingIgnoredDuringExecution), p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// isolationAnnotation writes the isolation of the pod.
func (e *podEdit) isolationAnnotation(is cluster.Isolation) {
	field := "metadata.annotations." + v1alpha1.AnnotationIsolation
	if is.GPU != cluster.GPUSessionExclusive {
		is.Session = ""
	}
	if is == (cluster.Isolation{}) {
		e.remove(field)
		return
	}
	text, err := json.Marshal(v1alpha1.Isolation{CPU: string(is.CPU), GPU: string(is.GPU), Session: is.Session})
	if err == nil {
		e.set(field, string(text))
	}
}

// devices changes the number or the resource name of the devices, or how much of each is requested.
func (e *podEdit) devices(was, is *cluster.Need) {
	e.part(was, is)
	if was.Resource == is.Resource {
		if was.Devices != is.Devices {
			e.request(was.Resource, int64(was.Devices), int64(is.Devices))
		}
		return
	}
	for _, c := range e.containers() {
		for _, list := range []struct {
			field   string
			written corev1.ResourceList
		}{{"requests", c.resources.Requests}, {"limits", c.resources.Limits}} {
			if q, ok := list.written[corev1.ResourceName(was.Resource)]; ok {
				at, text := c.at+".resources."+list.field+".", q.String()
				if was.Devices != is.Devices && q.Value() == int64(was.Devices) {
					text = strconv.Itoa(is.Devices)
				}
				e.remove(at + was.Resource)
				e.set(at+is.Resource, text)
			}
		}
	}
}

// part changes how much of each device is requested, as KAI, HAMi and Volcano write it.
func (e *podEdit) part(was, is *cluster.Need) {
	if was.Share != is.Share && is.Share > 0 {
		if e.object.Annotations[feed.AnnotationFraction] != "" {
			e.set("metadata.annotations."+feed.AnnotationFraction, quantity.Fraction(int64(is.Share)))
		}
		for _, name := range []string{convert.HAMiMemoryPercent, convert.VolcanoMemoryPercent} {
			e.request(name, int64(was.Share/10), int64(is.Share/10))
		}
	}
	if was.Memory != is.Memory && is.Memory > 0 {
		if e.object.Annotations[feed.AnnotationGPUMemory] != "" {
			e.set("metadata.annotations."+feed.AnnotationGPUMemory, strconv.FormatInt(int64(is.Memory>>20), 10))
		}
		for _, name := range []string{convert.HAMiMemory, convert.VolcanoMemory} {
			e.request(name, int64(was.Memory>>20), int64(is.Memory>>20))
		}
	}
}

// request lowers what the containers request of a resource in all from was to is. The last
// containers are lowered first. An init container that is not a sidecar runs alone, and requests
// at most the new sum.
func (e *podEdit) request(name string, was, is int64) {
	give := was - is
	for _, c := range slices.Backward(e.containers()) {
		has := amountOfContainer(name, c.resources)
		lowered := max(0, has-give)
		if c.alone {
			lowered = min(has, is)
		} else {
			give -= has - lowered
		}
		if lowered == has {
			continue
		}
		text := quantity.Amount(name, lowered, false, true)
		_, requested := c.resources.Requests[corev1.ResourceName(name)]
		_, limited := c.resources.Limits[corev1.ResourceName(name)]
		if requested {
			e.set(c.at+".resources.requests."+name, text)
		}
		if limited && (!requested || strings.Contains(name, "/")) { // requests and limits of extended resources are equal
			e.set(c.at+".resources.limits."+name, text)
		}
	}
}

func amountOfContainer(name string, r *corev1.ResourceRequirements) int64 {
	q, ok := r.Requests[corev1.ResourceName(name)]
	if !ok {
		q = r.Limits[corev1.ResourceName(name)]
	}
	return unitsOf(name, q)
}

// unitsOf returns an amount in the units of State: thousandths of cores, and bytes or whole
// units of other resources.
func unitsOf(name string, q resource.Quantity) int64 {
	if name == cluster.CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// container is a container of the pod, and where it is written.
type container struct {
	at        string
	resources *corev1.ResourceRequirements
	alone     bool // it runs before the other containers, and ends
}

func (e *podEdit) containers() []container {
	var out []container
	for i := range e.object.Spec.InitContainers {
		c := &e.object.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		out = append(out, container{fmt.Sprintf("spec.initContainers[%d]", i), &c.Resources, !sidecar})
	}
	for i := range e.object.Spec.Containers {
		out = append(out, container{fmt.Sprintf("spec.containers[%d]", i), &e.object.Spec.Containers[i].Resources, false})
	}
	return out
}
