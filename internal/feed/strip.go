package feed

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Strip returns the object without what neither a Feed nor the scheduler plugins of Kubernetes
// read, so that informers need less memory, and so that environment variables are not kept. The
// object itself does not change; the result shares parts with it. Objects of other types are
// returned as they are.
func Strip(o any) any {
	switch o := o.(type) {
	case *corev1.Pod:
		return stripPod(o)
	case *corev1.Node:
		out := *o
		stripMeta(&out.ObjectMeta)
		out.Status.Images, out.Status.VolumesAttached, out.Status.VolumesInUse, out.Status.Addresses = nil, nil, nil, nil
		return &out
	case *batchv1.Job:
		out := *o
		stripMeta(&out.ObjectMeta)
		out.Spec.Template, out.Status = corev1.PodTemplateSpec{}, batchv1.JobStatus{}
		return &out
	case *resourcev1.ResourceSlice:
		out := *o
		stripMeta(&out.ObjectMeta)
		return &out
	case *unstructured.Unstructured:
		fields := prune(o.Object)
		delete(fields, "status")
		return &unstructured.Unstructured{Object: fields}
	}
	return o
}

// stripMeta removes what is kept for kubectl and for server-side apply.
func stripMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	if _, found := m.Annotations[corev1.LastAppliedConfigAnnotation]; found {
		m.Annotations = maps.Clone(m.Annotations)
		delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	}
}

func stripPod(o *corev1.Pod) *corev1.Pod {
	out := *o
	stripMeta(&out.ObjectMeta)
	s := &out.Spec
	s.Containers, s.InitContainers, s.EphemeralContainers = stripContainers(s.Containers), stripContainers(s.InitContainers), nil
	s.Volumes = stripVolumes(s.Volumes)
	s.ImagePullSecrets, s.DNSConfig, s.HostAliases, s.SecurityContext = nil, nil, nil, nil
	t := &out.Status
	t.ContainerStatuses, t.InitContainerStatuses, t.EphemeralContainerStatuses = stripStatuses(t.ContainerStatuses), stripStatuses(t.InitContainerStatuses), nil
	t.PodIPs, t.HostIPs, t.PodIP, t.HostIP, t.Message = nil, nil, "", "", ""
	return &out
}

// stripContainers keeps what containers request, their host ports, their rules for restarts
// and their images, which plugins score.
func stripContainers(list []corev1.Container) []corev1.Container {
	if list == nil {
		return nil
	}
	out := make([]corev1.Container, len(list))
	for i := range list {
		c := &list[i]
		out[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				out[i].Ports = append(out[i].Ports, p)
			}
		}
	}
	return out
}

// stripVolumes keeps the volumes that restrict where a pod can run.
func stripVolumes(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range list {
		s := &v.VolumeSource
		kept := corev1.VolumeSource{
			PersistentVolumeClaim: s.PersistentVolumeClaim, Ephemeral: s.Ephemeral, CSI: s.CSI,
			GCEPersistentDisk: s.GCEPersistentDisk, AWSElasticBlockStore: s.AWSElasticBlockStore, AzureDisk: s.AzureDisk,
			Cinder: s.Cinder, RBD: s.RBD, ISCSI: s.ISCSI, VsphereVolume: s.VsphereVolume, PortworxVolume: s.PortworxVolume,
		}
		if kept != (corev1.VolumeSource{}) {
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: kept})
		}
	}
	return out
}

// stripStatuses keeps what a container was given, which differs from its request while it is
// resized, and why a container that failed waits.
func stripStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range list {
		kept := corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
		if w := s.State.Waiting; w != nil && failing(w.Reason) {
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason}
		}
		if kept.Resources != nil || kept.AllocatedResources != nil || kept.State.Waiting != nil {
			out = append(out, kept)
		}
	}
	return out
}

// pruned are the fields of pod templates, and of metadata, that PutGroup does not read.
var pruned = map[string]bool{
	"containers": true, "initContainers": true, "volumes": true, "affinity": true, "tolerations": true,
	"managedFields": true, "annotations": true, "volumeClaimTemplates": true,
}

// prune returns a copy of the object without the pruned fields, on all levels.
func prune(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if !pruned[k] {
			out[k] = pruneValue(v)
		}
	}
	return out
}

func pruneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return prune(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = pruneValue(v[i])
		}
		return out
	}
	return v
}
