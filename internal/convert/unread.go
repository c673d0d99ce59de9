package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// unreadLabels and unreadAnnotations are those of pods and workloads by which other schedulers and
// controllers decide when, where or on which devices a pod runs, and that Berth does not read. A value
// that is not "" is an annotation that says that another object, which is read, has the same.
var (
	unreadLabels = map[string]string{
		"kueue.x-k8s.io/queue-name": "", "kueue.x-k8s.io/priority-class": "", "kueue.x-k8s.io/pod-group-name": "",
		"quota.scheduling.koordinator.sh/name": "", "yunikorn.apache.org/queue": "", "yunikorn.apache.org/app-id": "",
	}
	unreadAnnotations = map[string]string{
		"kueue.x-k8s.io/podset-required-topology": "", "kueue.x-k8s.io/podset-preferred-topology": "",
		"kueue.x-k8s.io/podset-slice-required-topology": "", "kueue.x-k8s.io/podset-slice-size": "", "kueue.x-k8s.io/podset-group-name": "",
		"kai.scheduler/topology-required-placement": annotationKAIGroup, "kai.scheduler/topology-preferred-placement": annotationKAIGroup,
		"nvidia.com/use-gputype": "", "nvidia.com/nouse-gputype": "", "nvidia.com/use-gpuuuid": "", "nvidia.com/nouse-gpuuuid": "",
		"nvidia.com/use-gpuindexes": "", "nvidia.com/nouse-gpuindexes": "", "nvidia.com/vgpu-mode": "", "nvidia.com/numa-bind": "",
		"hami.io/node-scheduler-policy": "", "hami.io/gpu-scheduler-policy": "",
		"volcano.sh/numa-topology-policy": "", "volcano.sh/vgpu-mode": "", "volcano.sh/revocable-zone": "",
		"scheduling.koordinator.sh/device-allocate-hint": "", "scheduling.koordinator.sh/device-joint-allocate": "",
		"scheduling.koordinator.sh/gpu-partition-spec": "", "scheduling.koordinator.sh/reservation-affinity": "",
		"scheduling.koordinator.sh/resource-spec": "", "scheduling.koordinator.sh/numa-topology-spec": "",
		"gang.scheduling.koordinator.sh/groups": "", "gang.scheduling.koordinator.sh/mode": "", "gang.scheduling.koordinator.sh/network-topology-spec": "",
		"yunikorn.apache.org/queue": "", "yunikorn.apache.org/task-groups": "", "yunikorn.apache.org/task-group-name": "",
		"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "",
	}
)

// annotationKAIGroup names the PodGroup of KAI that describes the pod.
const annotationKAIGroup = "pod-group-name"

// UnreadKeys returns the labels and annotations of a pod or a workload that decide when, where or on
// which devices pods run and that are not read, as "the label KEY" or "the annotation KEY", sorted.
func UnreadKeys(labels, annotations map[string]string) []string {
	var out []string
	for _, of := range []struct {
		what   string
		have   map[string]string
		unread map[string]string
	}{{"the annotation ", annotations, unreadAnnotations}, {"the label ", labels, unreadLabels}} {
		var found []string
		for key := range of.have {
			if instead, is := of.unread[key]; is && (instead == "" || annotations[instead] == "") {
				found = append(found, of.what+key)
			}
		}
		slices.Sort(found)
		out = append(out, found...)
	}
	return out
}

// summedResources returns the resources that the pod requests and that are parts of devices, which
// are only counted for a node as a whole, sorted.
func summedResources(o *corev1.Pod) []string {
	found := map[string]bool{}
	for _, list := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
		for i := range list {
			for _, amounts := range []corev1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				for name, q := range amounts {
					if summed[name] && !q.IsZero() {
						found[string(name)] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
