package convert

import (
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/printable"
	corev1 "k8s.io/api/core/v1"
)

// WhyLeftOut returns why the pod does not belong in State: it has ended, or a scheduling
// gate holds it back. It returns "" for other pods.
func WhyLeftOut(o *corev1.Pod) string {
	switch {
	case o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed:
		return "it has ended: its phase is " + printable.Text(string(o.Status.Phase))
	case Ended(o):
		return "it was deleted before it got a node"
	case Gated(o):
		return "it is held back by the scheduling gate " + phrase.Quote(o.Spec.SchedulingGates[0].Name) +
			"; it is scheduled after the gate is removed"
	}
	return ""
}

// PodNotes returns those notes of Pod that need no conversion: that a pending pod is held
// back, or has fields that are ignored. It costs less than Pod. Each message occurs once, with
// the path of the first field that it is about.
func PodNotes(o *corev1.Pod) Notes {
	var notes Notes
	if Ended(o) || o.Spec.NodeName != "" {
		return nil
	}
	add := func(at path, message string) {
		for i := range notes {
			if notes[i].Message == message {
				return
			}
		}
		notes = append(notes, Note{Ignored, at, message, ""})
	}
	notRead := func(what string, at path) { add(at, "with "+what+", which berth does not read") }
	spec := path{"spec"}
	if Gated(o) {
		return Notes{{Inactive, spec.Add("schedulingGates"), "held back by scheduling gates, not scheduled", ""}}
	}
	if len(o.Spec.TopologySpreadConstraints) > 0 {
		notRead("topologySpreadConstraints", spec.Add("topologySpreadConstraints"))
	}
	if len(o.Spec.ResourceClaims) > 0 {
		notRead("resourceClaims", spec.Add("resourceClaims"))
	}
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", o.Spec.Containers}, {"initContainers", o.Spec.InitContainers}} {
		for i, c := range list.containers {
			for k, p := range c.Ports {
				if p.HostPort != 0 || o.Spec.HostNetwork && p.ContainerPort != 0 { // the API server sets the host port to the same
					notRead("hostPort", spec.Add(list.field, i, "ports", k, "hostPort"))
				}
			}
		}
	}
	for i := range o.Spec.Volumes {
		if kind := restrictingVolume(&o.Spec.Volumes[i]); kind != "" {
			notRead(kind, spec.Add("volumes", i, kind))
		}
	}
	for i, t := range o.Spec.Tolerations {
		if !isKnownOperator(t.Operator) {
			notRead("a toleration by "+phrase.Clip(string(t.Operator)), spec.Add("tolerations", i, "operator"))
		}
	}
	for _, key := range UnreadKeys(o.Labels, o.Annotations) {
		notRead(key, path{"metadata"})
	}
	for _, name := range summedResources(o) {
		add(spec.Add("containers"), "with "+name+", which berth counts for a node as a whole and not for each of its devices")
	}
	if o.Status.NominatedNodeName != "" {
		notRead("a nominated node", path{"status", "nominatedNodeName"})
	}
	if o.Spec.RuntimeClassName != nil && o.UID == "" && o.Spec.Overhead == nil {
		add(spec.Add("runtimeClassName"), "with a runtime class, of which berth does not read the overhead, the node selector and the tolerations that the API server adds to pods")
	}
	for _, t := range affinityTerms(o) {
		if len(t.term.MatchLabelKeys) > 0 {
			notRead("matchLabelKeys", t.at.Add("matchLabelKeys"))
		}
		if len(t.term.MismatchLabelKeys) > 0 {
			notRead("mismatchLabelKeys", t.at.Add("mismatchLabelKeys"))
		}
		if selectsByLabel(t.term) {
			add(t.at.Add("namespaceSelector"), "with a namespace selector by label; only the names of namespaces are known")
		}
	}
	return notes
}

// restrictingVolume returns the kind of a volume that restricts on which nodes a pod can run, and ""
// for other volumes.
func restrictingVolume(v *corev1.Volume) string {
	for _, kind := range []struct {
		name string
		is   bool
	}{
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil}, {"ephemeral", v.Ephemeral != nil}, {"csi", v.CSI != nil},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil}, {"awsElasticBlockStore", v.AWSElasticBlockStore != nil}, {"azureDisk", v.AzureDisk != nil},
		{"cinder", v.Cinder != nil}, {"rbd", v.RBD != nil}, {"iscsi", v.ISCSI != nil}, {"vsphereVolume", v.VsphereVolume != nil},
		{"portworxVolume", v.PortworxVolume != nil}, {"fc", v.FC != nil},
	} {
		if kind.is {
			return kind.name
		}
	}
	return ""
}

type affinityTerm struct {
	term *corev1.PodAffinityTerm
	at   path
}

// affinityTerms returns the terms of the pod about other pods.
func affinityTerms(o *corev1.Pod) []affinityTerm {
	a := o.Spec.Affinity
	if a == nil {
		return nil
	}
	var out []affinityTerm
	add := func(kind string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		at := path{"spec", "affinity", kind}
		for i := range required {
			out = append(out, affinityTerm{&required[i], at.Add("requiredDuringSchedulingIgnoredDuringExecution", i)})
		}
		for i := range preferred {
			out = append(out, affinityTerm{&preferred[i].PodAffinityTerm, at.Add("preferredDuringSchedulingIgnoredDuringExecution", i, "podAffinityTerm")})
		}
	}
	if p := a.PodAffinity; p != nil {
		add("podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add("podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// selectsByLabel reports whether the namespace selector is about a label other than the
// name of the namespace, which is the only one that is known.
func selectsByLabel(t *corev1.PodAffinityTerm) bool {
	for _, q := range labelSelector(t.NamespaceSelector) {
		if q.Key != "" && q.Key != corev1.LabelMetadataName {
			return true
		}
	}
	return false
}
