// Package podkind finds out which pods the filters of kube-scheduler cannot tell apart. Such
// pods are of one kind, and the key of the kind is the Key of the shape of their tasks.
package podkind

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// keyBytes is how many bytes of the hash are used. If there are n kinds at a time, two of
// them have the same key with a probability of about n²/2⁶⁵: 3 in 10¹⁰ for 100,000 kinds.
const keyBytes = 8

// Key returns the key of the kind of the pod: 16 hexadecimal digits, or "" if filters read
// nothing of the pod except its requests, its namespace and its labels.
//
// The namespace is not part of the kind. Of the labels, only those are part of it by which
// terms of the pod itself select pods. So pods of different controllers, and the members of a
// gang, can be of one kind. Filters that read the namespace or other labels must have the task
// form; jobs with different namespaces or labels never share refusals. A running pod keeps its
// key unless its tolerations or one of these labels change: fields that are set when a pod
// starts, such as its node, are not read.
func Key(o *v1.Pod) (string, error) {
	reduced := Reduce(o)
	text, err := reduced.Spec.Marshal()
	if err != nil {
		return "", fmt.Errorf("encoding the spec of the pod: %w", err)
	}
	if bytes.Equal(text, nothing) {
		return "", nil
	}
	h := sha256.New()
	if belongsToOnePod(&reduced.Spec) {
		fmt.Fprintf(h, "%q", o.UID)
	}
	for _, label := range slices.Sorted(maps.Keys(reduced.Labels)) {
		fmt.Fprintf(h, "%q=%q", label, reduced.Labels[label])
	}
	h.Write([]byte{0})
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:keyBytes]), nil
}

// nothing is the encoding of a spec of which filters read nothing.
var nothing, _ = new(v1.PodSpec).Marshal()

// belongsToOnePod reports whether claims of the pod are named after the pod: those of
// ephemeral volumes, and resource claims that are made from templates.
func belongsToOnePod(spec *v1.PodSpec) bool {
	return len(spec.ResourceClaims) > 0 || slices.ContainsFunc(spec.Volumes, func(v v1.Volume) bool { return v.Ephemeral != nil })
}

// Reduce returns a pod that has only the fields that are part of the kind. It shares them
// with the pod, so that neither may be changed. Filters that read only the spec of a pod give
// the same answers for both.
func Reduce(o *v1.Pod) *v1.Pod {
	spec := &o.Spec
	out := &v1.Pod{Spec: v1.PodSpec{
		NodeSelector:              spec.NodeSelector,
		Tolerations:               withoutSeconds(spec.Tolerations),
		Affinity:                  required(spec.Affinity),
		TopologySpreadConstraints: strict(spec.TopologySpreadConstraints),
		InitContainers:            reduceContainers(spec.InitContainers),
		Containers:                reduceContainers(spec.Containers),
		Volumes:                   reduceVolumes(spec.Volumes),
		ResourceClaims:            spec.ResourceClaims,
		HostNetwork:               spec.HostNetwork,
		HostUsers:                 spec.HostUsers,
	}}
	for _, name := range selectedLabels(&out.Spec) {
		if value, has := o.Labels[name]; has {
			if out.Labels == nil {
				out.Labels = map[string]string{}
			}
			out.Labels[name] = value
		}
	}
	return out
}

// withoutSeconds returns the tolerations without the time for which they hold, which matters
// only for pods that run.
func withoutSeconds(list []v1.Toleration) []v1.Toleration {
	out := slices.Clone(list)
	for i := range out {
		out[i].TolerationSeconds = nil
	}
	return out
}

// required returns the terms of the affinity that a node must satisfy, without those that
// are preferred. It returns nil if there are none.
func required(a *v1.Affinity) *v1.Affinity {
	if a == nil {
		return nil
	}
	var out v1.Affinity
	if n := a.NodeAffinity; n != nil && n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		out.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: n.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := a.PodAntiAffinity; p != nil && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		out.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if out == (v1.Affinity{}) {
		return nil
	}
	return &out
}

// strict returns the constraints that are not merely preferred.
func strict(list []v1.TopologySpreadConstraint) []v1.TopologySpreadConstraint {
	var out []v1.TopologySpreadConstraint
	for _, c := range list {
		if c.WhenUnsatisfiable == v1.DoNotSchedule {
			out = append(out, c)
		}
	}
	return out
}

// reduceContainers returns the containers that have host ports, or rules for restarts that
// some nodes do not support, with these fields only.
func reduceContainers(list []v1.Container) []v1.Container {
	var out []v1.Container
	for i := range list {
		c := v1.Container{RestartPolicyRules: list[i].RestartPolicyRules}
		for _, p := range list[i].Ports {
			if p.HostPort > 0 {
				c.Ports = append(c.Ports, v1.ContainerPort{HostIP: p.HostIP, HostPort: p.HostPort, Protocol: p.Protocol})
			}
		}
		if len(c.Ports)+len(c.RestartPolicyRules) > 0 {
			c.RestartPolicy = list[i].RestartPolicy // the ports of an init container count only if it is restarted
			out = append(out, c)
		}
	}
	return out
}

// reduceVolumes returns the volumes that restrict where a pod can run, without their names.
func reduceVolumes(list []v1.Volume) []v1.Volume {
	var out []v1.Volume
	for _, v := range list {
		s := &v.VolumeSource
		kept := v1.VolumeSource{
			PersistentVolumeClaim: s.PersistentVolumeClaim, Ephemeral: s.Ephemeral, CSI: s.CSI,
			GCEPersistentDisk: s.GCEPersistentDisk, AWSElasticBlockStore: s.AWSElasticBlockStore, AzureDisk: s.AzureDisk,
			Cinder: s.Cinder, RBD: s.RBD, ISCSI: s.ISCSI, VsphereVolume: s.VsphereVolume, PortworxVolume: s.PortworxVolume,
		}
		if kept == (v1.VolumeSource{}) {
			continue
		}
		reduced := v1.Volume{VolumeSource: kept}
		if v.Ephemeral != nil { // the name of its claim has the name of the volume
			reduced.Name = v.Name
		}
		out = append(out, reduced)
	}
	return out
}
